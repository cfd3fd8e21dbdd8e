//! How values become bytes: an engine's own form of a row behind one small trait.

use std::fmt::Write as _;

/// Takes the values of rows in the order of the table's columns, each as the type its column has on PostgreSQL.
pub trait Sink {
    type Error;

    fn smallint(&mut self, value: i16);
    fn integer(&mut self, value: i32);
    fn bigint(&mut self, value: i64);
    /// A number with two digits after the point, counted in hundredths.
    fn decimal(&mut self, hundredths: i64);
    fn text(&mut self, value: &str);
    /// A day, counted from 1970-01-01.
    fn date(&mut self, day: i32);
    /// A second, counted from 1970-01-01.
    fn timestamp(&mut self, second: i64);
    /// A millisecond, counted from 1970-01-01; its second, where an engine's form has nothing finer.
    fn moment(&mut self, millisecond: i64) {
        self.timestamp(millisecond.div_euclid(1000));
    }
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
    rows: u64,
    phrase: Phrase,
}

/// Large enough that the system call per piece costs little, small enough to stay in the processor's cache.
const PIECE: usize = 64 * 1024;

impl<F, E> CopyText<F>
where
    F: FnMut(&[u8], u64) -> Result<(), E>,
{
    /// `hand_on` gets bytes and the number of rows that ended in them.
    pub fn new(hand_on: F) -> Self {
        Self { piece: Vec::with_capacity(PIECE + 4096), hand_on, rows: 0, phrase: Phrase::default() }
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

    fn smallint(&mut self, value: i16) {
        self.bigint(value.into());
    }

    fn integer(&mut self, value: i32) {
        self.bigint(value.into());
    }

    fn bigint(&mut self, value: i64) {
        self.piece.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.piece.push(b'\t');
    }

    fn decimal(&mut self, hundredths: i64) {
        if hundredths < 0 {
            self.piece.push(b'-');
        }
        let value = hundredths.unsigned_abs();
        self.piece.extend_from_slice(itoa::Buffer::new().format(value / 100).as_bytes());
        let rest = (value % 100) as u8;
        self.piece.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10, b'\t']);
    }

    fn text(&mut self, value: &str) {
        debug_assert!(!value.contains(['\t', '\n', '\r', '\\']), "{value:?} needs escapes");
        self.piece.extend_from_slice(value.as_bytes());
        self.piece.push(b'\t');
    }

    fn date(&mut self, day: i32) {
        self.piece.extend_from_slice(self.phrase.date(day.into()).as_bytes());
        self.piece.push(b'\t');
    }

    fn timestamp(&mut self, second: i64) {
        self.piece.extend_from_slice(self.phrase.timestamp(second).as_bytes());
        self.piece.push(b'\t');
    }

    fn moment(&mut self, millisecond: i64) {
        self.piece.extend_from_slice(self.phrase.moment(millisecond).as_bytes());
        self.piece.push(b'\t');
    }

    fn end_row(&mut self) -> Result<(), E> {
        if let Some(last) = self.piece.last_mut() {
            *last = b'\n';
        }
        self.rows += 1;
        if self.piece.len() >= PIECE { self.finish() } else { Ok(()) }
    }
}

/// Rows in PostgreSQL's COPY binary format, handed on in pieces of about `PIECE` bytes.
///
/// The server takes it with a tenth less CPU than text, a third less where there are timestamps, and numbers need no
/// formatting. Format: PostgreSQL 18 documentation, COPY, "Binary Format"; the forms of types are those of their
/// `…recv` functions: integers in network order, days and microseconds from 2000-01-01.
pub struct CopyBinary<F> {
    piece: Vec<u8>,
    hand_on: F,
    rows: u64,
    columns: [u8; 2],
}

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// In place of the number of columns of a row that is not there.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH: i32 = 10_957;

impl<F, E> CopyBinary<F>
where
    F: FnMut(&[u8], u64) -> Result<(), E>,
{
    /// `hand_on` as in [`CopyText::new`]; every row has so many `columns`.
    pub fn new(columns: usize, hand_on: F) -> Self {
        let columns = (columns as u16).to_be_bytes();
        let mut piece = Vec::with_capacity(PIECE + 4096);
        piece.extend_from_slice(HEADER);
        piece.extend_from_slice(&columns);
        Self { piece, hand_on, rows: 0, columns }
    }

    /// Ends the data and hands on what is left. Must be called after the last row.
    pub fn finish(&mut self) -> Result<(), E> {
        self.piece.truncate(self.piece.len() - self.columns.len());
        self.piece.extend_from_slice(&TRAILER);
        (self.hand_on)(&self.piece, self.rows)
    }
}

