//! The rows that `pgbench -i` creates. Per unit of scale, these are 1 branch, 10 tellers and 100 000 accounts, all with
//! balance 0. Source: PostgreSQL 18 documentation, pgbench, "What Is the 'Transaction' Actually Performed in pgbench?"
//! and the `--scale` option. Fillers are blank in accounts and NULL elsewhere, as in a database created by `pgbench
//! -i`.

use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::Sink;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pgbench {
    pub scale: u64,
}

pub const TELLERS: u64 = 10;
pub const ACCOUNTS: u64 = 100_000;
/// Lowest scale at which account numbers are bigint (`src/ironbench/workloads/pgbench.py`).
const WIDE_KEYS_FROM: u64 = 20_000;

impl Pgbench {
    pub fn tables(&self) -> Vec<Table> {
        let table = |name, columns, units, bytes_per_unit| Table { name, columns, units, bytes_per_unit };
        vec![
            table("pgbench_accounts", &["aid", "bid", "abalance", "filler"], self.scale * ACCOUNTS, 12),
            table("pgbench_tellers", &["tid", "bid", "tbalance"], self.scale * TELLERS, 10),
            table("pgbench_branches", &["bid", "bbalance"], self.scale, 6),
        ]
    }

    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        for unit in units {
            let key = unit as i64 + 1;
            match table {
                "pgbench_accounts" => {
                    if self.scale < WIDE_KEYS_FROM {
                        sink.integer(key as i32)
                    } else {
                        sink.bigint(key)
                    }
                    sink.integer((unit / ACCOUNTS) as i32 + 1);
                    sink.integer(0);
                    sink.text("");
                }
                "pgbench_tellers" => {
                    sink.integer(key as i32);
                    sink.integer((unit / TELLERS) as i32 + 1);
                    sink.integer(0);
                }
                "pgbench_branches" => {
                    sink.integer(key as i32);
                    sink.integer(0);
                }
                _ => unreachable!("pgbench has no table {table}"),
            }
            sink.end_row()?;
        }
        Ok(())
    }
}
