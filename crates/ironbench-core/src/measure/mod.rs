//! Turns instants into measurements, with clocks, schedules, histograms and a timeline.
pub mod buckets;
pub mod clients;
pub mod clock;
pub mod completed;
pub mod cpu;
pub mod curve;
pub mod directory;
pub mod histogram;
pub mod hlog;
pub mod recorder;
pub mod schedule;
pub mod seconds;
pub mod tally;
pub mod threads;

pub use histogram::Histogram;
pub use recorder::{Live, Recorder, Window};
pub use tally::Tally;