impl<F, E> Sink for CopyBinary<F>
where
    F: FnMut(&[u8], u64) -> Result<(), E>,
{
    type Error = E;

    fn smallint(&mut self, value: i16) {
        let [a, b] = value.to_be_bytes();
        self.piece.extend_from_slice(&[0, 0, 0, 2, a, b]);
    }

    fn integer(&mut self, value: i32) {
        let [a, b, c, d] = value.to_be_bytes();
        self.piece.extend_from_slice(&[0, 0, 0, 4, a, b, c, d]);
    }

    fn bigint(&mut self, value: i64) {
        let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
        self.piece.extend_from_slice(&[0, 0, 0, 8, a, b, c, d, e, f, g, h]);
    }

    fn decimal(&mut self, hundredths: i64) {
        numeric(&mut self.piece, hundredths);
    }

    fn text(&mut self, value: &str) {
        self.piece.extend_from_slice(&(value.len() as i32).to_be_bytes());
        self.piece.extend_from_slice(value.as_bytes());
    }

    fn date(&mut self, day: i32) {
        self.integer(day - EPOCH);
    }

    fn timestamp(&mut self, second: i64) {
        self.bigint((second - i64::from(EPOCH) * 86_400) * 1_000_000);
    }

    fn moment(&mut self, millisecond: i64) {
        self.bigint((millisecond - i64::from(EPOCH) * 86_400_000) * 1000);
    }

    fn end_row(&mut self) -> Result<(), E> {
        self.rows += 1;
        let handed = if self.piece.len() >= PIECE {
            let handed = (self.hand_on)(&self.piece, self.rows);
            self.piece.clear();
            self.rows = 0;
            handed
        } else {
            Ok(())
        };
        self.piece.extend_from_slice(&self.columns);
        handed
    }
}

/// Digits of PostgreSQL's numeric: four of base 10 000 before the point and one after it, and which of them are needed:
/// zeros at both ends are left out (numeric_send in PostgreSQL's numeric.c sends them so). Up to 10^14 hundredths.
fn base_10000(hundredths: u64) -> ([u16; 5], std::ops::Range<usize>) {
    let mut whole = hundredths / 100;
    let mut digits = [0, 0, 0, 0, (hundredths % 100 * 100) as u16];
    for digit in digits[..4].iter_mut().rev() {
        *digit = (whole % 10_000) as u16;
        whole /= 10_000;
    }
    let end = 5 - digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let start = digits.iter().take_while(|&&digit| digit == 0).count().min(end);
    (digits, start..end)
}

/// A `numeric` of two decimals in PostgreSQL's binary format, behind its length.
pub fn numeric(out: &mut Vec<u8>, hundredths: i64) {
    let (digits, places) = base_10000(hundredths.unsigned_abs());
    let digits = &digits[places.start..places.end];
    let negative = if hundredths < 0 { 0x40 } else { 0 };
    let weight = 3 - places.start as i16;
    out.extend_from_slice(&(8 + 2 * digits.len() as i32).to_be_bytes());
    out.extend_from_slice(&(digits.len() as u16).to_be_bytes());
    out.extend_from_slice(&if digits.is_empty() { 0 } else { weight }.to_be_bytes());
    out.extend_from_slice(&[negative, 0, 0, 2]);
    digits.iter().for_each(|digit| out.extend_from_slice(&digit.to_be_bytes()));
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

    /// `YYYY-MM-DD` of a day counted from 1970-01-01, in the years 0 to 9999.
    pub fn date(&mut self, day: i64) -> &str {
        let (year, month, day) = civil(day);
        self.text.clear();
        self.two_digits(&[year / 100, year % 100], "");
        self.two_digits(&[month, day], "-");
        &self.text
    }

    /// `YYYY-MM-DD HH:MM:SS` of a second counted from 1970-01-01.
    pub fn timestamp(&mut self, second: i64) -> &str {
        let rest = second.rem_euclid(86_400);
        self.date(second.div_euclid(86_400));
        self.two_digits(&[rest / 3600], " ");
        self.two_digits(&[rest / 60 % 60, rest % 60], ":");
        &self.text
    }

    /// `YYYY-MM-DD HH:MM:SS.mmm` of a millisecond counted from 1970-01-01.
    pub fn moment(&mut self, millisecond: i64) -> &str {
        self.timestamp(millisecond.div_euclid(1000));
        let rest = millisecond.rem_euclid(1000);
        self.text.push('.');
        self.text.push(char::from(b'0' + (rest / 100) as u8));
        self.two_digits(&[rest % 100], "");
        &self.text
    }

    /// Each number with two digits, `before` it; a third of the time of making rows went into formatting these.
    fn two_digits(&mut self, numbers: &[i64], before: &str) {
        for &number in numbers {
            self.text.push_str(before);
            self.text.push(char::from(b'0' + (number / 10) as u8));
            self.text.push(char::from(b'0' + (number % 10) as u8));
        }
    }
}

