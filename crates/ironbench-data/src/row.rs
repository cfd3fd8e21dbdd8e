//! How values become bytes: an engine's own form of a row behind one small trait.

use std::fmt::Write as _;

/// Takes the values of rows in the order of the table's columns.
pub trait Sink {
    type Error;

    fn integer(&mut self, value: i64);
    fn text(&mut self, value: &str);
    fn null(&mut self);
    /// The row is complete.
    fn end_row(&mut self) -> Result<(), Self::Error>;
}

/// Rows in PostgreSQL's COPY text format, handed on in pieces of about `PIECE` bytes.
///
/// Format: PostgreSQL 18 documentation, COPY, "Text Format". Values with tabs, newlines or backslashes do not occur in
/// our data and are not escaped.
pub struct CopyText<F> {
    piece: Vec<u8>,
    hand_on: F,
    pub rows: u64,
}

/// Large enough that the system call per piece costs little, small enough to stay in the processor's cache.
const PIECE: usize = 64 * 1024;

impl<F, E> CopyText<F>
where
    F: FnMut(&[u8], u64) -> Result<(), E>,
{
    /// `hand_on` gets bytes and the number of rows that ended in them.
    pub fn new(hand_on: F) -> Self {
        Self { piece: Vec::with_capacity(PIECE + 4096), hand_on, rows: 0 }
    }

    /// Hands on what is left. Must be called after the last row.
    pub fn finish(&mut self) -> Result<(), E> {
        let result = (self.hand_on)(&self.piece, self.rows);
        self.piece.clear();
        self.rows = 0;
        result
    }
}

impl<F, E> Sink for CopyText<F>
where
    F: FnMut(&[u8], u64) -> Result<(), E>,
{
    type Error = E;

    fn integer(&mut self, value: i64) {
        self.piece.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.piece.push(b'\t');
    }

    fn text(&mut self, value: &str) {
        debug_assert!(!value.contains(['\t', '\n', '\r', '\\']), "{value:?} needs escapes");
        self.piece.extend_from_slice(value.as_bytes());
        self.piece.push(b'\t');
    }

    fn null(&mut self) {
        self.piece.extend_from_slice(b"\\N\t");
    }

    fn end_row(&mut self) -> Result<(), E> {
        if let Some(last) = self.piece.last_mut() {
            *last = b'\n';
        }
        self.rows += 1;
        if self.piece.len() >= PIECE { self.finish() } else { Ok(()) }
    }
}

/// A short text built without allocating anew for every row.
#[derive(Default)]
pub struct Phrase {
    text: String,
}

impl Phrase {
    /// The text of `arguments`, valid until the next call.
    pub fn of(&mut self, arguments: std::fmt::Arguments<'_>) -> &str {
        self.text.clear();
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
        &self.text
    }

    /// `YYYY-MM-DD` of a day counted from 1970-01-01.
    pub fn date(&mut self, day: i64) -> &str {
        let (year, month, day) = civil(day);
        self.of(format_args!("{year:04}-{month:02}-{day:02}"))
    }

    /// `YYYY-MM-DD HH:MM:SS` of a second counted from 1970-01-01.
    pub fn timestamp(&mut self, second: i64) -> &str {
        let (year, month, day) = civil(second.div_euclid(86_400));
        let rest = second.rem_euclid(86_400);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        self.of(format_args!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"))
    }
}

/// Year, month and day of the proleptic Gregorian calendar, by counting from 1 March so that the leap day is last in
/// its year (era of 400 years = 146 097 days).
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let mut phrase = Phrase::default();
        assert_eq!(phrase.date(0), "1970-01-01");
        assert_eq!(phrase.date(11_016), "2000-02-29");
        assert_eq!(phrase.date(20_513), "2026-03-01");
        assert_eq!(phrase.timestamp(951_868_799), "2000-02-29 23:59:59");
    }

    #[test]
    fn rows_are_in_copy_text_format() {
        let mut out = Vec::new();
        let mut total = 0;
        let mut sink = CopyText::new(|bytes: &[u8], rows| {
            out.extend_from_slice(bytes);
            total += rows;
            Ok::<(), Infallible>(())
        });
        sink.integer(-7);
        sink.text("a b");
        sink.null();
        sink.text("");
        sink.end_row().unwrap();
        sink.finish().unwrap();
        assert_eq!((out.as_slice(), total), (b"-7\ta b\t\\N\t\n".as_slice(), 1));
    }
}
