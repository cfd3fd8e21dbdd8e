//! Wide rows of a single table, used by population, backup and maintenance workloads.
//!
//! A row is a pure function of its number, so checksums of the table are known without reading it.

use std::io::Write;
use std::ops::Range;

use ironbench_core::wire::digest::digest;
use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::Sink;
use crate::row_rng::{RowRng, mix};

pub const TABLE: &str = "wide_row";
const KEYED: &[&str] = &["id", "number", "amount", "moment", "payload"];
const AMOUNTS: u64 = 1_000_000;
/// 2025-01-01 in seconds since 1970-01-01.
const FIRST_MOMENT: i64 = 1_735_689_600;
/// Letters of payloads, with six bits each. No letter needs escaping in any format.
pub(crate) const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
/// Number of characters generated from one random number.
const LETTERS_PER_NUMBER: u64 = 8;

/// The source of a row's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// The engine generates the key.
    Identity,
    /// The key is the number of the row.
    Number,
    /// The keys are random 64-bit numbers without duplicates.
    Random,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideTable {
    pub count: u64,
    /// Number of characters in the payload.
    pub width: u64,
    pub keys: Keys,
    pub seed: u64,
}

/// Uses of random numbers. For the same row number, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Amount = 101,
    Payload,
}

/// Checksums over all rows. `content` is the sum of the digests of all columns except the key, and `keys` is the sum of
/// the low bits of the keys. The module `src/ironbench/workloads/wide_table.py` computes the same sums in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Checksums {
    pub rows: u64,
    pub content: i64,
    pub keys: i64,
}

impl WideTable {
    pub fn columns(&self) -> &'static [&'static str] {
        if self.keys == Keys::Identity { &KEYED[1..] } else { KEYED }
    }

    pub fn tables(&self) -> Vec<Table> {
        vec![Table { name: TABLE, columns: self.columns(), units: self.count, bytes_per_unit: self.width + 40 }]
    }

    /// Emits the rows with the numbers `units.start + 1..=units.end`.
    pub fn emit<S: Sink>(&self, units: Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        let mut payload = Vec::new();
        for unit in units {
            self.row(unit + 1, &mut payload, sink);
            sink.end_row()?;
        }
        Ok(())
    }

    /// Emits the values of the row with this number, from 1.
    pub fn row<S: Sink>(&self, number: u64, payload: &mut Vec<u8>, sink: &mut S) {
        if self.keys != Keys::Identity {
            sink.bigint(self.key(number));
        }
        sink.bigint(number as i64);
        sink.integer(self.amount(number));
        sink.timestamp(FIRST_MOMENT + number as i64);
        self.payload(number, payload);
        sink.text(std::str::from_utf8(payload).expect("letters are ASCII"));
    }

    /// Returns the size of a row's values in PostgreSQL's binary format, without lengths.
    pub fn row_bytes(&self) -> u64 {
        self.width + if self.keys == Keys::Identity { 20 } else { 28 }
    }

    pub fn key(&self, number: u64) -> i64 {
        match self.keys {
            Keys::Identity | Keys::Number => number as i64,
            Keys::Random => mix(number ^ mix(self.seed)) as i64,
        }
    }

    /// Computes the checksums, with as many threads as there are processors.
    pub fn sums(&self) -> Checksums {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let share = |thread: u64| 1 + self.count * thread / threads..1 + self.count * (thread + 1) / threads;
        std::thread::scope(|scope| {
            let working: Vec<_> = (0..threads).map(|thread| scope.spawn(move || self.sums_of(share(thread)))).collect();
            working.into_iter().map(|one| one.join().expect("adding up does not panic")).fold(
                Checksums { rows: 0, content: 0, keys: 0 },
                |sum, part| Checksums {
                    rows: sum.rows + part.rows,
                    content: sum.content + part.content,
                    keys: sum.keys + part.keys,
                },
            )
        })
    }

    fn sums_of(&self, numbers: Range<u64>) -> Checksums {
        let mut sums = Checksums { rows: numbers.end - numbers.start, content: 0, keys: 0 };
        let (mut payload, mut text) = (Vec::new(), Vec::new());
        for number in numbers {
            self.payload(number, &mut payload);
            let (amount, moment) = (self.amount(number), FIRST_MOMENT + number as i64);
            text.clear();
            write!(text, "{number} {amount} {moment} ").expect("a vector takes all");
            text.extend_from_slice(&payload);
            sums.content += digest(&text);
            sums.keys += self.key(number) & 65_535;
        }
        sums
    }

    fn amount(&self, number: u64) -> i32 {
        self.rng(Purpose::Amount, number).below(AMOUNTS) as i32
    }

    fn payload(&self, number: u64, out: &mut Vec<u8>) {
        out.clear();
        let rng = self.rng(Purpose::Payload, number);
        for place in 0..self.width.div_ceil(LETTERS_PER_NUMBER) {
            out.extend_from_slice(&rng.nth(place).to_le_bytes().map(|byte| LETTERS[usize::from(byte & 63)]));
        }
        out.truncate(self.width as usize);
    }

    fn rng(&self, purpose: Purpose, number: u64) -> RowRng {
        RowRng::new(self.seed, purpose as u64, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Generator;
    use proptest::prelude::*;

    fn rows(wide: &WideTable) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        crate::write_text(&Generator::Wide(wide.clone()), TABLE, 3, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn sums_are_those_of_the_rows(count in 0u64..400, width in 1u64..300, seed: u64) {
            let wide = WideTable { count, width, keys: Keys::Random, seed };
            let mut found = Checksums { rows: 0, content: 0, keys: 0 };
            for row in rows(&wide) {
                let moment = FIRST_MOMENT + row[1].parse::<i64>().unwrap();
                found.rows += 1;
                found.content += digest(format!("{} {} {moment} {}", row[1], row[2], row[4]).as_bytes());
                found.keys += row[0].parse::<i64>().unwrap() & 65_535;
            }
            prop_assert_eq!(found, wide.sums());
        }

        #[test]
        fn a_payload_is_as_wide_as_asked_for(width in 1u64..300) {
            let wide = WideTable { count: 3, width, keys: Keys::Number, seed: 1 };
            for (at, row) in rows(&wide).iter().enumerate() {
                prop_assert_eq!(row[4].len() as u64, width);
                prop_assert_eq!(&row[0], &(at + 1).to_string());
            }
        }
    }

    #[test]
    fn an_engine_that_counts_gets_no_keys_and_random_keys_are_all_different() {
        let wide = |keys| WideTable { count: 5000, width: 10, keys, seed: 4 };
        assert_eq!(rows(&wide(Keys::Identity))[0][0], "1");
        assert_eq!(wide(Keys::Identity).columns(), &KEYED[1..]);
        let keys: std::collections::BTreeSet<_> = (1..=5000).map(|number| wide(Keys::Random).key(number)).collect();
        assert_eq!(keys.len(), 5000);
        assert!(keys.first().unwrap() < &0 && keys.last().unwrap() > &0);
    }

    #[test]
    fn an_empty_table_has_no_pieces() {
        let wide = WideTable { count: 0, width: 10, keys: Keys::Identity, seed: 0 };
        assert!(rows(&wide).is_empty());
        assert_eq!(wide.sums(), Checksums { rows: 0, content: 0, keys: 0 });
    }
}
