//! Runs a model without waiting. The I/Os come from a recorded trace, from a synthetic load, or from a given list.

mod listed_load;
mod open_loop;
mod synthetic_load;
mod trace;

pub use listed_load::{ListedLoad, run_listed};
pub use open_loop::{Replayed, Served, replay};
pub use synthetic_load::{LoadResult, SyntheticLoad, run_synthetic};
pub use trace::Trace;
