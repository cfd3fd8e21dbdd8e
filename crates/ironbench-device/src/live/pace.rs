//! Determines when an answer must leave: at the completion time of the model, minus the I/O path overhead of this
//! machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::drift::Means;
use super::tally::KINDS;
use super::way::Overhead;
use crate::{Device, Op};

/// How the time of answers is determined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Answers leave immediately, while file systems are created and data are loaded.
    Free,
    /// Answers leave after this many nanoseconds, to measure the overhead.
    Fixed(u64),
    Model,
}

/// The times that were planned for an I/O and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Time at which the answer must leave. This time is before the arrival if the I/O path overhead itself exceeds the
    /// time of the model.
    pub due: u64,
    /// Time at which the I/O reached the model, by the clock of the exchange. I/Os reach the model in order. An I/O
    /// that follows an answer reaches the model after the completion time (in model time) of the answered I/O.
    pub reached: u64,
    /// Time at which the I/O is complete by the clock of the model.
    pub done: u64,
    /// Whether a model determined the time. If not, the answer cannot be late.
    pub modelled: bool,
    /// Whether the I/O was submitted to the model.
    pub asked: bool,
    /// CPU time that the modelled device's driver takes on the host for this I/O, in nanoseconds.
    pub host_cpu_ns: u64,
    /// Assumed I/O path overhead in nanoseconds.
    pub way_ns: u64,
    /// Number of other I/Os of the model that were in flight when the I/O arrived.
    pub others: u64,
}

impl Plan {
    /// Returns the completion time for a trace. This is the model's completion time, or the time at which the answer
    /// leaves if that is later. If an answer is late by less than the path overhead, the lateness therefore counts as
    /// time between I/Os and not as time of the device. With the real completion time, consecutive I/Os could overlap
    /// in the trace. The path may be shorter than assumed, so that the next I/O arrives before the completion time of
    /// this one.
    pub fn over(&self, leaves: u64) -> u64 {
        leaves.max(if self.modelled { self.due + self.way_ns } else { self.reached })
    }
}

pub struct Pace {
    inner: Mutex<Inner>,
    takes_time: bool,
    overhead: OnceLock<Overhead>,
    /// Completion times that are not in `Inner::answered` yet. The list has its own lock, so that sending an answer
    /// never waits for the model's lock.
    left: Mutex<Vec<Reverse<u64>>>,
    /// Sums over the I/Os that were submitted to the model, by operation.
    sums: [Sums; KINDS],
    /// Increase of the path overhead since the mount in nanoseconds, by operation.
    longer_ns: [AtomicI64; KINDS],
    /// Number of I/Os of the model that are not answered yet.
    under_way: AtomicU64,
}

/// Cumulative sums over answered I/Os.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Answered {
    pub count: u64,
    pub bytes: u64,
    /// Total planned delay of answers.
    pub held_ns: u64,
    /// Sum over the I/Os of the number of other I/Os that were in flight when they arrived.
    pub others: u64,
}

#[derive(Debug, Default)]
struct Sums {
    count: AtomicU64,
    bytes: AtomicU64,
    held_ns: AtomicU64,
    others: AtomicU64,
}

struct Inner {
    device: Box<dyn Device>,
    mode: Mode,
    /// Difference between real time and model time. Model time stops while the model is not used.
    behind: u64,
    /// Earliest time at which the next request may reach the model. This limit keeps the arrivals at the model in
    /// order.
    next: u64,
    /// Completion times, in model time, of answered I/Os after which no new request has arrived yet.
    answered: BinaryHeap<Reverse<u64>>,
}

impl Inner {
    fn collect(&mut self, left: &Mutex<Vec<Reverse<u64>>>) {
        let left = mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
        self.answered.extend(left);
    }

    /// Returns when a request that arrives now reaches the model. A client may send a request because it has received
    /// an answer. The answered I/O must then be complete in the model, even if the path was shorter than usual. It is
    /// unknown which answer a request follows. Requests are assumed to follow answers in the order of their completion
    /// times. If nothing else is in flight, the request follows all answers. A completion older than `way_ns` is
    /// dropped, because a request that follows it would have arrived already.
    fn reaches(&mut self, arrival: u64, others: u64, way_ns: u64) -> u64 {
        let now = arrival.saturating_sub(self.behind).max(self.next);
        if others == 0 {
            return self.answered.drain().fold(now, |latest, done| latest.max(done.0));
        }
        while self.answered.peek().is_some_and(|done| done.0 + way_ns < now) {
            self.answered.pop();
        }
        self.answered.pop().map_or(now, |done| done.0.max(now))
    }
}

impl Pace {
    pub fn new(device: Box<dyn Device>) -> Self {
        let takes_time = device.takes_time();
        let inner = Inner { device, mode: Mode::Free, behind: 0, next: 0, answered: BinaryHeap::new() };
        Self {
            inner: Mutex::new(inner),
            takes_time,
            overhead: OnceLock::new(),
            left: Mutex::default(),
            sums: Default::default(),
            longer_ns: Default::default(),
            under_way: AtomicU64::new(0),
        }
    }

    /// Whether answers are ever delayed.
    pub fn takes_time(&self) -> bool {
        self.takes_time
    }

