//! Parses the format `stderr`, whose lines begin with `log_line_prefix` (PostgreSQL 18 documentation, 19.8.3). A line
//! break inside an entry is followed by a tab. Details and statements are separate lines, which also begin with the
//! prefix.

use std::borrow::Cow;

use ironbench_core::{Error, Result};
use memchr::{memchr, memmem};

use crate::entry::{Clock, Entry, Severity, decimal, session_id, virtual_transaction};

/// A piece of `log_line_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// The escapes `%t` and `%m`.
    Time,
    /// The escape `%n`, which is seconds since 1970.
    Seconds,
    /// Another escape, identified by its letter.
    Field(u8),
    /// The escape `%q`, after which processes without a session write nothing.
    SessionsOnly,
}

/// A `log_line_prefix` that contains at least the time and the session of each line.
#[derive(Debug, Clone)]
pub struct Prefix(Vec<Part>);

impl Prefix {
    /// Reads a prefix as postgresql.conf contains it.
    ///
    /// # Errors
    /// Input: the prefix lacks the time or the session, contains an unknown escape, or cannot be read unambiguously.
    pub fn read(text: &str) -> Result<Self> {
        let bad = |cause: String| Err(Error::input(format!("--prefix {text:?}"), cause));
        let (mut parts, mut letters) = (Vec::new(), text.bytes().peekable());
        while let Some(byte) = letters.next() {
            if byte != b'%' {
                literal(&mut parts, byte);
                continue;
            }
            while letters.next_if(|byte| byte.is_ascii_digit() || *byte == b'-').is_some() {}
            match letters.next() {
                Some(b'%') => literal(&mut parts, b'%'),
                Some(b't' | b'm') => parts.push(Part::Time),
                Some(b'n') => parts.push(Part::Seconds),
                Some(b'q') => parts.push(Part::SessionsOnly),
                Some(letter) if b"audrhLbpPsilvxecQ".contains(&letter) => parts.push(Part::Field(letter)),
                Some(letter) => return bad(format!("has an unknown escape, %{}", char::from(letter))),
                None => return bad("ends with %".to_owned()),
            }
        }
        let has = |letter: u8| parts.contains(&Part::Field(letter));
        if !parts.contains(&Part::Time) && !parts.contains(&Part::Seconds) {
            return bad("contains no time: %m, %t or %n".to_owned());
        }
        if !has(b'c') && !has(b'p') {
            return bad("does not identify sessions: it contains neither %c nor %p".to_owned());
        }
        let is_open = |pair: &[Part]| matches!(pair, [Part::Field(_), Part::Field(_) | Part::Time | Part::Seconds]);
        if parts.windows(2).any(is_open) {
            return bad("has two escapes without a character in between".to_owned());
        }
        Ok(Self(parts))
    }
}

fn literal(parts: &mut Vec<Part>, byte: u8) {
    match parts.last_mut() {
        Some(Part::Literal(text)) => text.push(byte),
        _ => parts.push(Part::Literal(vec![byte])),
    }
}

/// The parts of a line before its message.
#[derive(Debug, Default)]
struct Line<'a> {
    at_us: i64,
    session: Option<u64>,
    process: Option<u64>,
    number: u32,
    user: &'a [u8],
    database: &'a [u8],
    application: &'a [u8],
    state: &'a [u8],
    transaction: u64,
    sqlstate: &'a [u8],
    /// The word before the message, such as `LOG` or `DETAIL`.
    word: &'a [u8],
    rest: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// An entry of this length.
    Entry(usize),
    Unknown(usize),
    /// The entry may continue after the bytes.
    Incomplete,
}

impl Prefix {
    /// Returns the length of the entry at the start of the bytes.
    pub fn length(&self, bytes: &[u8], is_complete: bool, clock: &mut Clock) -> Parsed {
        let Some(first) = line(bytes) else { return Parsed::Incomplete };
        if self.line(&bytes[..first], clock).is_none_or(|line| !is_first(line.word)) {
            return Parsed::Unknown(first);
        }
        let mut at = first;
        loop {
            let Some(length) = line(&bytes[at..]) else {
                return if is_complete && at > 0 { Parsed::Entry(at) } else { Parsed::Incomplete };
            };
            let next = &bytes[at..at + length];
            let continues = next[0] == b'\t'
                || self.line(next, clock).is_some_and(|line| !is_first(line.word) && !line.word.is_empty());
            if !continues {
                return Parsed::Entry(at);
            }
            at += length;
        }
    }

