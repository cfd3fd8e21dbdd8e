//! What a load call gets, as JSON. `src/ironbench/trial/load/rows.py` writes it.

use ironbench_core::drive::plan::Engine;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::brokerage::Brokerage;
use crate::igen::Igen;
use crate::pgbench::Pgbench;
use crate::row::Sink;
use crate::tpch::Tpch;
use crate::wide::Wide;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    pub engine: Engine,
    pub generator: Generator,
    /// How many connections copy at the same time.
    pub connections: usize,
    /// Copied by an earlier load that was interrupted.
    #[serde(default)]
    pub done: Vec<Units>,
    /// Nothing but these pieces: the others are another worker's. Empty: all that is not done.
    #[serde(default)]
    pub only: Vec<Units>,
    /// Run in the transaction of each piece, `:table`, `:first` and `:past` replaced, so that whoever goes on later
    /// knows what is there; empty: nobody will, and a connection's pieces may be one transaction.
    #[serde(default)]
    pub note: String,
    /// The load ends in a failure if the server neither takes nor sends a byte for so long and then does not answer a new
    /// connection. None: it waits.
    #[serde(default)]
    pub silence_s: Option<f64>,
}

/// Units of a table: from `first` up to, not including, `past`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    pub table: String,
    pub first: u64,
    pub past: u64,
}

/// Whose rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "rows", rename_all = "snake_case", deny_unknown_fields)]
pub enum Generator {
    Batch(Batch),
    Brokerage(Brokerage),
    Igen(Igen),
    Pgbench(Pgbench),
    Tpch(Tpch),
    Wide(Wide),
}

/// One table to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    /// The table is cut into pieces by these; a unit gives one or more rows (a customer gives all lines of its orders).
    pub units: u64,
    /// About the size of a unit's rows as text; only for cutting evenly.
    pub bytes_per_unit: u64,
}

impl Generator {
    pub fn tables(&self) -> Vec<Table> {
        match self {
            Self::Batch(batch) => batch.tables(),
            Self::Brokerage(brokerage) => brokerage.tables(),
            Self::Igen(igen) => igen.tables(),
            Self::Pgbench(pgbench) => pgbench.tables(),
            Self::Tpch(tpch) => tpch.tables(),
            Self::Wide(wide) => wide.tables(),
        }
    }

    /// Emits the rows of the given units of `table`, in order.
    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        match self {
            Self::Batch(batch) => batch.emit(table, units, sink),
            Self::Brokerage(brokerage) => brokerage.emit(table, units, sink),
            Self::Igen(igen) => igen.emit(table, units, sink),
            Self::Pgbench(pgbench) => pgbench.emit(table, units, sink),
            Self::Tpch(tpch) => tpch.emit(table, units, sink),
            Self::Wide(wide) => wide.emit(units, sink),
        }
    }
}
