//! Answers from a model without waiting: of a recorded trace, or of a load made up on the spot.

mod dependent;
#[cfg(test)]
mod fidelity;
mod probe;
mod trace;

pub use dependent::{Pace, Replayed, replay};
pub use probe::{Measured, Probe, probe};
pub use trace::Trace;
