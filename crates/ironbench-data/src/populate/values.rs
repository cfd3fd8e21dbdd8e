//! Encodes the values of a row as parameters of a statement.

use crate::row::{NULL, Sink, numeric, numeric_rate};

/// PostgreSQL's binary format. Each value is preceded by its length, as in a Bind message and in COPY's binary format.
pub struct Binary<'a>(pub &'a mut Vec<u8>);

/// Start of PostgreSQL's epoch, 2000-01-01, in seconds since 1970-01-01.
const EPOCH_S: i64 = 946_684_800;
const DAY_S: i64 = 86_400;

impl Binary<'_> {
    fn value(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.0.extend_from_slice(bytes);
    }
}

impl Sink for Binary<'_> {
    type Error = std::convert::Infallible;

    fn smallint(&mut self, value: i16) {
        self.value(&value.to_be_bytes());
    }

    fn integer(&mut self, value: i32) {
        self.value(&value.to_be_bytes());
    }

    fn bigint(&mut self, value: i64) {
        self.value(&value.to_be_bytes());
    }

    fn decimal(&mut self, hundredths: i64) {
        numeric(self.0, hundredths);
    }

    fn rate(&mut self, ten_thousandths: i64) {
        numeric_rate(self.0, ten_thousandths);
    }

    fn text(&mut self, value: &str) {
        self.value(value.as_bytes());
    }

    fn date(&mut self, day: i32) {
        self.integer(day - (EPOCH_S / DAY_S) as i32);
    }

    fn timestamp(&mut self, second: i64) {
        self.bigint((second - EPOCH_S) * 1_000_000);
    }

    fn null(&mut self) {
        self.0.extend_from_slice(&NULL);
    }

    fn end_row(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
