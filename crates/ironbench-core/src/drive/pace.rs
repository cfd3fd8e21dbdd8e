//! When a free client starts its next transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::{self, Arrivals, Plan};
use crate::measure::clock::{self, NEVER};
use crate::measure::curve::{Curve, Piece};
use crate::measure::schedule::Schedule;

/// The rule by which clients start transactions, shared by all threads.
#[derive(Debug, Clone)]
pub enum Pace<'a> {
    Closed {
        think_ns: u64,
    },
    /// As `Closed`, with a number of active clients that follows a curve over the seconds since `origin`.
    Varied {
        think_ns: u64,
        active: Curve,
        origin: u64,
    },
    Open(&'a SharedSchedule),
}

/// The schedule of an open loop, shared by all threads. A client that becomes free takes the next transaction,
/// whichever thread the client is on, and sleeps until the transaction is due. So a transaction waits only while all
/// clients are busy, and each scheduled start wakes only one thread.
#[derive(Debug)]
pub struct SharedSchedule(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    schedule: Schedule,
    /// Transactions returned by clients that could not start them.
    returned: Vec<u64>,
}

impl SharedSchedule {
    pub fn new(schedule: Schedule) -> Self {
        Self(Mutex::new(Queue { schedule, returned: Vec::new() }))
    }

    /// Claims the next transaction for the caller: when it is due, if that is before `until`.
    pub fn take(&self, until: u64) -> Option<u64> {
        let mut queue = self.queue();
        if !queue.returned.is_empty()
            && let Some(due) = queue.take_returned(until)
        {
            return Some(due);
        }
        let due = queue.schedule.due();
        if due >= until {
            return None;
        }
        queue.schedule.advance();
        Some(due)
    }

    /// Returns a transaction that the caller has taken and cannot start: the next client takes it instead.
    #[cold]
    pub fn give_back(&self, due: u64) {
        self.queue().returned.push(due);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Takes the earliest returned transaction that is due before `until`.
    #[cold]
    fn take_returned(&mut self, until: u64) -> Option<u64> {
        let earliest = (0..self.returned.len()).min_by_key(|&place| self.returned[place])?;
        (self.returned[earliest] < until).then(|| self.returned.swap_remove(earliest))
    }
}

/// The schedule that a plan's transactions follow from `origin` on; None: a closed loop.
pub fn schedule(plan: &Plan, origin: u64) -> Option<Schedule> {
    let (part, parts) = plan.part.map_or((0, 1), |part| (part.number, part.of));
    // Half a gap before the first, so that a second holds exactly `rate` of them.
    let phase = (part as f64 + 0.5) / parts as f64;
    let seed = plan.seed ^ (part as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95);
    Some(match &plan.schedule {
        plan::Schedule::Closed { .. } | plan::Schedule::ClosedCurve { .. } => return None,
        plan::Schedule::Open { rate, arrivals: Arrivals::Fixed } => Schedule::fixed(origin, *rate, phase),
        plan::Schedule::Open { rate, arrivals: Arrivals::Poisson } => Schedule::poisson(origin, *rate, seed),
        plan::Schedule::OpenCurve { pieces, arrivals: Arrivals::Fixed } => {
            Schedule::fixed_curve(origin, curve(pieces), phase)
        }
        plan::Schedule::OpenCurve { pieces, arrivals: Arrivals::Poisson } => {
            Schedule::poisson_curve(origin, curve(pieces), seed)
        }
    })
}

impl<'a> Pace<'a> {
    /// `shared`: the schedule of an open loop.
    pub fn new(schedule: &plan::Schedule, origin: u64, shared: Option<&'a SharedSchedule>) -> Self {
        match (schedule, shared) {
            (_, Some(shared)) => Self::Open(shared),
            (plan::Schedule::ClosedCurve { pieces, think_time_s }, None) => {
                Self::Varied { think_ns: clock::from_seconds(*think_time_s), active: curve(pieces), origin }
            }
            (plan::Schedule::Closed { think_time_s }, None) => {
                Self::Closed { think_ns: clock::from_seconds(*think_time_s) }
            }
            (plan::Schedule::Open { .. } | plan::Schedule::OpenCurve { .. }, None) => {
                unreachable!("an open loop has a schedule")
            }
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

    /// When the client that comes after `rank` others may start, if it wants to start at `instant`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_gives_back_the_next_one_takes_first() {
        let shared = SharedSchedule::new(Schedule::fixed(0, 10.0, 0.5));
        let (first, second) = (shared.take(NEVER).unwrap(), shared.take(NEVER).unwrap());
        shared.give_back(second);
        shared.give_back(first);
        assert_eq!(shared.take(first), None);
        assert_eq!((shared.take(NEVER), shared.take(NEVER)), (Some(first), Some(second)));
        assert!(shared.take(NEVER).unwrap() > second);
    }
}
