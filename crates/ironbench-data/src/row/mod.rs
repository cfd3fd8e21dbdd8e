//! Encodes rows in each engine's own format.

mod copy;

use std::fmt::Write as _;

pub use copy::{CopyBinary, CopyText, NULL, numeric, numeric_rate};

/// Encodes the values of rows in the order of the table's columns. Each value has the type of its column on PostgreSQL.
pub trait Sink {
    type Error;

    fn smallint(&mut self, value: i16);
    fn integer(&mut self, value: i32);
    fn bigint(&mut self, value: i64);
    /// Appends a number with two decimals, given in hundredths.
    fn decimal(&mut self, hundredths: i64);
    /// Appends a number with four decimals, given in ten-thousandths.
    fn rate(&mut self, ten_thousandths: i64);
    fn text(&mut self, value: &str);
    /// Appends a day, counted from 1970-01-01.
    fn date(&mut self, day: i32);
    /// Appends a time in seconds since 1970-01-01.
    fn timestamp(&mut self, second: i64);
    /// Appends a time in milliseconds since 1970-01-01. If the format has no fractions of seconds, the time is rounded
    /// down.
    fn moment(&mut self, millisecond: i64) {
        self.timestamp(millisecond.div_euclid(1000));
    }
    fn null(&mut self);
    /// Appends a JSON document.
    fn json(&mut self, value: &str) {
        self.text(value);
    }
    /// Ends the row.
    fn end_row(&mut self) -> Result<(), Self::Error>;
}

/// A buffer for short texts that avoids an allocation for every row.
#[derive(Default)]
pub struct TextBuffer {
    text: String,
}

impl TextBuffer {
    /// Returns the text of `arguments`, valid until the next call.
    pub fn of(&mut self, arguments: std::fmt::Arguments<'_>) -> &str {
        self.text.clear();
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
        &self.text
    }

    /// Formats a day, counted from 1970-01-01, as `YYYY-MM-DD`, for years 0 to 9999.
    pub fn date(&mut self, day: i64) -> &str {
        let (year, month, day) = civil(day);
        self.text.clear();
        self.two_digits(&[year / 100, year % 100], "");
        self.two_digits(&[month, day], "-");
        &self.text
    }

    /// Formats seconds since 1970-01-01 as `YYYY-MM-DD HH:MM:SS`.
    pub fn timestamp(&mut self, second: i64) -> &str {
        let rest = second.rem_euclid(86_400);
        self.date(second.div_euclid(86_400));
        self.two_digits(&[rest / 3600], " ");
        self.two_digits(&[rest / 60 % 60, rest % 60], ":");
        &self.text
    }

    /// Formats milliseconds since 1970-01-01 as `YYYY-MM-DD HH:MM:SS.mmm`.
    pub fn moment(&mut self, millisecond: i64) -> &str {
        self.timestamp(millisecond.div_euclid(1000));
        let rest = millisecond.rem_euclid(1000);
        self.text.push('.');
        self.text.push(char::from(b'0' + (rest / 100) as u8));
        self.two_digits(&[rest % 100], "");
        &self.text
    }

    /// Appends `before` and two digits for each number. With `format!`, this took a third of the time of generating
    /// rows.
    fn two_digits(&mut self, numbers: &[i64], before: &str) {
        for &number in numbers {
            self.text.push_str(before);
            self.text.push(char::from(b'0' + (number / 10) as u8));
            self.text.push(char::from(b'0' + (number % 10) as u8));
        }
    }
}

/// Returns year, month and day in the proleptic Gregorian calendar. Years are counted from 1 March, so that the leap
/// day is the last day of a year (an era of 400 years has 146 097 days).
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

    #[test]
    fn dates_are_those_of_the_calendar() {
        let mut buffer = TextBuffer::default();
        assert_eq!(buffer.date(0), "1970-01-01");
        assert_eq!(buffer.date(11_016), "2000-02-29");
        assert_eq!(buffer.date(20_513), "2026-03-01");
        assert_eq!(buffer.timestamp(951_868_799), "2000-02-29 23:59:59");
        assert_eq!(buffer.moment(951_868_799_007), "2000-02-29 23:59:59.007");
    }
}
