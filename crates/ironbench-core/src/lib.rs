//! What happens while the stopwatch runs.
//!
//! `measure` keeps time and counts, `wire` talks to engines, `drive` runs transactions against a wire, `sample` watches the
//! machine and the server meanwhile. `student` has the distribution that the confidence intervals rest on.

pub mod drive;
pub mod error;
pub mod measure;
pub mod sample;
pub mod student;
#[cfg(test)]
mod testing;
pub mod wire;

pub use error::{Error, Kind, Result};
pub use pgbench_script::SplitMix64;
