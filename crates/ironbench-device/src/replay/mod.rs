//! Runs a model without waiting, on a recorded trace, a synthetic load, or given I/Os.

mod given;
mod open_loop;
mod probe;
mod trace;

pub use given::{Given, given};
pub use open_loop::{Replayed, Served, replay};
pub use probe::{Measured, Probe, probe};
pub use trace::Trace;
