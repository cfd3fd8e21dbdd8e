//! Replaces literals and parameters with other values of the same type, length and character classes.
//!
//! Masking permutes all values of a kind, for example all numbers with four digits. Equal values stay equal, and
//! different values stay different. Statements that used the same value before masking therefore use the same value
//! after it. The key of the permutations is drawn for each capture and never stored.

mod context;
mod escaped;
mod permutation;
mod quoted;
mod value;

use crate::scan::{Dialect, ExecutedComment, Kind, Scan};

use self::context::Context;
use self::permutation::Permutation;

pub struct Mask {
    permutation: Permutation,
    dialect: Dialect,
}

/// Masks one statement.
struct Masking<'a> {
    mask: &'a Mask,
    context: Context,
    masked: String,
    /// Number of parameters before the next token.
    parameters: usize,
    /// Numbers of the parameters that keep their value.
    kept: Vec<usize>,
    /// Whether all servers number the following parameters in the same way.
    is_numbered: bool,
    /// Names in the JSON paths of the statement. As the paths stay, these keys stay in documents too.
    keys: Vec<String>,
}

impl Masking<'_> {
    /// Appends the masked text. `in_comment`: whether the text is in a comment that MySQL executes.
    fn append(&mut self, text: &str, tokens: Scan, in_comment: bool) {
        let dialect = self.mask.dialect;
        let mut copied = 0;
        for token in tokens {
            let source = &text[token.at.clone()];
            let (before, after) = (&text[..token.at.start], &text[token.at.end..]);
            // More of the statement follows the comment.
            let after = if in_comment && after.trim_start().is_empty() { "/*" } else { after };
            let is_kept = self.context.keeps(token.kind, source, before, after);
            let replacement = match token.kind {
                Kind::Comment => match ExecutedComment::at(source.as_bytes(), 0) {
                    Some(comment) if dialect == Dialect::Mysql && !in_comment && !comment.is_ambiguous => {
                        let body = &source[comment.body.clone()];
                        self.masked.push_str(&text[copied..token.at.start]);
                        self.masked.push_str(&source[..comment.body.start]);
                        let before = self.parameters;
                        self.append(body, Scan::in_comment(body.as_bytes()), true);
                        // A server that skips the comment gives the following parameters lower numbers.
                        if comment.is_conditional && self.parameters > before {
                            self.is_numbered = false;
                            self.kept.retain(|&number| number <= before);
                        }
                        copied = token.at.start + comment.body.end;
                        None
                    }
                    _ if source.starts_with("/*+") && !source.contains(['\'', '"']) => None,
                    _ => Some(String::from(" ")),
                },
                // The code of a function or of DO contains its own literals.
                Kind::String if source.starts_with('$') && self.context.is_code() && is_sql_code(text) => {
                    let (open, body, close) = dollar_quoted(source);
                    let body = self.mask.masked(body, Context::of_code(dialect)).0;
                    Some(format!("{open}{body}{close}"))
                }
                Kind::String if self.context.is_statement() => {
                    Some(quoted::replaced(source, |code| self.mask.statement(code).0))
                }
                Kind::String if !is_kept => Some(match dialect {
                    Dialect::Postgres => self.mask.literal(source),
                    Dialect::Mysql => self.mask.mysql_literal(before, source, &self.keys),
                }),
                Kind::Number if !is_kept => Some(self.mask.numeral(source, self.context.is_negative())),
                Kind::Parameter => {
                    self.parameters += 1;
                    if is_kept && self.is_numbered {
                        // Parameters of MySQL have no number.
                        self.kept.push(source[1..].parse().unwrap_or(self.parameters));
                    }
                    None
                }
                _ => None,
            };
            if let Some(replacement) = replacement {
                self.masked.push_str(&text[copied..token.at.start]);
                self.masked.push_str(&replacement);
                copied = token.at.end;
            }
            self.context.advance(token.kind, source);
        }
        self.masked.push_str(&text[copied..]);
    }
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
        self.masked(text, Context::new(self.dialect))
    }

    fn masked(&self, text: &str, context: Context) -> (String, Vec<usize>) {
        let mut keys = Vec::new();
        if self.dialect == Dialect::Mysql && text.contains('$') {
            collect_keys(text, Scan::of(text.as_bytes(), self.dialect), &mut Context::new(self.dialect), &mut keys);
        }
        let mut masking = Masking {
            mask: self,
            context,
            masked: String::with_capacity(text.len()),
            parameters: 0,
            kept: Vec::new(),
            is_numbered: true,
            keys,
        };
        masking.append(text, Scan::of(text.as_bytes(), self.dialect), false);
        (masking.masked, masking.kept)
    }

    /// Masks a number in the text of a statement.
    fn numeral(&self, source: &str, is_negative: bool) -> String {
        match source.as_bytes() {
            [b'0', b'x' | b'X', ..] => format!("{}{}", &source[..2], self.hexadecimal(&source[2..])),
            [b'0', b'b' | b'B', ..] => format!("{}{}", &source[..2], self.bits(&source[2..])),
            _ => self.unsigned(source, is_negative).unwrap_or_else(|| self.digits(source)),
        }
    }

    /// Masks a string literal of MySQL. `before` is the text before the literal, which may end with its prefix.
    /// `keys`: keys of JSON that stay.
    fn mysql_literal(&self, before: &str, source: &str, keys: &[String]) -> String {
        let prefix = before.bytes().next_back().map(|byte| byte.to_ascii_lowercase());
        let is_prefix = !before.bytes().rev().nth(1).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match prefix {
            Some(b'b') if is_prefix => self.bits(source),
            Some(b'x') if is_prefix => self.hexadecimal(source),
            _ => quoted::replaced(source, |value| self.document(value, keys)),
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
            Some(b'e' | b'E' | b'u' | b'U') if inner.contains('\\') => {
                escaped::replaced(&inner.replace("''", "\\'"), |value| self.value(value))
            }
            Some(b'b' | b'B') => self.bits(inner),
            Some(b'x' | b'X') => self.hexadecimal(inner),
            _ => self.value(&inner.replace("''", "'")).replace('\'', "''"),
        };
        format!("{prefix}'{inner}{end}")
    }
}

