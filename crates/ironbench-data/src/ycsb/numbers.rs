//! Chooses the numbers of the records that operations read and change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pgbench_script::Random;
use serde::{Deserialize, Serialize};

use super::hash;
use crate::distribution::Zipfian;

/// YCSB's constant of the Zipf distribution.
const EXPONENT: f64 = 0.99;
/// Number of ranks from which YCSB draws, however many records there are. The number of the record is the hash of the
/// rank, modulo the number of records. Popular records are therefore spread over the table.
const RANKS: u64 = 10_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// A choice in which some records are popular, wherever they are in the table.
    Zipfian,
    /// A choice in which the most recently inserted records are popular.
    Latest,
    Uniform,
}

/// Numbers of the records that a drive's clients have inserted, in the order of the acknowledgements.
#[derive(Debug, Default)]
pub(super) struct Inserted(Mutex<Vec<u64>>);

impl Inserted {
    fn numbers(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, number: u64) {
        self.numbers().push(number);
    }
}

/// The choice of records by one client.
#[derive(Debug)]
pub(super) struct RecordChooser {
    distribution: Distribution,
    /// Number of loaded records.
    records: u64,
    /// Number of records that the Zipf distribution covers, including records that may be inserted later.
    space: u64,
    /// Number of ranks. The next field is the distribution of the ranks.
    ranks: u64,
    zipfian: Zipfian,
}

impl RecordChooser {
    /// Creates the choice. `grows` means that operations insert records. In this case the Zipf distribution also covers
    /// records that do not exist yet, a tenth of the number of loaded records. As in YCSB, the same records therefore
    /// stay popular.
    pub(super) fn new(distribution: Distribution, records: u64, grows: bool) -> Self {
        let space = if grows { records + records.div_ceil(10) } else { records };
        let ranks = if distribution == Distribution::Latest { records } else { RANKS };
        Self { distribution, records, space, ranks, zipfian: Zipfian::new(ranks as f64, EXPONENT) }
    }

    /// Draws the number of an existing record. The record was loaded, or inserted by a client.
    pub(super) fn draw(&mut self, inserted: &Inserted, random: &mut Random) -> u64 {
        match self.distribution {
            Distribution::Uniform => random.up_to(self.records - 1),
            Distribution::Zipfian => loop {
                let number = hash(self.zipfian.draw(random) as u64) % self.space;
                let Some(later) = number.checked_sub(self.records) else { return number };
                if let Some(&number) = inserted.numbers().get(later as usize) {
                    return number;
                }
            },
            Distribution::Latest => {
                let numbers = inserted.numbers();
                let count = self.records + numbers.len() as u64;
                if self.ranks != count {
                    (self.ranks, self.zipfian) = (count, Zipfian::new(count as f64, EXPONENT));
                }
                let at = count - 1 - self.zipfian.draw(random) as u64;
                at.checked_sub(self.records).map_or(at, |later| numbers[later as usize])
            }
        }
    }
}