    /// Returns the entry that these lines contain, and its number within the session. The number is 0 if the prefix
    /// lacks `%l`.
    pub fn entry<'a>(&self, bytes: &'a [u8], clock: &mut Clock) -> Option<(Entry<'a>, u32)> {
        let mut entry = Entry::default();
        let mut number = 0;
        let mut at = 0;
        while at < bytes.len() {
            let mut end = at + line(&bytes[at..])?;
            while bytes.get(end) == Some(&b'\t') {
                end += line(&bytes[end..])?;
            }
            let found = self.line(&bytes[at..end], clock)?;
            let text = untabbed(found.rest);
            match found.word {
                b"DETAIL" => entry.detail = text,
                b"CONTEXT" => entry.context = text,
                b"STATEMENT" => entry.statement = text,
                word if is_first(word) => {
                    let known = |name: &'a [u8]| {
                        let unknown: &[u8] = b"";
                        Cow::Borrowed(if name == b"[unknown]" { unknown } else { name })
                    };
                    number = found.number;
                    entry = Entry {
                        at_us: found.at_us,
                        session: found.session.or(found.process)?,
                        has_start: found.session.is_some(),
                        user: known(found.user),
                        database: known(found.database),
                        application: known(found.application),
                        state: Cow::Borrowed(found.state),
                        transaction: found.transaction,
                        severity: Severity::of(word),
                        sqlstate: Cow::Borrowed(found.sqlstate),
                        message: text,
                        ..Entry::default()
                    };
                }
                _ => {}
            }
            at = end;
        }
        Some((entry, number))
    }

    /// Matches the prefix and the word after it.
    fn line<'a>(&self, bytes: &'a [u8], clock: &mut Clock) -> Option<Line<'a>> {
        let mut found = Line::default();
        let mut rest = bytes;
        for (place, part) in self.0.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_slice())?,
                Part::Time => {
                    // The zone follows the date and the time. The zone ends at the next space or literal.
                    let zone = rest.get(20..)?;
                    let start = 20 + memchr(b' ', zone).filter(|_| rest[19] == b'.').map_or(0, |space| space + 1);
                    let ends = self.after(place);
                    let zone = rest.get(start..)?;
                    let length = zone.iter().position(|byte| Some(byte) == ends || byte.is_ascii_whitespace())?;
                    found.at_us = clock.read(&rest[..start + length])?;
                    rest = &rest[start + length..];
                }
                Part::Seconds => {
                    let length = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
                    let (whole, fraction) = rest[..length].split_at(memchr(b'.', &rest[..length]).unwrap_or(length));
                    let millis = fraction.get(1..).and_then(decimal).unwrap_or(0);
                    found.at_us = decimal(whole)? as i64 * 1_000_000 + millis as i64 * 1000;
                    rest = &rest[length..];
                }
                Part::SessionsOnly => {
                    if let Some((word, message)) = worded(rest) {
                        (found.word, found.rest) = (word, message);
                        return Some(found);
                    }
                }
                Part::Field(letter) => {
                    let length = self.length_of_field(place, rest)?;
                    let (value, after) = rest.split_at(length);
                    rest = after;
                    let value = value.trim_ascii();
                    match letter {
                        b'u' => found.user = value,
                        b'd' => found.database = value,
                        b'a' => found.application = value,
                        b'i' => found.state = value,
                        b'e' => found.sqlstate = value,
                        b'v' => found.transaction = virtual_transaction(value),
                        b'c' => found.session = Some(session_id(value)?),
                        b'p' => found.process = Some(decimal(value)?),
                        b'l' => found.number = decimal(value)? as u32,
                        _ => {}
                    }
                }
            }
        }
        (found.word, found.rest) = worded(rest)?;
        Some(found)
    }

    fn after(&self, place: usize) -> Option<&u8> {
        match self.0[place + 1..].iter().find(|part| **part != Part::SessionsOnly) {
            Some(Part::Literal(text)) => text.first(),
            _ => None,
        }
    }

    /// Returns the length of an escape's value. The value ends at the next literal of the prefix, or at the word before
    /// the message.
    fn length_of_field(&self, place: usize, rest: &[u8]) -> Option<usize> {
        let line = memchr(b'\n', rest).unwrap_or(rest.len());
        match self.0[place + 1..].iter().find(|part| **part != Part::SessionsOnly) {
            // The value may be an application's name that contains the literal. Therefore every occurrence of the
            // literal is tried until the rest of the line starts with a word.
            Some(Part::Literal(text)) if place + 2 == self.0.len() => {
                let mut places = memmem::find_iter(&rest[..line], text);
                places.find(|at| worded(&rest[at + text.len()..line]).is_some())
            }
            Some(Part::Literal(text)) => memmem::find(&rest[..line], text),
            _ => (0..line).find(|&at| worded(&rest[at..line]).is_some()),
        }
    }
}

