//! When a client that is free begins its next transaction.

use super::plan::{self, Arrivals};
use crate::measure::clock::{self, NEVER};
use crate::measure::curve::{Curve, Piece};
use crate::measure::schedule::Schedule;

/// The share of one thread (or of all clients together, on engines that block).
#[derive(Debug, Clone)]
pub enum Pace {
    Closed {
        think_ns: u64,
    },
    /// As closed, of so many clients as `active` says at seconds from `origin` on.
    Varied {
        think_ns: u64,
        active: Curve,
        origin: u64,
    },
    Open(Schedule),
}

impl Pace {
    /// `part` of `parts` equal parts of a schedule that starts at `origin`. `share`: how much of the rate it gets.
    pub fn new(schedule: &plan::Schedule, origin: u64, seed: u64, part: usize, parts: usize, share: f64) -> Self {
        // Half a gap before the first, so that a second holds exactly `rate` of them.
        let phase = (part as f64 + 0.5) / parts as f64;
        let seed = seed ^ (part as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95);
        match schedule {
            plan::Schedule::Closed { think_time_s } => Self::Closed { think_ns: clock::from_seconds(*think_time_s) },
            plan::Schedule::ClosedCurve { pieces, think_time_s } => {
                Self::Varied { think_ns: clock::from_seconds(*think_time_s), active: curve(pieces), origin }
            }
            plan::Schedule::Open { rate, arrivals } => Self::Open(match arrivals {
                Arrivals::Fixed => Schedule::fixed(origin, rate * share, phase),
                Arrivals::Poisson => Schedule::poisson(origin, rate * share, seed),
            }),
            plan::Schedule::OpenCurve { pieces, arrivals } => Self::Open(match arrivals {
                Arrivals::Fixed => Schedule::fixed_curve(origin, curve(pieces), share, phase),
                Arrivals::Poisson => Schedule::poisson_curve(origin, curve(pieces), share, seed),
            }),
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub fn think_ns(&self) -> u64 {
        match *self {
            Self::Closed { think_ns } | Self::Varied { think_ns, .. } => think_ns,
            Self::Open(_) => 0,
        }
    }

    /// When a client may begin that wants to at `instant`: it is the one that comes after `rank` others.
    pub fn admits(&self, rank: usize, instant: u64) -> u64 {
        let Self::Varied { active, origin, .. } = self else { return instant };
        // The number of active clients is the nearest whole number.
        let at = clock::to_seconds(instant.saturating_sub(*origin));
        match active.reaches(rank as f64 + 0.5, at) {
            Some(then) if then <= at => instant,
            Some(then) => instant.max(origin + clock::from_seconds(then)),
            None => NEVER,
        }
    }
}

fn curve(pieces: &[Piece]) -> Curve {
    Curve::new(pieces).expect("the plan was checked")
}
