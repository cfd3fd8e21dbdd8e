//! Runs a model without waiting. The I/Os come from a recorded trace, from a synthetic load, or from a given list.

mod given;
mod open_loop;
mod probe;
mod trace;

pub use given::{Given, given};
pub use open_loop::{Replayed, Served, replay};
pub use probe::{Measured, Probe, probe};
pub use trace::Trace;
