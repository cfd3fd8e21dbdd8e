//! Masks single values: numbers, dates and times, addresses, documents, and other texts.

use super::{Mask, escaped};
use crate::scan::Dialect;

const SECONDS_PER_DAY: u64 = 86_400;
/// Highest values of the integer types of PostgreSQL.
const POSTGRES_LIMITS: &[u64] = &[i16::MAX as u64, i32::MAX as u64, i64::MAX as u64];
/// Highest values of the integer types of MySQL, with and without sign.
const MYSQL_LIMITS: &[u64] = &[
    i8::MAX as u64,
    u8::MAX as u64,
    i16::MAX as u64,
    u16::MAX as u64,
    (1 << 23) - 1,
    (1 << 24) - 1,
    i32::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
];

impl Mask {
    /// Masks the value of a parameter, written as in a log.
    pub fn value(&self, value: &str) -> String {
        self.document(value, &[])
    }

    /// Masks a value. If the value is JSON, the keys in `known` stay.
    pub(super) fn document(&self, value: &str, known: &[String]) -> String {
        if reveals_nothing(value) {
            return value.to_owned();
        }
        if let Some(masked) = self.number(value) {
            return masked;
        }
        if let Some(masked) = self.date_or_time(value).or_else(|| self.address(value)) {
            return masked;
        }
        match (value.as_bytes().first(), value.as_bytes().last()) {
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) if value.len() > 2 => self.structured(value, known),
            _ => self.characters(value),
        }
    }

    /// Masks a generated key like a literal or parameter with its value.
    pub fn key(&self, key: u64) -> u64 {
        self.whole_number(&key.to_string(), false).parse().unwrap_or(key)
    }

    /// Masks a decimal number. The result has as many digits as the text. Returns None for other texts.
    pub(super) fn number(&self, text: &str) -> Option<String> {
        let (sign, rest) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        Some(format!("{sign}{}", self.unsigned(rest, sign == "-")?))
    }

    /// Masks a decimal number without its sign. Returns None for other texts.
    pub(super) fn unsigned(&self, text: &str, is_negative: bool) -> Option<String> {
        let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
        let (whole, fraction) = mantissa.split_at(mantissa.find('.').unwrap_or(mantissa.len()));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let exponent_digits = exponent.get(1..).unwrap_or("").trim_start_matches(['-', '+']);
        let is_number = !whole.is_empty() && digits(whole) && digits(fraction.get(1..).unwrap_or(""));
        if !is_number || !digits(exponent_digits) || exponent.len() == 1 {
            return None;
        }
        let fraction =
            if fraction.len() > 1 { format!(".{}", self.digits(&fraction[1..])) } else { fraction.to_owned() };
        Some(format!("{}{fraction}{exponent}", self.whole_number(whole, is_negative)))
    }

    /// Masks a whole number by a permutation of the numbers with the same number of digits. A value that fits into an
    /// integer type of the server still does after masking. `digits`: the number without its sign.
    fn whole_number(&self, digits: &str, is_negative: bool) -> String {
        let Ok(value) = digits.parse::<u64>() else { return self.digits(digits) };
        if digits.len() > 1 && digits.starts_with('0') || value == 0 {
            return if value == 0 { digits.to_owned() } else { self.digits(digits) };
        }
        let limits = match self.dialect {
            Dialect::Postgres => POSTGRES_LIMITS,
            Dialect::Mysql => MYSQL_LIMITS,
        };
        let (mut low, mut high) = (10u64.pow(digits.len() as u32 - 1), u64::MAX);
        if let Some(next) = 10u64.checked_pow(digits.len() as u32) {
            high = next - 1;
        }
        for &limit in limits {
            // The range of a type with sign contains one more number below zero than above zero.
            let limit = limit + u64::from(is_negative);
            if value <= limit {
                high = high.min(limit);
            } else {
                low = low.max(limit + 1);
            }
        }
        self.permutation.number(b'n', low, high, value).to_string()
    }

    /// Masks a date or time by permutations of the days of its year, of the seconds of a day, and of the digits of the
    /// fraction. Returns None for other texts.
    fn date_or_time(&self, text: &str) -> Option<String> {
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
            && (1..=days_in_month(year, month)).contains(&day)
        {
            let before: u64 = (1..month).map(|month| days_in_month(year, month)).sum();
            let length = (1..=12).map(|month| days_in_month(year, month)).sum::<u64>();
            let mut rest = self.permutation.number(b'd', 0, length - 1, before + day - 1);
            let mut month = 1;
            while rest >= days_in_month(year, month) {
                rest -= days_in_month(year, month);
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
            let moved = self.permutation.number(b't', 0, SECONDS_PER_DAY - 1, hour * 3600 + minute * 60 + second);
            masked += &format!("{:02}:{:02}:{:02}", moved / 3600, moved / 60 % 60, moved % 60);
            at += 3;
        } else {
            let moved = self.permutation.number(b'm', 0, SECONDS_PER_DAY / 60 - 1, hour * 60 + minute);
            masked += &format!("{:02}:{:02}", moved / 60, moved % 60);
        }
        if mark(at, b".") {
            let length = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            masked.push('.');
            masked += &self.digits(&text[at + 1..at + 1 + length]);
            at += 1 + length;
        }
        let zone = &text[at..];
        is_zone(zone).then(|| masked + zone)
    }

    /// Masks an IPv4 address part by part, or the hexadecimal digits of a UUID. Returns None for other texts.
    fn address(&self, text: &str) -> Option<String> {
        let (address, length) = text.split_at(text.find('/').unwrap_or(text.len()));
        if !length.is_empty() && length[1..].parse::<u8>().is_err() {
            return None;
        }
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
                self.permutation.number(b'i', low, high, value).to_string()
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

    /// Masks the keys and values inside JSON, or the values inside an array. Keys in `known`, brackets and words such as
    /// `true` stay. A key is masked like a value, so it is still equal to a literal that contains it (`a ->> 'key'`).
    fn structured(&self, text: &str, known: &[String]) -> String {
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
                    let end = (end..=bytes.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(bytes.len());
                    let inner = &text[at + 1..end];
                    let after = text[end..].trim_start_matches('"').trim_start();
                    masked.push('"');
                    if is_json && after.starts_with(':') && known.iter().any(|name| name == inner) {
                        masked.push_str(inner);
                    } else {
                        masked.push_str(&escaped::replaced(inner, |value| self.value(value)));
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

    /// Masks the bits of a text. All other characters stay, except digits and letters if the text has them instead of bits.
    pub(super) fn bits(&self, text: &str) -> String {
        if text.bytes().any(|byte| byte.is_ascii_alphanumeric() && !matches!(byte, b'0' | b'1')) {
            return self.characters(text);
        }
        self.by_class(text, |letter| matches!(letter, '0' | '1').then_some((u32::from('0'), 2)))
    }

    /// Masks the ASCII digits of a text. All other characters stay.
    pub(super) fn digits(&self, text: &str) -> String {
        self.by_class(text, |letter| letter.is_ascii_digit().then_some((u32::from('0'), 10)))
    }

    /// Masks the hexadecimal digits of a text. All other characters stay.
    pub(super) fn hexadecimal(&self, text: &str) -> String {
        const LOWER: &str = "0123456789abcdef";
        let values: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(16)).collect();
        let moved = self.permutation.list(b'x', &values, &vec![16; values.len()]);
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
    pub(super) fn characters(&self, text: &str) -> String {
        self.by_class(text, |letter| char_class(letter.into()))
    }

    /// Masks the characters for which `class` returns the first character of their class and its size. All other
    /// characters stay.
    fn by_class(&self, text: &str, class: impl Fn(char) -> Option<(u32, u32)>) -> String {
        let (mut values, mut sizes) = (Vec::new(), Vec::new());
        for letter in text.chars() {
            if let Some((first, size)) = class(letter) {
                values.push(u32::from(letter) - first);
                sizes.push(size);
            }
        }
        let mut moved = self.permutation.list(b'c', &values, &sizes).into_iter();
        let one = |letter: char| match class(letter) {
            Some((first, _)) => char::from_u32(first + moved.next().unwrap_or(0)).unwrap_or(letter),
            None => letter,
        };
        text.chars().map(one).collect()
    }
}

/// Returns the first character of the class of a character and the size of the class. Returns None for characters that
/// stay.
fn char_class(letter: u32) -> Option<(u32, u32)> {
    match letter {
        0x61..=0x7a => Some((0x61, 26)),
        0x41..=0x5a => Some((0x41, 26)),
        0x30..=0x39 => Some((0x30, 10)),
        _ if letter >= 0x80 => Some((letter & !63, 64)),
        _ => None,
    }
}

/// Whether masking can keep the value, because it reveals nothing about the data. Such values are booleans, NULL,
/// intervals, the zero date of MySQL, and the empty string.
fn reveals_nothing(value: &str) -> bool {
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
        "0000-00-00",
        "0000-00-00 00:00:00",
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

/// Whether the text after a time is empty or a time zone, such as `Z`, `+01` or ` +05:30`.
fn is_zone(text: &str) -> bool {
    let zone = text.trim_start();
    let offset = zone.strip_prefix(['+', '-']).is_some_and(|offset| {
        let parts: Vec<&str> = offset.split(':').collect();
        let is_part = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() <= 3 && parts.iter().all(is_part)
            || parts.len() == 1 && offset.len() == 4 && offset.bytes().all(|byte| byte.is_ascii_digit())
    });
    offset || matches!(zone, "" | "Z" | "z" | "UTC" | "GMT")
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
