//! Replaces literals and parameters with other values of the same type, length and character classes.
//!
//! Masking permutes all values of a kind, for example all numbers with four digits. A random key selects the
//! permutation. The permutation is drawn for each capture and never stored. Equal values stay equal, and different
//! values stay different. Statements that used the same value before masking therefore use the same value after it. The
//! permutation is a Feistel network over the characters of a value, with SipHash-2-4 (Aumasson and Bernstein, 2012) as
//! its keyed function. Format-preserving encryption in NIST SP 800-38G works the same way.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;

use siphasher::sip::SipHasher24;

use crate::scan::{Kind, Scan, Token};

const ROUNDS: u64 = 8;
const DAY: u64 = 86_400;

pub struct Mask {
    key: [u8; 16],
}

impl Mask {
    /// Draws a key from the kernel.
    pub fn new() -> std::io::Result<Self> {
        let mut key = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self { key })
    }

    /// Masks the value of a parameter, written as in a log.
    pub fn value(&self, value: &str) -> String {
        if is_kept(value) {
            return value.to_owned();
        }
        if let Some(masked) = self.number(value) {
            return masked;
        }
        if let Some(masked) = self.moment(value).or_else(|| self.address(value)) {
            return masked;
        }
        match (value.as_bytes().first(), value.as_bytes().last()) {
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) if value.len() > 2 => self.structured(value),
            _ => self.characters(value),
        }
    }

    /// Masks a decimal number. The result has as many digits as the text. Returns None for other texts.
    fn number(&self, text: &str) -> Option<String> {
        let (sign, rest) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        let (mantissa, exponent) = rest.split_at(rest.find(['e', 'E']).unwrap_or(rest.len()));
        let (whole, fraction) = mantissa.split_at(mantissa.find('.').unwrap_or(mantissa.len()));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let exponent_digits = exponent.get(1..).unwrap_or("").trim_start_matches(['-', '+']);
        let is_number = !whole.is_empty() && digits(whole) && digits(fraction.get(1..).unwrap_or(""));
        if !is_number || !digits(exponent_digits) || exponent.len() == 1 {
            return None;
        }
        let fraction =
            if fraction.len() > 1 { format!(".{}", self.digits(&fraction[1..])) } else { fraction.to_owned() };
        Some(format!("{sign}{}{fraction}{exponent}", self.whole(whole)))
    }

    /// Masks a whole number by a permutation of the numbers with the same number of digits. A value that fits into a
    /// smallint, integer or bigint still does after masking.
    fn whole(&self, digits: &str) -> String {
        let Ok(value) = digits.parse::<u64>() else { return self.digits(digits) };
        if digits.len() > 1 && digits.starts_with('0') || value == 0 {
            return if value == 0 { digits.to_owned() } else { self.digits(digits) };
        }
        let (mut low, mut high) = (10u64.pow(digits.len() as u32 - 1), u64::MAX);
        if let Some(next) = 10u64.checked_pow(digits.len() as u32) {
            high = next - 1;
        }
        for limit in [i16::MAX as u64, i32::MAX as u64, i64::MAX as u64] {
            if value <= limit {
                high = high.min(limit);
            } else {
                low = low.max(limit + 1);
            }
        }
        self.within(b'n', low, high, value).to_string()
    }

    /// Masks a date or time by permutations of the days of its year, of the seconds of a day, and of the digits of the
    /// fraction. Returns None for other texts.
    fn moment(&self, text: &str) -> Option<String> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| {
            let part = bytes.get(from..to)?;
            part.iter().all(u8::is_ascii_digit).then(|| text[from..to].parse::<u64>().ok()).flatten()
        };
        let mark = |at: usize, known: &[u8]| bytes.get(at).is_some_and(|byte| known.contains(byte));
        let (mut masked, mut at) = (String::new(), 0);
        if let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10))
            && mark(4, b"-")
            && mark(7, b"-")
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
        {
            let before: u64 = (1..month).map(|month| days_of(year, month)).sum();
            let length = (1..=12).map(|month| days_of(year, month)).sum::<u64>();
            let mut rest = self.within(b'd', 0, length - 1, before + day - 1);
            let mut month = 1;
            while rest >= days_of(year, month) {
                rest -= days_of(year, month);
                month += 1;
            }
            masked = format!("{year:04}-{month:02}-{:02}", rest + 1);
            at = 10;
            if at < bytes.len() {
                if !mark(at, b" T") {
                    return None;
                }
                masked.push(char::from(bytes[at]));
                at += 1;
            }
        }
        if at == bytes.len() {
            return (at > 0).then_some(masked);
        }
        let (hour, minute) = (number(at, at + 2)?, number(at + 3, at + 5)?);
        if !mark(at + 2, b":") || hour > 23 || minute > 59 {
            return None;
        }
        at += 5;
        if mark(at, b":") && number(at + 1, at + 3).is_some_and(|second| second < 60) {
            let second = number(at + 1, at + 3)?;
            let moved = self.within(b't', 0, DAY - 1, hour * 3600 + minute * 60 + second);
            masked += &format!("{:02}:{:02}:{:02}", moved / 3600, moved / 60 % 60, moved % 60);
            at += 3;
        } else {
            let moved = self.within(b'm', 0, DAY / 60 - 1, hour * 60 + minute);
            masked += &format!("{:02}:{:02}", moved / 60, moved % 60);
        }
        if mark(at, b".") {
            let length = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            masked.push('.');
            masked += &self.digits(&text[at + 1..at + 1 + length]);
            at += 1 + length;
        }
        let zone = &text[at..];
        let is_zone =
            zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b':' | b' '));
        (is_zone && zone.len() <= 8).then(|| masked + zone)
    }

    /// Masks an IPv4 address part by part, or the hexadecimal digits of a UUID. Returns None for other texts.
    fn address(&self, text: &str) -> Option<String> {
        let (address, length) = text.split_at(text.find('/').unwrap_or(text.len()));
        let parts: Vec<&str> = address.split('.').collect();
        let is_part = |part: &&str| (1..=3).contains(&part.len()) && part.parse::<u8>().is_ok();
        if parts.len() == 4 && parts.iter().all(is_part) {
            let masked = parts.iter().map(|part| {
                let value: u64 = part.parse().unwrap_or(0);
                let (low, high) = if value < 10 {
                    (0, 9)
                } else if value < 100 {
                    (10, 99)
                } else {
                    (100, 255)
                };
                self.within(b'i', low, high, value).to_string()
            });
            return Some(format!("{}{length}", masked.collect::<Vec<_>>().join(".")));
        }
        let is_uuid = text.len() == 36
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() });
        is_uuid.then(|| self.hexadecimal(text))
    }

    /// Masks the values inside JSON or an array. Keys, brackets and words such as `true` stay.
    fn structured(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let is_json = text.starts_with('[') || text.contains("\":") || text.contains("\" :");
        let (mut masked, mut at) = (String::with_capacity(text.len()), 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    let mut end = at + 1;
                    while end < bytes.len() && bytes[end] != b'"' {
                        end += if bytes[end] == b'\\' { 2 } else { 1 };
                    }
                    let end = end.min(bytes.len());
                    let end = (end..=bytes.len()).find(|&place| text.is_char_boundary(place)).unwrap_or(bytes.len());
                    let inner = &text[at + 1..end];
                    let after = text[end..].trim_start_matches('"').trim_start();
                    masked.push('"');
                    if is_json && after.starts_with(':') {
                        masked.push_str(inner);
                    } else if inner.contains('\\') {
                        masked.push_str(&self.escaped(inner));
                    } else {
                        masked.push_str(&self.value(inner));
                    }
                    if end < bytes.len() {
                        masked.push('"');
                    }
                    at = (end + 1).min(bytes.len());
                }
                b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\n' | b'\t' | b'\r' => {
                    masked.push(char::from(bytes[at]));
                    at += 1;
                }
                _ => {
                    let stops: &[char] =
                        if is_json { &['}', ']', ',', ' ', '\n', '\t', '\r'] } else { &['{', '}', ','] };
                    let length = text[at..].find(stops).unwrap_or(bytes.len() - at);
                    masked.push_str(&self.value(&text[at..at + length]));
                    at += length;
                }
            }
        }
        masked
    }

    /// Masks the characters between the backslash sequences of a string.
    fn escaped(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            masked += &self.characters(&rest[..at]);
            let mut length = 2;
            if rest[at..].starts_with("\\u") {
                length = 6;
            }
            let end = (at + length..=rest.len()).find(|&place| rest.is_char_boundary(place)).unwrap_or(rest.len());
            masked += &rest[at..end];
            rest = &rest[end..];
        }
        masked + &self.characters(rest)
    }

    fn digits(&self, text: &str) -> String {
        self.by_class(text, |letter| letter.is_ascii_digit().then_some((u32::from('0'), 10)))
    }

    fn hexadecimal(&self, text: &str) -> String {
        const LOWER: &str = "0123456789abcdef";
        let values: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(16)).collect();
        let moved = self.permuted(b'x', &values, &vec![16; values.len()]);
        let mut moved = moved.into_iter();
        let one = |letter: char| {
            if !letter.is_ascii_hexdigit() {
                return letter;
            }
            let digit = LOWER.as_bytes()[moved.next().unwrap_or(0) as usize];
            char::from(if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
                digit.to_ascii_uppercase()
            } else {
                digit
            })
        };
        text.chars().map(one).collect()
    }

    /// Masks a text by a permutation of all texts with the same classes of characters at the same places. The classes
    /// are capital letters, small letters, digits and, beyond ASCII, blocks of 64 characters. Characters of such a
    /// block have UTF-8 sequences of the same length.
    fn characters(&self, text: &str) -> String {
        self.by_class(text, |letter| match letter {
            'a'..='z' => Some((u32::from('a'), 26)),
            'A'..='Z' => Some((u32::from('A'), 26)),
            '0'..='9' => Some((u32::from('0'), 10)),
            _ if u32::from(letter) >= 0x80 => Some((u32::from(letter) & !63, 64)),
            _ => None,
        })
    }

    fn by_class(&self, text: &str, class: impl Fn(char) -> Option<(u32, u32)>) -> String {
        let (mut values, mut sizes) = (Vec::new(), Vec::new());
        for letter in text.chars() {
            if let Some((first, size)) = class(letter) {
                values.push(u32::from(letter) - first);
                sizes.push(size);
            }
        }
        let mut moved = self.permuted(b'c', &values, &sizes).into_iter();
        let one = |letter: char| match class(letter) {
            Some((first, _)) => char::from_u32(first + moved.next().unwrap_or(0)).unwrap_or(letter),
            None => letter,
        };
        text.chars().map(one).collect()
    }

    /// Applies a permutation of the lists whose elements are below `sizes`, with one limit for each element.
    fn permuted(&self, kind: u8, values: &[u32], sizes: &[u32]) -> Vec<u32> {
        let mut values = values.to_vec();
        let half = values.len() / 2;
        for round in 0..ROUNDS {
            // The halves differ by at most one character. The first half of a single character is empty.
            let (changed, other) =
                if round % 2 == 0 { (half..values.len(), 0..half) } else { (0..half, half..values.len()) };
            let mut hasher = self.hasher(kind, round);
            for (value, size) in values[other.clone()].iter().zip(&sizes[other]) {
                hasher.write_u32(*value);
                hasher.write_u32(*size);
            }
            hasher.write_usize(values.len());
            for place in changed {
                hasher.write_usize(place);
                values[place] = (values[place] + (hasher.finish() % u64::from(sizes[place])) as u32) % sizes[place];
            }
        }
        values
    }

    /// Applies a permutation of the numbers from `low` to `high`. A result outside this range is permuted again (cycle
    /// walking).
    fn within(&self, kind: u8, low: u64, high: u64, value: u64) -> u64 {
        let span = high - low;
        let half = (64 - span.max(1).leading_zeros()).div_ceil(2);
        let part = (1u64 << half) - 1;
        let mut at = value - low;
        loop {
            let (mut left, mut right) = (at >> half, at & part);
            for round in 0..ROUNDS {
                let mut hasher = self.hasher(kind, round);
                hasher.write_u64(low);
                hasher.write_u64(high);
                hasher.write_u64(right);
                (left, right) = (right, left ^ (hasher.finish() & part));
            }
            at = left << half | right;
            if at <= span {
                return low + at;
            }
        }
    }

    fn hasher(&self, kind: u8, round: u64) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(kind);
        hasher.write_u64(round);
        hasher
    }

    /// Returns a statement with masked literals and without comments, and the numbers of the parameters that keep their
    /// value. Names that are written as literals keep their value, and so do numbers that determine the work, as
    /// `Context` explains.
    pub fn statement(&self, text: &str) -> (String, Vec<usize>) {
        let bytes = text.as_bytes();
        let (mut masked, mut copied) = (String::with_capacity(text.len()), 0);
        let (mut context, mut kept) = (Context::default(), Vec::new());
        for token in Scan::new(bytes) {
            let source = &text[token.at.clone()];
            let replacement = match token.kind {
                Kind::Comment if !source.starts_with("/*+") => Some(String::from(" ")),
                // The code of a function or of DO contains its own literals.
                Kind::String if source.starts_with('$') && (context.is_schema || context.first == "do") => {
                    let (open, body, close) = dollar_quoted(source);
                    Some(format!("{open}{}{close}", self.statement(body).0))
                }
                Kind::String if !context.keeps(text, &token) => Some(self.literal(source)),
                Kind::Number if !context.keeps(text, &token) && !context.is_schema => {
                    Some(self.number(source).unwrap_or_else(|| self.digits(source)))
                }
                Kind::Parameter if context.keeps(text, &token) => {
                    kept.extend(source[1..].parse::<usize>().ok());
                    None
                }
                _ => None,
            };
            if let Some(replacement) = replacement {
                masked.push_str(&text[copied..token.at.start]);
                masked.push_str(&replacement);
                copied = token.at.end;
            }
            context.after(source, &token);
        }
        masked.push_str(&text[copied..]);
        (masked, kept)
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

/// Whether masking keeps the value, because it reveals nothing about the data. Such values are booleans, NULL,
/// intervals, and the empty string.
fn is_kept(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "",
        "t",
        "f",
        "true",
        "false",
        "on",
        "off",
        "yes",
        "no",
        "null",
        "NULL",
        "TRUE",
        "FALSE",
        "now",
        "today",
        "infinity",
        "-infinity",
        "NaN",
        "{}",
        "[]",
    ];
    WORDS.contains(&value) || is_interval(value)
}