    /// Plans an I/O and its answer. `now` reads the clock, and is called under the lock, so that I/Os reach the model
    /// in the order of their arrival times.
    pub fn plan(&self, now: impl FnOnce() -> u64, op: Op, offset: u64, length: u32) -> (u64, Plan) {
        let mut inner = self.locked();
        let arrival = now();
        let at_mount_ns = self.overhead().of(op, length);
        let at_once = Plan {
            due: arrival,
            reached: arrival,
            done: 0,
            modelled: false,
            asked: false,
            host_cpu_ns: 0,
            way_ns: at_mount_ns,
            others: 0,
        };
        let plan = match inner.mode {
            Mode::Free => at_once,
            Mode::Fixed(span) => Plan { due: arrival + span, modelled: true, ..at_once },
            Mode::Model => {
                let others = self.under_way.load(Acquire);
                inner.collect(&self.left);
                let asked = inner.reaches(arrival, others, at_mount_ns);
                inner.next = asked + 1;
                let done = inner.device.submit(asked, op, offset, length);
                let host_cpu_ns = inner.device.host_cpu(op, length);
                let way_ns = self.way(op, length, done.saturating_sub(asked), others);
                let plan =
                    Plan { reached: asked + inner.behind, done, asked: true, host_cpu_ns, way_ns, others, ..at_once };
                if done <= asked {
                    plan
                } else {
                    self.under_way.fetch_add(1, Relaxed);
                    // The completion time is not counted from the arrival. Otherwise model time would drift away from
                    // real time with each I/O that arrives too early.
                    Plan { due: (done + inner.behind).saturating_sub(way_ns), modelled: true, ..plan }
                }
            }
        };
        (arrival, plan)
    }

    /// Notes that the answer to an I/O is about to leave. Must be called once for each plan. `arrival` is the arrival
    /// time of the I/O.
    pub fn answered(&self, plan: &Plan, arrival: u64, op: Op, length: u32) {
        if !plan.asked {
            return;
        }
        let sums = &self.sums[op as usize];
        sums.held_ns.fetch_add(plan.due.saturating_sub(arrival), Relaxed);
        sums.bytes.fetch_add(u64::from(length), Relaxed);
        sums.others.fetch_add(plan.others, Relaxed);
        sums.count.fetch_add(1, Relaxed);
        if plan.modelled {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(plan.done));
            // The count is decreased last. A thread that finds nothing in flight must also find the completion times of
            // all answered I/Os.
            self.under_way.fetch_sub(1, Release);
        }
    }

    pub fn so_far(&self, op: Op) -> Answered {
        let sums = &self.sums[op as usize];
        let Sums { count, bytes, held_ns, others } = sums;
        let [count, bytes, held_ns, others] = [count, bytes, held_ns, others].map(|sum| sum.load(Relaxed));
        Answered { count, bytes, held_ns, others }
    }

    /// Returns the current path overhead in nanoseconds, for an I/O that takes `takes_ns` on the device.
    /// `others` is the number of other I/Os in flight.
    fn way(&self, op: Op, length: u32, takes_ns: u64, others: u64) -> u64 {
        let overhead = self.overhead();
        let longer_ns = self.longer_ns[op as usize].load(Relaxed).min(overhead.longest_more(op, takes_ns, others));
        overhead.of(op, length).saturating_add_signed(longer_ns)
    }

    /// Moves the assumed overhead half-way towards the overhead in the latest measurement.
    pub fn seen(&self, op: Op, means: Means) {
        let overhead = self.overhead();
        let Some(beyond) = overhead.beyond else { return };
        let held_ns = means.held_ns as u64;
        let at_mount_ns = overhead.of(op, means.bytes as u32) as i64;
        let shortest_ns = -(overhead.of(op, 0) as i64);
        let now_ns = (means.took_ns - means.held_ns) as i64 + beyond.after(held_ns) as i64;
        let longer_ns = &self.longer_ns[op as usize];
        let middle_ns = (longer_ns.load(Relaxed) + now_ns - at_mount_ns) / 2;
        longer_ns.store(middle_ns.clamp(shortest_ns, overhead.longest_more(op, held_ns, means.others as u64)), Relaxed);
    }

    /// Resets the overhead to the values measured at mount.
    pub fn as_at_mount(&self) {
        self.longer_ns.iter().for_each(|one| one.store(0, Relaxed));
    }

    pub fn set(&self, mode: Mode, now: u64) {
        let mut inner = self.locked();
        if mode == Mode::Model && inner.mode != Mode::Model {
            inner.collect(&self.left);
            inner.next = inner.reaches(0, 0, 0);
            inner.behind = now.saturating_sub(inner.next);
        }
        inner.mode = mode;
    }

    pub fn mode(&self) -> Mode {
        self.locked().mode
    }

    /// Sets the measured overhead. Only the first call has an effect.
    pub fn calibrated(&self, overhead: Overhead) {
        let _ = self.overhead.set(overhead);
    }

    pub fn overhead(&self) -> &Overhead {
        self.overhead.get().unwrap_or(&Overhead::NONE)
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.locked();
        out.debug_struct("Pace").field("mode", &inner.mode).field("overhead", self.overhead()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