/// Returns the length of the first line, with its line break. Returns None if the line break is missing.
fn line(bytes: &[u8]) -> Option<usize> {
    memchr(b'\n', bytes).map(|end| end + 1)
}

/// Splits `LOG:  message` into its word and the message, without the end of the line.
fn worded(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = text.iter().take(10).position(|byte| *byte == b':')?;
    let (word, rest) = text.split_at(length);
    let is_word = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let rest = rest.strip_prefix(b":  ")?;
    is_word.then(|| (word, rest.strip_suffix(b"\n").unwrap_or(rest)))
}

/// Returns what stands before the word of the first entry in this line, such as `LOG`. The message after the word may
/// contain secrets.
pub fn written_prefix(line: &[u8]) -> Option<&[u8]> {
    let starts = (1..line.len()).filter(|&at| !line[at - 1].is_ascii_alphanumeric());
    starts.take(200).find(|&at| worded(&line[at..]).is_some_and(|(word, _)| is_first(word))).map(|at| &line[..at])
}

/// Whether a line with this word begins an entry. Lines with other words belong to the entry before them.
fn is_first(word: &[u8]) -> bool {
    matches!(word, b"LOG" | b"ERROR" | b"FATAL" | b"PANIC" | b"WARNING" | b"NOTICE" | b"INFO")
        || word.starts_with(b"DEBUG")
}

/// Removes the tab after each line break.
fn untabbed(text: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(text, b"\n\t").is_none() {
        return Cow::Borrowed(text);
    }
    let mut whole = Vec::with_capacity(text.len());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if number > 0 {
            whole.push(b'\n');
        }
        whole.extend_from_slice(if number > 0 { line.strip_prefix(b"\t").unwrap_or(line) } else { line });
    }
    Cow::Owned(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(prefix: &str, log: &str) -> Vec<(String, String, u64)> {
        let (prefix, mut clock) = (Prefix::read(prefix).unwrap(), Clock::default());
        let (mut found, mut at) = (Vec::new(), 0);
        while at < log.len() {
            let length = match prefix.length(&log.as_bytes()[at..], true, &mut clock) {
                Parsed::Entry(length) => length,
                Parsed::Unknown(length) => {
                    at += length;
                    continue;
                }
                Parsed::Incomplete => break,
            };
            let (entry, _) = prefix.entry(&log.as_bytes()[at..at + length], &mut clock).unwrap();
            let words = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            found.push((words(&entry.message), words(&entry.detail), entry.session));
            at += length;
        }
        found
    }

    #[test]
    fn entries_are_lines_with_a_prefix_and_what_follows_them() {
        let log = "2026-11-28 17:51:00.426 UTC [7] LOG:  ready\n\
                   garbage\n\
                   2026-11-28 17:51:00.426 UTC [8] app@shop web x LOG:  execute a: select\n\t$1\n\
                   2026-11-28 17:51:00.426 UTC [8] app@shop web x DETAIL:  Parameters: $1 = '1'\n\
                   2026-11-28 17:51:00.427 UTC [8] app@shop web x LOG:  duration: 1 ms\n";
        assert_eq!(
            entries("%m [%p] %q%u@%d %a ", log),
            [
                ("ready".into(), String::new(), 7),
                ("execute a: select\n$1".into(), "Parameters: $1 = '1'".into(), 8),
                ("duration: 1 ms".into(), String::new(), 8),
            ]
        );
        let cloud = "2026-11-28 17:51:00 UTC:10.0.0.1(5):app@shop:[77]:LOG:  statement: select 1\n";
        assert_eq!(entries("%t:%r:%u@%d:[%p]:", cloud), [("statement: select 1".into(), String::new(), 77)]);
        let seconds = "1795888260.426 6b0b1484.13a7 LOG:  x\n";
        assert_eq!(entries("%n %c ", seconds), [("x".into(), String::new(), 0x6b0b_1484_0000_13a7)]);
    }

    #[test]
    fn a_prefix_without_time_or_session_is_refused() {
        for (prefix, cause) in [
            ("[%p] ", "no time"),
            ("%m ", "neither %c nor %p"),
            ("%m %p%u ", "without a character in between"),
            ("%m %p %z", "%z"),
            ("%m [%p] %", "ends with %"),
        ] {
            let error = Prefix::read(prefix).unwrap_err();
            assert!(error.cause.contains(cause), "{prefix}: {error}");
        }
    }
}
