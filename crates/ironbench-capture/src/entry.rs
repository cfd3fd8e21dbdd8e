//! Entries of PostgreSQL's log, in any of its formats.

use std::borrow::Cow;

/// A log entry. Texts are in the encoding of the database that wrote them.
#[derive(Debug, Default)]
pub struct Entry<'a> {
    /// Time of the entry in microseconds since 1970.
    pub at_us: i64,
    /// Number that identifies the session within the log. The number is derived from the session's start time and
    /// process ID. If the log does not contain the start time, the number is derived only from the process ID.
    pub session: u64,
    /// Whether `session` is derived from the start time. If not, a later session with the same process ID has the same
    /// number.
    pub has_start: bool,
    pub user: Cow<'a, [u8]>,
    pub database: Cow<'a, [u8]>,
    pub application: Cow<'a, [u8]>,
    /// The state of the session as `ps` shows it, such as `idle in transaction`. The text is empty if the log does not
    /// contain it.
    pub state: Cow<'a, [u8]>,
    /// The virtual transaction, or 0 if there is none.
    pub transaction: u64,
    pub severity: Severity,
    pub sqlstate: Cow<'a, [u8]>,
    pub message: Cow<'a, [u8]>,
    pub detail: Cow<'a, [u8]>,
    pub context: Cow<'a, [u8]>,
    /// The statement that caused the error. The text is empty if the entry is not an error.
    pub statement: Cow<'a, [u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    Log,
    /// The statement failed.
    Error,
    /// The session ended.
    Fatal,
    #[default]
    Other,
}

impl Severity {
    pub fn of(word: &[u8]) -> Self {
        match word {
            b"LOG" => Self::Log,
            b"ERROR" => Self::Error,
            b"FATAL" | b"PANIC" => Self::Fatal,
            _ => Self::Other,
        }
    }
}

/// Parses a session ID (`%c` of `log_line_prefix`), which consists of the session's start time and process ID in
/// hexadecimal.
pub fn session_id(text: &[u8]) -> Option<u64> {
    let dot = memchr::memchr(b'.', text)?;
    let (start, process) = (hexadecimal(&text[..dot])?, hexadecimal(&text[dot + 1..])?);
    Some(start << 32 | process & 0xffff_ffff)
}

/// Parses a virtual transaction, such as `3/17`. Number 0 means no transaction.
pub fn virtual_transaction(text: &[u8]) -> u64 {
    let Some(slash) = memchr::memchr(b'/', text) else { return 0 };
    match (decimal(&text[..slash]), decimal(&text[slash + 1..])) {
        (Some(backend), Some(local)) if local > 0 => backend << 40 | local & 0xff_ffff_ffff,
        _ => 0,
    }
}

pub fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() < 19;
    let add = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'));
    if is_number { text.iter().try_fold(0, add) } else { None }
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 8 {
        return None;
    }
    text.iter().try_fold(0, |sum: u64, byte| char::from(*byte).to_digit(16).map(|digit| sum << 4 | u64::from(digit)))
}

/// Parses times such as `2026-11-28 17:51:00.426 CET`. Caches the last date and time zone, because they seldom change.
#[derive(Debug, Default)]
pub struct Clock {
    date: [u8; 10],
    days: i64,
    zone: Vec<u8>,
    offset_s: i64,
    /// Names of time zones whose offset is not known. Times in them are taken as UTC.
    pub unknown: Vec<String>,
}