/// Year, month and day of the proleptic Gregorian calendar, by counting from 1 March so that the leap day is last in
/// its year (era of 400 years = 146 097 days).
pub(crate) fn civil(day: i64) -> (i64, i64, i64) {
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
        assert_eq!(phrase.moment(951_868_799_007), "2000-02-29 23:59:59.007");
    }

    #[test]
    fn rows_are_in_copy_binary_format() {
        let mut out = Vec::new();
        let mut sink = CopyBinary::new(2, |bytes: &[u8], _| {
            out.extend_from_slice(bytes);
            Ok::<(), Infallible>(())
        });
        sink.smallint(-2);
        sink.timestamp(946_684_801);
        sink.end_row().unwrap();
        sink.finish().unwrap();
        let mut expected = b"PGCOPY\n\xff\r\n\0".to_vec();
        expected.extend([0; 8]);
        expected.extend([0, 2, 0, 0, 0, 2, 0xff, 0xfe, 0, 0, 0, 8]);
        expected.extend(1_000_000i64.to_be_bytes());
        expected.extend([0xff, 0xff]);
        assert_eq!(out, expected);
    }

    #[test]
    fn decimals_are_in_the_digits_of_numeric() {
        let mut out = Vec::new();
        let mut sink = CopyBinary::new(1, |bytes: &[u8], _| {
            out.extend_from_slice(bytes);
            Ok::<(), Infallible>(())
        });
        for hundredths in [0, 4, -99_999, 2_471_035, 1_000_000, 123_456_789_012_345] {
            sink.decimal(hundredths);
            sink.end_row().unwrap();
        }
        sink.finish().unwrap();
        let words = |digits: &[u16], weight: i16, sign: u16| {
            let mut bytes = (8 + 2 * digits.len() as i32).to_be_bytes().to_vec();
            let head = [digits.len() as u16, weight as u16, sign, 2];
            bytes.extend(head.iter().chain(digits).flat_map(|word| word.to_be_bytes()));
            bytes
        };
        // As `select n::numeric(15, 2)` answers in binary.
        let expected = [
            words(&[], 0, 0),
            words(&[400], -1, 0),
            words(&[999, 9900], 0, 0x4000),
            words(&[2, 4710, 3500], 1, 0),
            words(&[1], 1, 0),
            words(&[1, 2345, 6789, 123, 4500], 3, 0),
        ];
        let mut rest = &out[HEADER.len()..];
        for value in expected {
            assert_eq!(rest[..2], [0, 1]);
            assert_eq!(&rest[2..2 + value.len()], value);
            rest = &rest[2 + value.len()..];
        }
    }

    #[test]
    fn numbers_of_every_length_are_written_as_they_are() {
        let mut numbers = vec![0i64, i64::MAX, i64::MIN, -1];
        numbers.extend((0..18).flat_map(|power| [10i64.pow(power), 10i64.pow(power) - 1, 3 * 10i64.pow(power) + 7]));
        let mut out = Vec::new();
        let mut sink = CopyText::new(|bytes: &[u8], _| {
            out.extend_from_slice(bytes);
            Ok::<(), Infallible>(())
        });
        for &number in &numbers {
            sink.bigint(number);
            sink.end_row().unwrap();
        }
        sink.finish().unwrap();
        let expected: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
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
        sink.date(0);
        sink.timestamp(86_399);
        sink.text("");
        sink.end_row().unwrap();
        sink.finish().unwrap();
        assert_eq!((out.as_slice(), total), (b"-7\ta b\t1970-01-01\t1970-01-01 23:59:59\t\n".as_slice(), 1));
    }
}