/// Adds the names in the JSON paths of a statement of MySQL (`'$.name[0]'`) to `keys`.
fn collect_keys(text: &str, tokens: Scan, context: &mut Context, keys: &mut Vec<String>) {
    for token in tokens {
        let source = &text[token.at];
        match token.kind {
            Kind::Comment => {
                if let Some(comment) = ExecutedComment::at(source.as_bytes(), 0) {
                    let body = &source[comment.body];
                    collect_keys(body, Scan::in_comment(body.as_bytes()), context, keys);
                }
            }
            Kind::String if context.is_path(source) => keys.extend(path_names(&quoted::value(source).0)),
            _ => {}
        }
        context.advance(token.kind, source);
    }
}

/// Returns the names in a JSON path. Names can be quoted (`$."full name"`), with escapes as in documents.
fn path_names(path: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), path);
    while let Some(at) = rest.find('.') {
        rest = rest[at + 1..].trim_start();
        let (start, end) = match rest.strip_prefix('"') {
            Some(name) => {
                let mut end = 0;
                while end < name.len() && name.as_bytes()[end] != b'"' {
                    end += if name.as_bytes()[end] == b'\\' { 2 } else { 1 };
                }
                (1, 1 + end)
            }
            None => (0, rest.find(['.', '[', '*']).unwrap_or(rest.len())),
        };
        let Some(name) = rest.get(start..end) else { break };
        let name = if start == 0 { name.trim_end() } else { name };
        if !name.is_empty() {
            names.push(name.to_owned());
        }
        rest = &rest[end..];
    }
    names
}

/// Splits a dollar-quoted string into its opening, its body and its closing. The closing is empty if the string is not
/// closed.
fn dollar_quoted(text: &str) -> (&str, &str, &str) {
    let (open, rest) = text.split_at(text[1..].find('$').map_or(text.len(), |end| end + 2));
    rest.strip_suffix(open).map_or((open, rest, ""), |body| (open, body, open))
}