/// Whether the text is an interval in words, such as `30 days`.
fn is_interval(text: &str) -> bool {
    const UNITS: &[&str] = &[
        "microsecond",
        "millisecond",
        "second",
        "sec",
        "minute",
        "min",
        "hour",
        "day",
        "week",
        "month",
        "mon",
        "year",
    ];
    let mut unit = false;
    for word in text.split_ascii_whitespace() {
        let name = word.trim_start_matches(|letter: char| letter.is_ascii_digit() || "+-.:".contains(letter));
        let name = name.to_ascii_lowercase();
        if name.is_empty() || name == "ago" {
            continue;
        }
        if !UNITS.contains(&name.as_str()) && !name.strip_suffix('s').is_some_and(|one| UNITS.contains(&one)) {
            return false;
        }
        unit = true;
    }
    unit && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Functions whose text arguments are names or formats.
const NAMING: &[&str] = &[
    "nextval",
    "currval",
    "setval",
    "date_trunc",
    "date_part",
    "to_char",
    "to_date",
    "to_timestamp",
    "to_regclass",
    "set_config",
    "current_setting",
    "pg_get_serial_sequence",
    "pg_relation_size",
    "pg_total_relation_size",
    "has_table_privilege",
    "timezone",
    "encode",
    "decode",
    "extract",
    "to_tsvector",
    "to_tsquery",
    "plainto_tsquery",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
    "pg_try_advisory_lock",
    "pg_try_advisory_xact_lock",
];
/// Keywords after which a literal is a number of rows, an interval or a time zone.
const SHAPING: &[&str] = &["limit", "offset", "first", "next", "interval", "zone", "tablesample"];
const SETTING: &[&str] = &["set", "reset", "show", "discard", "begin", "start", "savepoint", "release", "rollback"];
const SCHEMA: &[&str] = &["create", "alter", "drop", "grant", "revoke", "truncate", "vacuum", "analyze", "reindex"];

/// What precedes a literal in its statement. This determines whether masking keeps the literal.
#[derive(Default)]
struct Context {
    first: String,
    word: String,
    /// The function whose arguments are being read, and the depth of its brackets.
    naming: Option<usize>,
    depth: usize,
    is_schema: bool,
    /// Whether ORDER BY or GROUP BY was read. The numbers after it are columns.
    by: bool,
}

impl Context {
    /// Whether masking keeps this literal or parameter.
    fn keeps(&self, text: &str, token: &Token) -> bool {
        let follows = text[token.at.end..].trim_start();
        let is_name = follows.strip_prefix("::").is_some_and(|kind| {
            let kind = kind.trim_start();
            kind.len() >= 3 && kind.is_char_boundary(3) && kind[..3].eq_ignore_ascii_case("reg")
                || kind.len() >= 8 && kind.is_char_boundary(8) && kind[..8].eq_ignore_ascii_case("interval")
        });
        let column = self.by && token.kind == Kind::Number;
        is_name
            || column
            || self.naming.is_some()
            || SHAPING.contains(&self.word.as_str())
            || SETTING.contains(&self.first.as_str())
    }

    fn after(&mut self, source: &str, token: &Token) {
        match token.kind {
            Kind::Word => {
                self.word = source.to_ascii_lowercase();
                if self.first.is_empty() {
                    self.first.clone_from(&self.word);
                    self.is_schema = SCHEMA.contains(&self.first.as_str());
                }
                match self.word.as_str() {
                    "by" => self.by = true,
                    "limit" | "offset" | "having" | "where" | "from" | "select" | "returning" | "rows" | "range" => {
                        self.by = false;
                    }
                    _ => {}
                }
            }
            Kind::Mark if source == "(" => {
                self.depth += 1;
                if self.naming.is_none() && NAMING.contains(&self.word.as_str()) {
                    self.naming = Some(self.depth);
                }
                self.word.clear();
            }
            Kind::Mark if source == ")" => {
                if self.naming == Some(self.depth) {
                    self.naming = None;
                }
                self.depth = self.depth.saturating_sub(1);
                self.by = false;
                self.word.clear();
            }
            Kind::Mark if source == ";" => *self = Self::default(),
            Kind::Mark if source == "." => {}
            _ => self.word.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn mask() -> Mask {
        Mask { key: *b"a fixed test key" }
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

    proptest! {
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
