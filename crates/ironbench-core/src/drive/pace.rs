//! Determines when a free client starts its next transaction.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::{self, Arrivals, Plan};
use crate::measure::clock::{self, NEVER};
use crate::measure::curve::{Curve, Piece};
use crate::measure::schedule::Schedule;

/// The pacing of transactions, shared by all threads.
#[derive(Debug, Clone)]
pub enum Pace<'a> {
    Closed {
        think_ns: u64,
    },
    /// Closed loop in which the number of active clients changes over time. The curve `active` gives this number for
    /// each second since `origin`.
    Varied {
        think_ns: u64,
        active: Curve,
        origin: u64,
    },
    Open(&'a SharedSchedule),
    /// Closed loop in which the source of jobs determines how long each client rests.
    ByRole,
}

/// The schedule of an open loop, shared by all threads. A client that is free takes the next transaction and sleeps
/// until its scheduled start. The thread of the client does not matter. A transaction therefore waits only while all
/// clients are busy, and each scheduled start wakes only one thread.
#[derive(Debug)]
pub struct SharedSchedule(Mutex<ScheduleQueue>);

#[derive(Debug)]
struct ScheduleQueue {
    schedule: Schedule,
    /// Transactions that clients took but could not start.
    returned: Vec<u64>,
}

impl SharedSchedule {
    pub fn new(schedule: Schedule) -> Self {
        Self(Mutex::new(ScheduleQueue { schedule, returned: Vec::new() }))
    }

    /// Takes the next transaction for the caller. Returns its scheduled start, or None if no transaction starts before
    /// `until`.
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

    /// Returns a transaction that the caller has taken but cannot start, so that the next client takes it.
    #[cold]
    pub fn give_back(&self, due: u64) {
        self.queue().returned.push(due);
    }

    fn queue(&self) -> MutexGuard<'_, ScheduleQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduleQueue {
    /// Takes the earliest returned transaction whose scheduled start is before `until`.
    #[cold]
    fn take_returned(&mut self, until: u64) -> Option<u64> {
        let earliest = (0..self.returned.len()).min_by_key(|&place| self.returned[place])?;
        (self.returned[earliest] < until).then(|| self.returned.swap_remove(earliest))
    }
}

/// Returns the schedule of the plan's transactions, which starts at `origin`. Returns None for a closed loop.
pub fn schedule(plan: &Plan, origin: u64) -> Option<Schedule> {
    let (part, parts) = plan.part.map_or((0, 1), |part| (part.number, part.of));
    // The first transaction starts after half a gap, so that exactly `rate` transactions start in each second.
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
    /// Creates the pacing from the plan's schedule. `shared` is the schedule of an open loop. `by_role` is true if the
    /// source of jobs paces its clients.
    pub fn new(schedule: &plan::Schedule, origin: u64, shared: Option<&'a SharedSchedule>, by_role: bool) -> Self {
        match (schedule, shared) {
            _ if by_role => Self::ByRole,
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
            Self::Open(_) | Self::ByRole => 0,
        }
    }

    /// Returns when the client of this `rank` (from 0) may start a transaction. This is the earliest such instant that
    /// is not before `instant`.
    pub fn earliest_start(&self, rank: usize, instant: u64) -> u64 {
        let Self::Varied { active, origin, .. } = self else { return instant };
        // The number of active clients is rounded to the nearest integer.
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
