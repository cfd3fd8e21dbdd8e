//! Runs a model without waiting: on a recorded trace, a synthetic load, or given I/Os.

mod causes;
mod cores;
mod dependent;
#[cfg(test)]
mod fidelity;
mod given;
mod probe;
mod thinking;
mod trace;

pub use dependent::{Pace, Replayed, replay};
pub use given::{Given, given};
pub use probe::{Measured, Probe, probe};
pub use trace::{Processors, Trace};
