//! Replaces literals and parameters with other values of the same type, length and character classes.
//!
//! Masking permutes all values of a kind, for example all numbers with four digits. Equal values stay equal, and
//! different values stay different. Statements that used the same value before masking therefore use the same value
//! after it. The key of the permutations is drawn for each capture and never stored.

mod context;
mod permutation;
mod quoted;
mod value;

use crate::scan::{Dialect, Kind, Scan};

use self::context::Context;
use self::permutation::Permutation;

pub struct Mask {
    permutation: Permutation,
    dialect: Dialect,
}

impl Mask {
    /// Creates a mask with a random key.
    pub fn new(dialect: Dialect) -> std::io::Result<Self> {
        Ok(Self { permutation: Permutation::random()?, dialect })
    }

    /// Returns a statement with masked literals and without comments, and the numbers of the parameters that keep their
    /// value. Names that are written as literals keep their value, and so do numbers that determine the work, as
    /// `Context` explains.
    pub fn statement(&self, text: &str) -> (String, Vec<usize>) {
        let bytes = text.as_bytes();
        let (mut masked, mut copied) = (String::with_capacity(text.len()), 0);
        let (mut context, mut kept) = (Context::new(self.dialect), Vec::new());
        let mut parameters = 0;
        for token in Scan::of(bytes, self.dialect) {
            let source = &text[token.at.clone()];
            let replacement = match token.kind {
                // MySQL executes the contents of such a comment.
                Kind::Comment
                    if self.dialect == Dialect::Mysql
                        && ["/*!", "/*M!"].iter().any(|open| source.starts_with(open)) =>
                {
                    let (open, body, close) = executed_comment(source);
                    Some(format!("{open}{}{close}", self.statement(body).0))
                }
                Kind::Comment if !source.starts_with("/*+") => Some(String::from(" ")),
                // The code of a function or of DO contains its own literals.
                Kind::String if source.starts_with('$') && (context.is_schema || context.first == "do") => {
                    let (open, body, close) = dollar_quoted(source);
                    Some(format!("{open}{}{close}", self.statement(body).0))
                }
                Kind::String if context.is_code() && self.dialect == Dialect::Mysql => {
                    Some(quoted::replaced(source, |code| self.statement(code).0))
                }
                Kind::String if !context.keeps(text, &token) => Some(match self.dialect {
                    Dialect::Postgres => self.literal(source),
                    Dialect::Mysql => self.mysql_literal(&text[..token.at.start], source),
                }),
                Kind::Number if !context.keeps(text, &token) && !context.is_schema => Some(self.numeral(source)),
                Kind::Parameter => {
                    parameters += 1;
                    if context.keeps(text, &token) {
                        // Parameters of MySQL have no number.
                        kept.push(source[1..].parse().unwrap_or(parameters));
                    }
                    None
                }
                _ => None,
            };
            if let Some(replacement) = replacement {
                masked.push_str(&text[copied..token.at.start]);
                masked.push_str(&replacement);
                copied = token.at.end;
            }
            context.advance(source, &token);
        }
        masked.push_str(&text[copied..]);
        (masked, kept)
    }

    /// Masks a number in the text of a statement.
    fn numeral(&self, source: &str) -> String {
        match source.as_bytes() {
            [b'0', b'x' | b'X', ..] => format!("{}{}", &source[..2], self.hexadecimal(&source[2..])),
            [b'0', b'b' | b'B', ..] => source.to_owned(),
            _ => self.number(source).unwrap_or_else(|| self.digits(source)),
        }
    }

    /// Masks a string literal of MySQL. `before` is the text before the literal, which may end with its prefix.
    fn mysql_literal(&self, before: &str, source: &str) -> String {
        let prefix = before.bytes().next_back().map(|byte| byte.to_ascii_lowercase());
        let is_prefix = !before.bytes().rev().nth(1).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match prefix {
            Some(b'b') if is_prefix => source.to_owned(),
            Some(b'x') if is_prefix => self.hexadecimal(source),
            _ => quoted::replaced(source, |value| self.value(value)),
        }
    }

    /// Masks a string literal. The quotes stay.
    fn literal(&self, source: &str) -> String {
        let open = source.find(['\'', '$']).unwrap_or(0);
        let (prefix, rest) = source.split_at(open);
        if rest.starts_with('$') {
            let (open, body, close) = dollar_quoted(rest);
            return format!("{prefix}{open}{}{close}", self.value(body));
        }
        let closed = rest.len() > 1 && rest.ends_with('\'');
        let inner = &rest[1..rest.len() - usize::from(closed)];
        let end = if closed { "'" } else { "" };
        let inner = match prefix.as_bytes().first() {
            Some(b'e' | b'E' | b'u' | b'U') if inner.contains('\\') => self.escaped(&inner.replace("''", "\\'")),
            Some(b'b' | b'B') => inner.to_owned(),
            Some(b'x' | b'X') => self.hexadecimal(inner),
            _ => self.value(&inner.replace("''", "'")).replace('\'', "''"),
        };
        format!("{prefix}'{inner}{end}")
    }
}