impl Clock {
    /// Returns the microseconds since 1970. Returns None if the text is not a time.
    pub fn read(&mut self, text: &[u8]) -> Option<i64> {
        if text.len() < 19 || text[10] != b' ' || text[13] != b':' || text[16] != b':' {
            return None;
        }
        if text[..10] != self.date {
            self.days = days(&text[..10])?;
            self.date.copy_from_slice(&text[..10]);
        }
        let part = |from: usize| decimal(&text[from..from + 2]).map(|number| number as i64);
        let seconds = part(11)? * 3600 + part(14)? * 60 + part(17)?;
        let (mut micros, mut at) = (0, 19);
        if text.get(19) == Some(&b'.') {
            let digits = text[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 6 {
                return None;
            }
            micros = decimal(&text[20..20 + digits])? as i64 * 10_i64.pow(6 - digits as u32);
            at = 20 + digits;
        }
        let zone = text[at..].trim_ascii();
        if zone != self.zone {
            self.change_zone(zone)?;
        }
        Some(((self.days * 86_400 + seconds - self.offset_s) * 1_000_000) + micros)
    }

    #[cold]
    fn change_zone(&mut self, zone: &[u8]) -> Option<()> {
        let name = std::str::from_utf8(zone).ok()?;
        if name.len() > 40 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-:/_<>".contains(&byte)) {
            return None;
        }
        let offset = offset_s(name);
        if offset.is_none() && !self.unknown.iter().any(|known| known == name) {
            self.unknown.push(name.to_owned());
        }
        self.offset_s = offset.unwrap_or(0);
        zone.clone_into(&mut self.zone);
        Some(())
    }
}

/// Returns the number of seconds by which a time zone is ahead of UTC.
fn offset_s(zone: &str) -> Option<i64> {
    const HOURS: &[(&str, i64)] = &[
        ("", 0),
        ("UTC", 0),
        ("GMT", 0),
        ("Z", 0),
        ("WET", 0),
        ("WEST", 1),
        ("BST", 1),
        ("CET", 1),
        ("CEST", 2),
        ("MET", 1),
        ("MEST", 2),
        ("EET", 2),
        ("EEST", 3),
        ("MSK", 3),
        ("SAST", 2),
        ("JST", 9),
        ("KST", 9),
        ("HKT", 8),
        ("AWST", 8),
        ("AEST", 10),
        ("AEDT", 11),
        ("NZST", 12),
        ("NZDT", 13),
        ("NDT", -2),
        ("AST", -4),
        ("ADT", -3),
        ("EST", -5),
        ("EDT", -4),
        ("CST", -6),
        ("CDT", -5),
        ("MST", -7),
        ("MDT", -6),
        ("PST", -8),
        ("PDT", -7),
        ("AKST", -9),
        ("AKDT", -8),
        ("HST", -10),
    ];
    if let Some((_, hours)) = HOURS.iter().find(|(name, _)| *name == zone) {
        return Some(hours * 3600);
    }
    let digits = zone.strip_prefix(['+', '-'])?.replace(':', "");
    if !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    let minutes = if digits.len() == 2 { number * 60 } else { number / 100 * 60 + number % 100 };
    Some(if zone.starts_with('-') { -60 * minutes } else { 60 * minutes })
}

/// Returns the number of days from 1970-01-01 to a date such as `2026-11-28` (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn days(date: &[u8]) -> Option<i64> {
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let part = |from: usize, to: usize| decimal(&date[from..to]).map(|number| number as i64);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_zone_and_fraction() {
        let mut clock = Clock::default();
        for (text, expected) in [
            ("1970-01-01 00:00:00 UTC", 0),
            ("2026-11-28 17:51:00.426 UTC", 1_795_888_260_426_000),
            ("2026-11-28 18:51:00.426 CET", 1_795_888_260_426_000),
            ("2026-11-28 14:21:00.426 -0330", 1_795_888_260_426_000),
            ("2024-02-29 12:00:00.5 GMT", 1_709_208_000_500_000),
        ] {
            assert_eq!(clock.read(text.as_bytes()), Some(expected), "{text}");
        }
        assert!(clock.unknown.is_empty());
        assert_eq!(clock.read(b"2026-11-28 17:51:00 XYZT"), Some(1_795_888_260_000_000));
        assert_eq!(clock.unknown, ["XYZT"]);
        for text in ["", "2026-11-28", "2026-13-28 17:51:00 UTC", "2026-11-28 17-51:00", "2026-11-28 17:51:00 a;b"] {
            assert_eq!(clock.read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn sessions_and_transactions_are_numbers() {
        assert_eq!(session_id(b"6b0b1484.13a7"), Some(0x6b0b_1484_0000_13a7));
        assert_eq!(session_id(b"x.1"), None);
        assert_ne!(virtual_transaction(b"3/17"), virtual_transaction(b"4/17"));
        assert_eq!(virtual_transaction(b"3/0"), 0);
        assert_eq!(virtual_transaction(b""), 0);
    }
}
