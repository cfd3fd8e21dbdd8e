//! Everything that runs inside the measured window. The module `measure` keeps time and counts, and `wire` implements
//! the engines' protocols. `drive` runs transactions over these protocols, and `sample` observes the machine and the
//! server during a trial. `relay` adds the latency of a network between clients and server. `student` implements
//! Student's t distribution for confidence intervals.

pub mod drive;
pub mod error;
pub mod measure;
pub mod relay;
pub mod sample;
pub mod student;
#[cfg(test)]
mod testing;
pub mod wire;

pub use error::{Error, Kind, Result};
pub use pgbench_script::SplitMix64;
