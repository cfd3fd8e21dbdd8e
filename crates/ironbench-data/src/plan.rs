//! The input of a load, as JSON. The module `src/ironbench/trial/load/rows.py` writes the JSON.

use ironbench_core::drive::plan::Engine;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::brokerage::Brokerage;
use crate::igen::Igen;
use crate::pgbench::Pgbench;
use crate::row::Sink;
use crate::sysbench::Sysbench;
use crate::tpcc::Tpcc;
use crate::tpch::Tpch;
use crate::wide::WideTable;
use crate::ycsb::Ycsb;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    pub engine: Engine,
    pub generator: Generator,
    /// Number of concurrent connections.
    pub connections: usize,
    /// Pieces that an earlier load had copied before it was interrupted.
    #[serde(default)]
    pub done: Vec<Units>,
    /// Pieces to load, if other workers load the rest. If it is empty, this load copies all pieces that are not in
    /// `done`.
    #[serde(default)]
    pub only: Vec<Units>,
    /// Statement that runs in the transaction of each piece, with `:table`, `:first` and `:past` replaced. The
    /// statement records what is loaded, so that another load can continue. If it is empty, no other load can continue
    /// this one, and the pieces of a connection may share one transaction.
    #[serde(default)]
    pub note: String,
    /// If no byte is sent or received for this time, the load opens another connection to the server. If the server
    /// does not answer that connection, the load fails. With None, the load waits without limit.
    #[serde(default)]
    pub silence_s: Option<f64>,
}

/// Units of a table, from `first` up to, but not including, `past`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    pub table: String,
    pub first: u64,
    pub past: u64,
}

/// The generator of the rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "rows", rename_all = "snake_case", deny_unknown_fields)]
pub enum Generator {
    Batch(Batch),
    Brokerage(Brokerage),
    Igen(Igen),
    Pgbench(Pgbench),
    Sysbench(Sysbench),
    Tpcc(Tpcc),
    Tpch(Tpch),
    Wide(WideTable),
    Ycsb(Ycsb),
}

/// A table to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    /// Number of units into which the table can be divided. A unit gives one or more rows. For example, a customer
    /// gives all lines of the customer's orders.
    pub units: u64,
    /// Approximate size of a unit's rows as text, used only to divide evenly.
    pub bytes_per_unit: u64,
}

impl Generator {
    pub fn tables(&self) -> Vec<Table> {
        match self {
            Self::Batch(batch) => batch.tables(),
            Self::Brokerage(brokerage) => brokerage.tables(),
            Self::Igen(igen) => igen.tables(),
            Self::Pgbench(pgbench) => pgbench.tables(),
            Self::Sysbench(sysbench) => sysbench.tables(),
            Self::Tpcc(tpcc) => tpcc.tables(),
            Self::Tpch(tpch) => tpch.tables(),
            Self::Wide(wide) => wide.tables(),
            Self::Ycsb(ycsb) => ycsb.tables(),
        }
    }

    /// Emits the rows of the given units of `table`, in order.
    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        match self {
            Self::Batch(batch) => batch.emit(table, units, sink),
            Self::Brokerage(brokerage) => brokerage.emit(table, units, sink),
            Self::Igen(igen) => igen.emit(table, units, sink),
            Self::Pgbench(pgbench) => pgbench.emit(table, units, sink),
            Self::Sysbench(sysbench) => sysbench.emit(table, units, sink),
            Self::Tpcc(tpcc) => tpcc.emit(table, units, sink),
            Self::Tpch(tpch) => tpch.emit(table, units, sink),
            Self::Wide(wide) => wide.emit(units, sink),
            Self::Ycsb(ycsb) => ycsb.emit(units, sink),
        }
    }
}
