//! Generates the rows of the built-in workloads in parallel, and streams them into an engine.
//!
//! A row is a pure function of its table, number and seed, so the rows do not depend on the number of threads. The
//! modules `brokerage`, `igen`, `pgbench`, `sysbench`, `tpcc`, `tpch`, `wide` and `ycsb` generate tables, and `entries`
//! the entries of a directory. `inputs` draws the inputs of transactions. `row` encodes values. `statements` splits SQL
//! files supplied by users. `load` distributes the work over connections, and `populate` does so inside the measured
//! window.

pub mod batch;
pub mod brokerage;
pub mod deck;
pub mod distribution;
pub mod entries;
pub mod igen;
pub mod input_variables;
pub mod inputs;
pub mod load;
pub mod pgbench;
pub mod plan;
pub mod populate;
pub mod row;
pub mod row_rng;
pub mod statements;
pub mod sysbench;
pub mod tpcc;
pub mod tpch;
pub mod wide;
pub mod words;
pub mod ycsb;

pub use load::{Loaded, Progress, cut_pieces, load, write_file, write_text};
pub use plan::{Generator, LoadPlan, Units};
