//! The tables of sysbench's OLTP tests, whose rows have a random number `k` and two texts of random digits.
//!
//! Names, columns and patterns are the same as for `sysbench oltp_read_write prepare` (version 1.0.20), and `k` has
//! sysbench's default distribution. The values themselves differ. In sysbench, they are different in every run.

use std::ops::Range;
use std::sync::LazyLock;

use pgbench_script::Random;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, Kind};
use crate::inputs::write_digits;
use crate::plan::Table;
use crate::row::Sink;
use crate::row_rng::RowRng;

/// Maximum number of tables (`src/ironbench/workloads/sysbench/tables.py`).
pub const MAX_TABLES: usize = 1000;
const PREFIX: &str = "sbtest";
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| (1..=MAX_TABLES).map(|number| format!("{PREFIX}{number}")).collect());
const C: &str = concat!(
    "###########-###########-###########-###########-###########-",
    "###########-###########-###########-###########-###########"
);
const PAD: &str = "###########-###########-###########-###########-###########";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sysbench {
    pub tables: usize,
    /// Number of rows of each table.
    pub table_size: u64,
}

impl Sysbench {
    pub fn tables(&self) -> Vec<Table> {
        let table =
            |name| Table { name, columns: &["id", "k", "c", "pad"], units: self.table_size, bytes_per_unit: 195 };
        NAMES.iter().take(self.tables).map(|name| table(name.as_str())).collect()
    }

    pub fn emit<S: Sink>(&self, table: &str, units: Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        let number = table.strip_prefix(PREFIX).and_then(|number| number.parse().ok()).expect("a table of `tables`");
        let of_k = Distribution::new(Kind::Special, 1, self.table_size as i64);
        let mut text = Vec::new();
        for unit in units {
            let mut random = Random::new(RowRng::new(0, number, unit).nth(0));
            sink.integer(unit as i32 + 1);
            sink.integer(of_k.draw(&mut random) as i32);
            for pattern in [C, PAD] {
                text.clear();
                write_digits(pattern, &mut random, &mut text);
                sink.text(std::str::from_utf8(&text).expect("digits are ASCII"));
            }
            sink.end_row()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Generator;

    fn rows(table: &str) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        let generator = Generator::Sysbench(Sysbench { tables: 2, table_size: 5000 });
        crate::write_text(&generator, table, 3, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn rows_are_those_of_sysbench_and_tables_differ() {
        let (first, second) = (rows("sbtest1"), rows("sbtest2"));
        assert_eq!((first.len(), second.len()), (5000, 5000));
        let shape = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "#");
        for (at, row) in first.iter().enumerate() {
            assert_eq!(row[0], (at + 1).to_string());
            assert_eq!((shape(&row[2]), shape(&row[3])), (C.to_owned(), PAD.to_owned()));
        }
        let k = |rows: &[Vec<String>]| rows.iter().map(|row| row[1].parse::<i64>().unwrap()).collect::<Vec<_>>();
        // Three quarters of all values of `k`, and a few of the others, are in the middle.
        let hot = k(&first).iter().filter(|k| (2475..=2526).contains(*k)).count();
        assert!((3650..3950).contains(&hot), "{hot}");
        assert!(k(&first).iter().all(|k| (1..=5000).contains(k)));
        assert_ne!(k(&first), k(&second));
        let texts: std::collections::BTreeSet<_> = first.iter().chain(&second).map(|row| &row[2]).collect();
        assert_eq!(texts.len(), 10_000);
    }
}