/// Whether the code of a function or of DO is SQL or PL/pgSQL. `text`: the whole statement.
fn is_sql_code(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut words =
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    while words.any(|word| word == "language") {
        if !matches!(words.next(), Some("sql" | "plpgsql")) {
            return false;
        }
    }
    true
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
        let key = |name: &str| mask().value(name);
        assert!(read[key("age")].as_u64().is_some_and(|age| (10..=99).contains(&age)) && read[key("on")] == true);
        assert_eq!(read[key("none")], serde_json::Value::Null);
        assert!(read.get("age").is_none() && read.get(key("name")).is_some());
        let tags = mask().value("{42,\"a b\"}");
        assert_eq!(tags[1..3], mask().value("42"));
        for kept in ["t", "", "30 days", "1 day 02:00:00", "{}"] {
            assert_eq!(mask().value(kept), kept);
        }
    }

    #[test]
    fn keys_and_escapes_of_json_are_masked_except_the_keys_of_paths() {
        let document = r#"{"Secret": "\u0053\u00e9\ud83d\ude00\n", "price": 3}"#;
        let masked = mask().value(document);
        let read: serde_json::Value = serde_json::from_str(&masked).unwrap();
        let text = read[mask().value("Secret")].as_str().unwrap();
        assert_eq!((text.chars().count(), text.ends_with('\n')), (4, true), "{masked}");
        assert!(!text.contains(['S', 'é', '😀']), "{masked}");
        let (text, _) =
            of(Dialect::Mysql).statement(r#"select json_set('{"name": "Ann", "secret": 1}', '$.name[0]', 'Bob')"#);
        assert!(text.contains(r#"{"name": ""#) && text.contains("'$.name[0]'"), "{text}");
        assert!(!text.contains("secret") && !text.contains("Ann") && !text.contains("Bob"), "{text}");
    }

    #[test]
    fn an_escaped_letter_is_masked_together_with_the_text_around_it() {
        let text = |document: &str| {
            let read: Vec<String> = serde_json::from_str(&mask().value(document)).unwrap();
            read.concat()
        };
        let first = |document: String| text(&document).chars().next().unwrap();
        for letter in ["\\u0053", "\\u0418", "\\ud83d\\ude00"] {
            let masked: HashSet<char> = ('a'..='z').map(|next| first(format!("[\"{letter}{next}\"]"))).collect();
            assert!(masked.len() > 5, "{letter}: {masked:?}");
            let masked: HashSet<char> = (1..20).map(|code| first(format!("[\"{letter}\\u04{code:02x}\"]"))).collect();
            assert!(masked.len() > 5, "{letter}: {masked:?}");
        }
        for value in ["Иван", "S é\n\"😀\"/\\", "4711", "{\"a\": \"b\"}"] {
            let escaped: String = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let short = serde_json::to_string(value).unwrap();
            assert_eq!(text(&format!("[\"{escaped}\"]")), mask().value(value));
            assert_eq!(text(&format!("[{short}]")), mask().value(value));
            let masked = mask().value(&format!("[\"{escaped}\"]"));
            assert_eq!(masked.matches("\\u").count(), value.encode_utf16().count(), "{masked}");
        }
        let lone = mask().value(r#"["\ud83dAnn\ude00", "\u00e", "\"#);
        assert!(!lone.contains("Ann") && !lone.contains("d83d") && !lone.contains("de00"), "{lone}");
    }

    #[test]
    fn keys_stay_only_if_the_statement_names_them_in_a_path() {
        let mask = of(Dialect::Mysql);
        for text in
            [r#"insert into t values ('$.ssn', '{"ssn": 1}')"#, r#"select '{"ssn": 1}', concat('$.ssn'), '$[ssn]'"#]
        {
            assert!(!mask.statement(text).0.contains("ssn"), "{text}");
        }
        for (path, key) in [
            (r#"$."full name""#, "full name"),
            (r#"$**."a.b"[2 to last].c"#, "a.b"),
            ("$[0].name.*", "name"),
            (r#"$.größe [1]"#, "größe"),
            (r#"$."a\\"b""#, r#"a\\"b"#),
        ] {
            for call in [
                format!(r#"json_set('{{"{key}": 5}}', '{path}', 1)"#),
                format!(r#"/*! json_extract(a, '{path}'), */ '{{"{key}": 5}}'"#),
            ] {
                let masked = mask.statement(&format!("select {call}")).0;
                assert!(masked.contains(&format!(r#"{{"{key}": "#)) && masked.contains(path), "{masked}");
            }
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
            ("select 2fa, t.3fa from 4t", "select 2fa, t.3fa from 4t".to_owned()),
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

    /// Asserts that none of the values is in the masked statement, and returns the numbers of the unmasked parameters.
    fn without(dialect: Dialect, text: &str, values: &[&str]) -> Vec<usize> {
        let (masked, kept) = of(dialect).statement(text);
        for value in values {
            assert!(text.contains(value), "{value} in {text}");
            assert!(!masked.contains(value), "{value} in {masked}");
        }
        kept
    }

    #[test]
    fn literals_of_mysql_that_are_data_are_masked() {
        for (text, values) in [
            (
                "SET STATEMENT max_statement_time=5 FOR SELECT * FROM p WHERE name='Ann' AND ssn=4711",
                &["Ann", "4711"][..],
            ),
            ("SET STATEMENT a=5 FOR BEGIN NOT ATOMIC SET v = 'Ann'; SET v = 4711; END", &["Ann", "4711"]),
            ("BEGIN NOT ATOMIC INSERT INTO p VALUES ('Ann'); SET v = 'Bob'; END", &["Ann", "Bob"]),
            ("l: begin set v = 'Ann'; set v = 'Bob'; end", &["Ann", "Bob"]),
            ("if a then set v = 'Ann'; set v = 'Bob'; end if", &["Ann", "Bob"]),
            ("create procedure f() begin set v = 'Ann'; set v = 4711; end", &["Ann", "4711"]),
            ("set sql_mode = (select name from p where name = 'Ann'), @a = 'Bob'", &["Ann", "Bob"]),
            ("set insert_id = 4711, new.name = 'Ann', @@global.a = 5 + 5812", &["4711", "Ann", "5812"]),
            ("str_to_date('05.01.1980','%d.%m.%Y')", &["05.01.1980"]),
            ("select str_to_date('05.01.1980','%d.%m.%Y')", &["05.01.1980"]),
            ("select date_format('1980-01-05','%Y')", &["1980-01-05"]),
            ("select convert_tz('1980-01-05 00:00:00','+00:00','+01:00')", &["1980-01-05"]),
            ("select date_format(concat('Ann', 'Bob'), 'Eve' = 'Eve')", &["Ann", "Bob", "Eve"]),
            ("select encode('Ann', 'hex'), to_date('05.01.1980', 'Bob')", &["Ann", "hex", "05.01.1980", "Bob"]),
            ("select db.sleep(4711), json_set(a, '$.a', '$.secret')", &["4711", "secret"]),
            ("select 1 from p ORDER BY FIELD(id, 4711, 5812)", &["4711", "5812"]),
            ("select 1 from p ORDER BY id = 4711, 5812 = id", &["4711", "5812"]),
            ("INSERT INTO p SELECT a FROM q GROUP BY a ON DUPLICATE KEY UPDATE b = 4711, c = 5812", &["4711", "5812"]),
            ("UPDATE consumer SET offset = 4711, first = 'Ann', zone = 'Bob'", &["4711", "Ann", "Bob"]),
            (
                "select interval(4711, 5812), char(71, 81), (select char(72, 82))",
                &["4711", "5812", "71", "81", "72", "82"],
            ),
            ("create table t (name varchar(30)) select 'Ann', 4711, char(71)", &["Ann", "4711", "71"]),
            ("alter table t add check (a <> 4711), add b int default 5812", &["4711", "5812"]),
            (
                "select 47.11x, .4711y from p where b'1011001110001' = 0b1011001110001",
                &["47.11", ".4711", "1011001110001"],
            ),
            ("select /*! 'a*/secret' */ 'Ann'", &["secret", "Ann"]),
            ("/*! select 'a*/secret' */", &["secret"]),
            ("/*!50000 select 'a*/secret' */ 'Ann'", &["secret", "Ann"]),
            ("/*!99999 it's */ select 'Ann'", &["Ann"]),
            ("select /*!4711, */ 5812 /*!500004711 */", &["4711", "5812"]),
            ("select /*! a /* 'Ann' */ + 'Bob' */ 1", &["Ann", "Bob"]),
            ("order by /*! 4711 */ = id", &["4711"]),
            ("select /*+ max_execution_time(5) 'Ann' */ 1", &["Ann"]),
        ] {
            assert_eq!(without(Dialect::Mysql, text, values), [0; 0], "{text}");
        }
    }

    #[test]
    fn literals_of_postgres_that_are_data_are_masked() {
        for (text, values) in [
            ("do $$begin insert into p values ('Ann'); set v = 'Bob'; end$$", &["Ann", "Bob"][..]),
            ("create function f() returns int language sql as $$select 4711, 'Ann'$$", &["4711", "Ann"]),
            ("do language plpython3u $$name = \"Ann\"$$", &["Ann"]),
            ("create table p as select $$Ann$$, 4711", &["Ann", "4711"]),
            ("begin; insert into p values ('Ann', 4711)", &["Ann", "4711"]),
            ("set app.person = 'Ann'", &["Ann"]),
            ("select set_config('app.person', 'Ann', true)", &["Ann"]),
            ("select to_date('1980-01-05','YYYY-MM-DD'), to_char(4711,'9999')", &["1980-01-05", "4711"]),
            ("select timezone('UTC','1980-01-05'), timezone('1981-01-05')", &["1980-01-05", "1981-01-05"]),
            ("select encode('Ann','hex'), to_tsquery('Bob'), to_tsvector('Eve')", &["Ann", "Bob", "Eve"]),
            ("select setval('s', 4711), pg_advisory_lock(5812)", &["4711", "5812"]),
            ("select other.encode('Ann', 'Bob')", &["Ann", "Bob"]),
            ("select timestamp with time zone '1980-01-05 00:00:00'", &["1980-01-05"]),
            ("select 'Ann'::region, 'Bob'::interval_of_mine", &["Ann", "Bob"]),
            ("select a from p order by id = 4711, array_position(array[5812], id)", &["4711", "5812"]),
            ("insert into p select a from q group by a on conflict (a) do update set b = 4711", &["4711"]),
            (
                "update consumer set \"offset\" = 4711, first = 'Ann', zone = 'Bob', interval = 5812",
                &["4711", "Ann", "Bob", "5812"],
            ),
            ("select B'1011001110001'", &["1011001110001"]),
        ] {
            assert_eq!(without(Dialect::Postgres, text, values), [0; 0], "{text}");
        }
    }

    #[test]
    fn parameters_that_are_data_are_masked() {
        for (text, kept) in [
            ("select str_to_date(?, '%Y')", &[][..]),
            ("select str_to_date(?, ?)", &[2]),
            ("select a from t WHERE offset = ?", &[]),
            ("select a from t WHERE a /*!50000 = ? */ LIMIT ?", &[2]),
            ("select a from t WHERE a = /*!80000 ? + */ ? LIMIT ?", &[]),
            ("select a from t order by field(id, ?, ?) limit ?, ?", &[3, 4]),
            ("select convert_tz(?, ?, ?) from t where interval = ?", &[2, 3]),
            ("set statement max_statement_time = ? for select ?", &[1]),
            ("set @a = ?, sql_mode = ?", &[2]),
        ] {
            assert_eq!(without(Dialect::Mysql, text, &[]), kept, "{text}");
        }
        for (text, kept) in [
            ("select to_date($1, $2), setval($3, $4), encode($5, $6)", &[2, 3, 6][..]),
            ("select to_tsquery($1), to_tsquery($2, $3)", &[2]),
            ("select a from t where first = $1 and zone = $2 and a at time zone $3 > $4 limit $5", &[3, 5]),
        ] {
            assert_eq!(without(Dialect::Postgres, text, &[]), kept, "{text}");
        }
    }

    #[test]
    fn settings_roles_and_sizes_stay() {
        for text in [
            "SET ROLE 'web'@'localhost'",
            "set statement max_statement_time=5, sql_mode='ansi' for select a from t",
            "set @@session.sql_mode = 'ansi', global a := -1, time_zone = '+00:00'",
            "set session sql_mode = concat(@@sql_mode, ',ansi')",
            "set character set 'utf8mb4'",
            "begin; set autocommit = 0",
            "show tables like 'sale%'",
            "select CONVERT(x, DECIMAL(10,2)), CONVERT(x, DATETIME(6)), now(6)",
            "select a from json_table(?, '$[*]' columns (a varchar(100) path '$.a', nested path '$.b' columns (b decimal(8,2) path '$.c'))) t",
            "alter table t add column a varchar(30), modify b decimal(10,2)",
            "create function f(a varchar(30), b char(20)) returns varchar(40) return a",
            "select extract(day from a), json_set(a, '$.b', ?), a->'$[10]' from t",
        ] {
            assert_eq!(of(Dialect::Mysql).statement(text).0, text);
        }
        for text in [
            "set role 'web'",
            "set time zone 'UTC'",
            "set search_path to a, 'b'",
            "begin; set local statement_timeout = 5000",
            "select x::varchar(30), cast(y as character varying(40)), a at time zone 'UTC' from t",
            "select pg_catalog.setval('s', $1), to_tsvector('english', a), 'sale'::regclass",
        ] {
            assert_eq!(mask().statement(text).0, text);
        }
    }

    #[test]
    fn minimum_values_stay_in_the_range_of_their_types() {
        for (dialect, least) in [
            (Dialect::Mysql, i64::from(i8::MIN)),
            (Dialect::Mysql, -(1 << 23)),
            (Dialect::Postgres, i64::from(i16::MIN)),
            (Dialect::Postgres, i64::from(i32::MIN)),
            (Dialect::Postgres, i64::MIN),
        ] {
            let masked = of(dialect).value(&least.to_string());
            assert!((least..0).contains(&masked.parse().unwrap()), "{masked}");
            let literal = of(dialect).statement(&format!("select * from t where a in ({least}) or a={least}")).0;
            assert_eq!(literal, format!("select * from t where a in ({masked}) or a={masked}"));
        }
        let difference = of(Dialect::Mysql).statement("select a - 128").0;
        assert_eq!(difference, format!("select a - {}", of(Dialect::Mysql).value("128")));
    }

    #[test]
    fn text_after_a_time_or_an_address_is_masked() {
        for value in ["10:30 Ann", "1980-01-05 10:30:00 Ann", "10.0.0.1/Ann"] {
            assert!(!mask().value(value).contains("Ann"), "{value}");
        }
        assert!(mask().value("10:30:00+05:30").ends_with("+05:30"));
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
        fn any_document_stays_valid(value in any::<String>(), escapes in any::<bool>()) {
            let text = if escapes {
                format!("\"{}\"", value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>())
            } else {
                serde_json::to_string(&value).unwrap()
            };
            let read: Vec<String> = serde_json::from_str(&mask().value(&format!("[{text}]"))).unwrap();
            prop_assert_eq!(&read[0], &mask().value(&value));
        }

        #[test]
        fn any_text_can_be_masked(text in any::<String>()) {
            let value = mask().value(&text);
            prop_assert_eq!(value.chars().count(), text.chars().count());
            mask().statement(&text);
        }
    }
}
