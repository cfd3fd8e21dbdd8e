//! YCSB's table of records: keys, and rows with ten columns or with one JSON document.
//!
//! Sources: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010;
//! YCSB's wiki, "Core Workloads" and "Core Properties".

mod numbers;
mod operations;

use std::fmt::Write;
use std::sync::LazyLock;

use pgbench_script::fnv1a;
use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::Sink;
use crate::row_rng::RowRng;
use crate::wide::LETTERS;

pub use numbers::Distribution;
pub use operations::{Operations, Options};

pub const TABLE: &str = "usertable";
pub const MAX_FIELDS: u64 = 100;
const FIELD: u64 = 101;
/// Number of characters generated from one random number.
const LETTERS_PER_NUMBER: usize = 8;

/// Names of the columns: the key, and `field0` to `field99`.
static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let field = |number: u64| &*format!("field{number}").leak();
    std::iter::once("ycsb_key").chain((0..MAX_FIELDS).map(field)).collect()
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A text column for each field.
    Columns,
    /// One JSON column, `fields`: an object with a text for each field.
    Json,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ycsb {
    pub records: u64,
    /// Number of fields, at most `MAX_FIELDS`.
    pub fields: u64,
    /// Number of characters in a field.
    pub field_length: usize,
    pub layout: Layout,
}

/// Returns YCSB's hash of a number: FNV-1a over its eight bytes, without the sign.
pub fn hash(number: u64) -> u64 {
    fnv1a(number as i64, 0).unsigned_abs()
}

/// Appends the key of the record with this number, from 0. Consecutive records are far apart in the order of keys.
pub fn write_key(number: u64, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "user{}", hash(number));
}

/// Appends the value of a field. The letters are derived from the random numbers of `next`, and need no escaping in any
/// format, including JSON and quoted SQL.
fn write_value(length: usize, out: &mut String, mut next: impl FnMut() -> u64) {
    let mut left = length;
    while left > 0 {
        let letters = next().to_le_bytes().map(|byte| char::from(LETTERS[usize::from(byte & 63)]));
        out.extend(&letters[..left.min(LETTERS_PER_NUMBER)]);
        left = left.saturating_sub(LETTERS_PER_NUMBER);
    }
}

impl Ycsb {
    pub fn tables(&self) -> Vec<Table> {
        let columns = match self.layout {
            Layout::Columns => &COLUMNS[..=self.fields as usize],
            Layout::Json => &["ycsb_key", "fields"],
        };
        let bytes_per_unit = 24 + self.fields * (self.field_length as u64 + 1);
        vec![Table { name: TABLE, columns, units: self.records, bytes_per_unit }]
    }

    /// Emits the records with the numbers `units`.
    pub fn emit<S: Sink>(&self, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        let mut text = String::new();
        for number in units {
            let mut rng = RowRng::new(0, FIELD, number);
            text.clear();
            write_key(number, &mut text);
            sink.text(&text);
            match self.layout {
                Layout::Columns => {
                    for _ in 0..self.fields {
                        text.clear();
                        write_value(self.field_length, &mut text, || rng.draw());
                        sink.text(&text);
                    }
                }
                Layout::Json => {
                    text.clear();
                    self.write_document(&mut text, || rng.draw());
                    sink.json(&text);
                }
            }
            sink.end_row()?;
        }
        Ok(())
    }

    /// Appends a JSON object with all fields.
    fn write_document(&self, out: &mut String, mut next: impl FnMut() -> u64) {
        for (place, name) in COLUMNS[1..=self.fields as usize].iter().enumerate() {
            let begin = if place == 0 { '{' } else { ',' };
            // Writing to a String cannot fail.
            let _ = write!(out, "{begin}\"{name}\":\"");
            write_value(self.field_length, out, &mut next);
            out.push('"');
        }
        out.push('}');
    }
}

#[cfg(test)]
mod tests;
