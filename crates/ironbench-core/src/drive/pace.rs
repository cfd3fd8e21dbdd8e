//! When a client that is free begins its next transaction.

use super::plan::{self, Arrivals};
use crate::measure::clock;
use crate::measure::schedule::Schedule;

/// The share of one thread (or of all clients together, on engines that block).
#[derive(Debug, Clone)]
pub enum Pace {
    Closed { think_ns: u64 },
    Open(Schedule),
}

impl Pace {
    /// `part` of `parts` equal parts of a schedule that starts at `origin`. `share`: how much of the rate it gets.
    pub fn new(schedule: &plan::Schedule, origin: u64, seed: u64, part: usize, parts: usize, share: f64) -> Self {
        match *schedule {
            plan::Schedule::Closed { think_time_s } => Self::Closed { think_ns: clock::from_seconds(think_time_s) },
            plan::Schedule::Open { rate, arrivals: Arrivals::Fixed } => {
                // Half a gap before the first, so that a second holds exactly `rate` of them.
                let phase = (part as f64 + 0.5) / parts as f64;
                Self::Open(Schedule::fixed(origin, rate * share, phase))
            }
            plan::Schedule::Open { rate, arrivals: Arrivals::Poisson } => {
                let seed = seed ^ (part as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95);
                Self::Open(Schedule::poisson(origin, rate * share, seed))
            }
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}
