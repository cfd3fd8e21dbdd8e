//! Parses the format `csvlog`, which has one record per entry, with 22 to 26 columns, depending on the version
//! (PostgreSQL 18 documentation, 19.8.4 "Using CSV-Format Log Output").

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use crate::entry::{Clock, Entry, Severity, decimal, session_id, virtual_transaction};

/// Possible numbers of columns. The first versions of the format had 22. PostgreSQL 9.0 added application_name, 13
/// added backend_type, and 14 added leader_pid and query_id.
const COLUMNS: Range<usize> = 22..27;

mod column {
    pub const TIME: usize = 0;
    pub const USER: usize = 1;
    pub const DATABASE: usize = 2;
    pub const SESSION: usize = 5;
    pub const LINE: usize = 6;
    pub const STATE: usize = 7;
    pub const TRANSACTION: usize = 9;
    pub const SEVERITY: usize = 11;
    pub const SQLSTATE: usize = 12;
    pub const MESSAGE: usize = 13;
    pub const DETAIL: usize = 14;
    pub const CONTEXT: usize = 18;
    pub const STATEMENT: usize = 19;
    pub const APPLICATION: usize = 22;
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The record is complete. This is its length, with its end of line.
    Record(usize),
    /// The record continues after the bytes.
    Incomplete,
    Malformed,
}

/// The fields of one record.
#[derive(Debug, Default)]
pub struct Record {
    /// Range of each field, and whether the field contains doubled quotes.
    fields: Vec<(Range<usize>, bool)>,
}

impl Record {
    /// Splits the record at the start of the bytes into its fields.
    pub fn split(&mut self, bytes: &[u8]) -> Parsed {
        self.fields.clear();
        let mut at = 0;
        loop {
            let (field, doubled, end) = match bytes.get(at) {
                None => return Parsed::Incomplete,
                Some(b'"') => match quoted(bytes, at + 1) {
                    Some((end, doubled)) => (at + 1..end, doubled, end + 1),
                    None => return Parsed::Incomplete,
                },
                Some(_) => {
                    let ends = |byte: &u8| *byte == b',' || *byte == b'\n';
                    let Some(length) = bytes[at..].iter().position(ends) else { return Parsed::Incomplete };
                    (at..at + length, false, at + length)
                }
            };
            self.fields.push((field, doubled));
            match bytes.get(end) {
                Some(b',') if self.fields.len() < COLUMNS.end => at = end + 1,
                Some(b'\n') => return Parsed::Record(end + 1),
                None => return Parsed::Incomplete,
                Some(_) => return Parsed::Malformed,
            }
        }
    }

    /// Whether the record looks like a log entry: it has a known number of columns, and a valid time, session ID and
    /// line number.
    pub fn is_entry(&self, bytes: &[u8], clock: &mut Clock) -> bool {
        let raw = |column: usize| &bytes[self.fields[column].0.clone()];
        COLUMNS.contains(&self.fields.len())
            && clock.read(raw(column::TIME)).is_some()
            && session_id(raw(column::SESSION)).is_some()
            && decimal(raw(column::LINE)).is_some()
    }

    /// Returns the entry, and its number within the session. Returns None if the record is not a log entry.
    pub fn entry<'a>(&self, bytes: &'a [u8], clock: &mut Clock) -> Option<(Entry<'a>, u32)> {
        if !COLUMNS.contains(&self.fields.len()) {
            return None;
        }
        let raw = |column: usize| &bytes[self.fields[column].0.clone()];
        let text = |column: usize| match self.fields.get(column) {
            Some((_, true)) => Cow::Owned(undoubled(raw(column))),
            Some(_) => Cow::Borrowed(raw(column)),
            None => Cow::default(),
        };
        let entry = Entry {
            at_us: clock.read(raw(column::TIME))?,
            session: session_id(raw(column::SESSION))?,
            has_start: true,
            user: text(column::USER),
            database: text(column::DATABASE),
            application: text(column::APPLICATION),
            state: text(column::STATE),
            transaction: virtual_transaction(raw(column::TRANSACTION)),
            severity: Severity::of(raw(column::SEVERITY)),
            sqlstate: text(column::SQLSTATE),
            message: text(column::MESSAGE),
            detail: text(column::DETAIL),
            context: text(column::CONTEXT),
            statement: text(column::STATEMENT),
        };
        Some((entry, decimal(raw(column::LINE))? as u32))
    }
}

/// Returns the end of a quoted field, and whether the field contains doubled quotes. Returns None if it is not closed.
fn quoted(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut doubled) = (start, false);
    loop {
        at += memchr(b'"', &bytes[at..])?;
        // If the bytes end here, a second quote may still follow, so the end of the field is not known yet.
        if *bytes.get(at + 1)? != b'"' {
            return Some((at, doubled));
        }
        (at, doubled) = (at + 2, true);
    }
}

fn undoubled(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(at) = memchr(b'"', rest) {
        text.extend_from_slice(&rest[..=at]);
        rest = &rest[(at + 2).min(rest.len())..];
    }
    text.extend_from_slice(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Parsed, Vec<String>) {
        let mut record = Record::default();
        let parsed = record.split(text.as_bytes());
        let field = |(at, _): &(Range<usize>, bool)| text[at.clone()].to_owned();
        (parsed, record.fields.iter().map(field).collect())
    }

    #[test]
    fn a_record_ends_at_the_first_line_end_outside_of_quotes() {
        let (parsed, fields) = split("a,,\"b\"\"c\nd\",e\nrest");
        assert_eq!((parsed, fields), (Parsed::Record(14), ["a", "", "b\"\"c\nd", "e"].map(String::from).to_vec()));
        assert_eq!(split("a,\"b").0, Parsed::Incomplete);
        assert_eq!(split("a,\"b\"").0, Parsed::Incomplete);
        assert_eq!(split("a,\"b\"c\n").0, Parsed::Malformed);
        assert_eq!(undoubled(b"a\"\"b\"\""), b"a\"b\"");
    }
}