/// Splits a dollar-quoted string into its opening, its body and its closing. The closing is empty if the string is not
/// closed.
fn dollar_quoted(text: &str) -> (&str, &str, &str) {
    let (open, rest) = text.split_at(text[1..].find('$').map_or(text.len(), |end| end + 2));
    rest.strip_suffix(open).map_or((open, rest, ""), |body| (open, body, open))
}

/// Splits a comment that MySQL executes into its opening with the lowest version, its body and its closing.
fn executed_comment(text: &str) -> (&str, &str, &str) {
    let start = text.find('!').map_or(text.len(), |at| at + 1);
    let start = text[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(text.len(), |at| start + at);
    let end = if text.ends_with("*/") { (text.len() - 2).max(start) } else { text.len() };
    (&text[..start], &text[start..end], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn mask() -> Mask {
        of(Dialect::Postgres)
    }

    fn of(dialect: Dialect) -> Mask {
        Mask { permutation: Permutation::with_key(*b"a fixed test key"), dialect }
    }

    fn classes(text: &str) -> Vec<u8> {
        let class = |letter: char| match letter {
            'a'..='z' => b'a',
            'A'..='Z' => b'A',
            '0'..='9' => b'0',
            other => {
                if other.is_ascii() {
                    other as u8
                } else {
                    other.len_utf8() as u8
                }
            }
        };
        text.chars().map(class).collect()
    }

    #[test]
    fn numbers_of_one_length_are_permuted() {
        for (low, high) in [(1, 9), (10, 99), (100, 999)] {
            let masked: HashSet<u64> =
                (low..=high).map(|n: u64| mask().value(&n.to_string()).parse().unwrap()).collect();
            assert_eq!(masked.len() as u64, high - low + 1);
            assert!(masked.iter().all(|n| (low..=high).contains(n)));
        }
        assert_eq!(mask().value("0"), "0");
        assert!(mask().value("2147483000").parse::<i32>().is_ok() && mask().value("2147483000").len() == 10);
        assert!(mask().value("32000").parse::<i16>().is_ok() && mask().value("40000").parse::<i16>().is_err());
        assert!(mask().value("9223372036854775000").parse::<i64>().is_ok());
    }

    #[test]
    fn texts_of_one_shape_are_permuted() {
        let all: HashSet<String> = ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))).collect();
        assert_eq!(all.iter().map(|text| mask().characters(text)).collect::<HashSet<_>>(), all);
        let one = mask().value("Ann.O'Neil-42@example.com");
        assert_eq!(classes(&one), classes("Ann.O'Neil-42@example.com"));
        assert_ne!(one, "Ann.O'Neil-42@example.com");
        assert_eq!(mask().value("größe").len(), "größe".len());
    }

    #[test]
    fn dates_times_addresses_and_documents_stay_valid() {
        let date = mask().value("2026-02-28 23:59:59.123+01");
        assert!(date.starts_with("2026-") && date.ends_with("+01") && date.len() == 26, "{date}");
        assert_eq!(mask().value("2026-13-01").len(), 10);
        let address = mask().value("10.0.200.3/24");
        assert!(
            address.split('/').next().unwrap().split('.').all(|part| part.parse::<u8>().is_ok())
                && address.ends_with("/24")
        );
        let uuid = mask().value("123e4567-e89b-12d3-a456-426614174000");
        assert!(uuid.len() == 36 && uuid.bytes().filter(|byte| *byte == b'-').count() == 4);
        let document = mask().value(r#"{"name": "Ann \"A\"", "age": 42, "tags": ["x1"], "on": true, "none": null}"#);
        let read: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert!(read["age"].as_u64().is_some_and(|age| (10..=99).contains(&age)) && read["on"] == true);
        assert_eq!(read["none"], serde_json::Value::Null);
        let tags = mask().value("{42,\"a b\"}");
        assert_eq!(tags[1..3], mask().value("42"));
        for kept in ["t", "", "30 days", "1 day 02:00:00", "{}"] {
            assert_eq!(mask().value(kept), kept);
        }
    }

    #[test]
    fn a_literal_equals_the_parameter_with_its_value() {
        let (text, kept) = mask().statement("select * from t where a = 4711 and b = 'Ann' and c = $1 limit $2");
        let expected = format!(
            "select * from t where a = {} and b = '{}' and c = $1 limit $2",
            mask().value("4711"),
            mask().value("Ann")
        );
        assert_eq!((text, kept), (expected, vec![2]));
    }

    #[test]
    fn names_and_sizes_stay() {
        for text in [
            "select nextval('sale_id_seq'), 'sale'::regclass",
            "select date_trunc('month', at) from t order by 1, 2 limit 100 offset 50",
            "set statement_timeout = '30s'",
            "select now() - interval '30 days'",
            "create table t(a varchar(30), b numeric(8,2))",
        ] {
            assert_eq!(mask().statement(text).0, text);
        }
        assert_ne!(mask().statement("select f('month')").0, "select f('month')");
        assert_eq!(
            mask().statement("select a /* user 5 */ -- x\n, b").0.split_whitespace().collect::<Vec<_>>(),
            ["select", "a", ",", "b"]
        );
    }

    #[test]
    fn literals_of_mysql_are_masked_where_mysql_ends_them() {
        let mask = of(Dialect::Mysql);
        let (ann, number) = (mask.value("Ann"), mask.value("4711"));
        let doubled = mask.value("it's").replace('\'', "''");
        for (text, expected) in [
            (
                "select 4711, 'Ann', \"Ann\" from t where a = ?",
                format!("select {number}, '{ann}', \"{ann}\" from t where a = ?"),
            ),
            (r"select 'it\'s' # secret", format!("select '{doubled}'  ")),
            ("select `4711`, 'it''s'", format!("select `4711`, '{doubled}'")),
            ("select 2fa from 4t where b'0101' = 0b0101", "select 2fa from 4t where b'0101' = 0b0101".to_owned()),
            (
                "select /*!40001 sql_no_cache 4711, */ 4711",
                format!("select /*!40001 sql_no_cache {number}, */ {number}"),
            ),
            ("prepare s from 'select 4711, ?'", format!("prepare s from 'select {number}, ?'")),
            ("set @name = 'Ann', sql_mode = 'ansi'", format!("set @name = '{ann}', sql_mode = 'ansi'")),
        ] {
            assert_eq!(mask.statement(text).0, expected, "{text}");
        }
        let hex = mask.statement("select x'4d', 0x4d").0;
        assert!(hex.starts_with("select x'") && hex.contains(", 0x") && !hex.contains("4d"), "{hex}");
    }

    #[test]
    fn names_formats_and_sizes_of_mysql_stay() {
        for text in [
            "select a from t limit 10, 20",
            "select date_format(a, '%Y-%m'), sleep(1) from t order by 1 limit 5 offset 10",
            "select json_extract(a, '$.name[0]'), a->>'$.name' from t",
            "select cast(a as decimal(10, 2)), cast(b as char(20)) from t",
            "select a + interval 5 day from t",
            "set names 'utf8mb4', session sql_mode = 'ansi'",
            "create table t (a varchar(30), b decimal(8, 2))",
        ] {
            assert_eq!(of(Dialect::Mysql).statement(text).0, text);
        }
        assert_eq!(of(Dialect::Mysql).statement("select a from t where b = ? limit ?, ?").1, [2, 3]);
        assert_ne!(
            of(Dialect::Mysql).statement("select json_set(a, '$.name', 'Ann')").0,
            "select json_set(a, '$.name', 'Ann')"
        );
    }

    #[test]
    fn numbers_of_mysql_stay_in_the_range_of_their_types() {
        for (low, high) in
            [(100, 127), (128, 255), (60_000, 65_535), (9_000_000, 9_999_999), (4_294_000_000u64, 4_294_967_295)]
        {
            let masked: u64 = of(Dialect::Mysql).value(&high.to_string()).parse().unwrap();
            assert!(masked <= high && masked.to_string().len() == low.to_string().len(), "{high}: {masked}");
        }
        assert_eq!(of(Dialect::Mysql).value("0000-00-00 00:00:00"), "0000-00-00 00:00:00");
    }

    proptest! {
        #[test]
        fn a_masked_statement_of_mysql_has_the_same_tokens(text in "[a-z]{1,5} ['\"](\\\\['\"\\\\n0Z]|[a-zA-Z0-9 é,.-]|''|\"\"){0,20}['\"] = [0-9]{1,18}") {
            let mask = of(Dialect::Mysql);
            let kinds = |text: &str| Scan::of(text.as_bytes(), Dialect::Mysql).map(|token| token.kind).collect::<Vec<_>>();
            let (masked, _) = mask.statement(&text);
            prop_assert_eq!(kinds(&masked), kinds(&text), "{}", masked);
        }

        #[test]
        fn any_text_of_mysql_can_be_masked(text in any::<String>()) {
            of(Dialect::Mysql).statement(&text);
        }

        #[test]
        fn a_statement_keeps_its_shape(text in "[a-z]{1,5} '([a-zA-Z0-9 é{}\\[\\]\":,.-]|''){0,20}' = \\$1 and [0-9]{1,18}") {
            let (masked, _) = mask().statement(&text);
            let kinds = |text: &str| Scan::new(text.as_bytes()).map(|token| (token.kind, token.at.len())).collect::<Vec<_>>();
            prop_assert_eq!(kinds(&masked), kinds(&text));
        }

        #[test]
        fn any_text_can_be_masked(text in any::<String>()) {
            let value = mask().value(&text);
            prop_assert_eq!(value.chars().count(), text.chars().count());
            mask().statement(&text);
        }
    }
}
