//! Rows of the standard workloads: generated in parallel, streamed straight into an engine.
//!
//! A row is a pure function of its table, its number and a seed, so that the same plan gives the same rows however
//! many threads make them. `row` says how values become bytes; `brokerage`, `igen`, `pgbench`, `tpch` and `wide` know the
//! tables, `entries` those of a directory; `statements` splits files of SQL that people bring; `load` shares the work among connections, `populate` does so under the stopwatch.

pub mod batch;
pub mod brokerage;
pub mod dice;
pub mod entries;
pub mod igen;
pub mod load;
pub mod pgbench;
pub mod plan;
pub mod populate;
pub mod row;
pub mod statements;
pub mod tpch;
pub mod wide;
pub mod words;

pub use load::{Loaded, Progress, cut_pieces, load, write_file, write_text};
pub use plan::{Generator, LoadPlan, Units};
