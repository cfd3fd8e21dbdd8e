//! Determines when an answer must leave: at the completion time of the model, minus the I/O path overhead of this
//! machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::io_path::Overhead;
use super::overhead_tracker::MeanIo;
use super::tally::KINDS;
use crate::{Device, Op};

/// How the time of answers is determined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Answers leave immediately, while file systems are created and data are loaded.
    Immediate,
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
    pub submitted: bool,
    /// CPU time that the modelled device's driver takes on the host for this I/O, in nanoseconds.
    pub host_cpu_ns: u64,
    /// Assumed I/O path overhead in nanoseconds.
    pub path_ns: u64,
    /// Number of other I/Os of the model that were in flight when the I/O arrived.
    pub others: u64,
}

impl Plan {
    /// Returns the completion time for a trace. This is the model's completion time, or the time at which the answer
    /// leaves if that is later. If an answer is late by less than the path overhead, the lateness therefore counts as
    /// time between I/Os and not as time of the device. With the real completion time, consecutive I/Os could overlap
    /// in the trace. The path may be shorter than assumed, so that the next I/O arrives before the completion time of
    /// this one.
    pub fn trace_completion(&self, leaves: u64) -> u64 {
        leaves.max(if self.modelled { self.due + self.path_ns } else { self.reached })
    }
}

/// The pacing of a device's answers, with the model, the path overhead, and the I/Os in flight.
pub struct Pace {
    inner: Mutex<ModelClock>,
    takes_time: bool,
    overhead: OnceLock<Overhead>,
    /// Completion times that are not in `ModelClock::answered` yet. The list has its own lock, so that sending an
    /// answer never waits for the model's lock.
    newly_answered: Mutex<Vec<Reverse<u64>>>,
    /// Sums over the I/Os that were submitted to the model, by operation.
    totals: [AtomicTotals; KINDS],
    /// Increase of the path overhead since the mount in nanoseconds, by operation.
    path_increase_ns: [AtomicI64; KINDS],
    /// Number of I/Os of the model that are not answered yet.
    in_flight: AtomicU64,
}

/// Cumulative sums over answered I/Os.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AnsweredTotals {
    pub count: u64,
    pub bytes: u64,
    /// Total planned delay of answers.
    pub delay_ns: u64,
    /// Sum over the I/Os of the number of other I/Os that were in flight when they arrived.
    pub others: u64,
}

/// The sums of `AnsweredTotals`, updated by several threads.
#[derive(Debug, Default)]
struct AtomicTotals {
    count: AtomicU64,
    bytes: AtomicU64,
    delay_ns: AtomicU64,
    others: AtomicU64,
}

/// A device model, and the relation of model time to real time.
struct ModelClock {
    device: Box<dyn Device>,
    mode: Mode,
    /// Difference between real time and model time. Model time stops while the model is not used.
    model_lag_ns: u64,
    /// Earliest time at which the next request may reach the model. This limit keeps the arrivals at the model in
    /// order.
    next: u64,
    /// Completion times, in model time, of answered I/Os after which no new request has arrived yet.
    answered: BinaryHeap<Reverse<u64>>,
}

impl ModelClock {
    /// Takes over the completion times of the I/Os answered since the last call.
    fn collect_answered(&mut self, newly_answered: &Mutex<Vec<Reverse<u64>>>) {
        let newly_answered = mem::take(&mut *newly_answered.lock().unwrap_or_else(PoisonError::into_inner));
        self.answered.extend(newly_answered);
    }

    /// Returns when a request that arrives now reaches the model. A client may send a request because it has received
    /// an answer. The answered I/O must then be complete in the model, even if the path was shorter than usual. It is
    /// unknown which answer a request follows. Requests are assumed to follow answers in the order of their completion
    /// times. If nothing else is in flight, the request follows all answers. A completion older than `path_ns` is
    /// dropped, because a request that follows it would have arrived already.
    fn arrival_at_model(&mut self, arrival: u64, others: u64, path_ns: u64) -> u64 {
        let now = arrival.saturating_sub(self.model_lag_ns).max(self.next);
        if others == 0 {
            return self.answered.drain().fold(now, |latest, done| latest.max(done.0));
        }
        while self.answered.peek().is_some_and(|done| done.0 + path_ns < now) {
            self.answered.pop();
        }
        self.answered.pop().map_or(now, |done| done.0.max(now))
    }
}

impl Pace {
    pub fn new(device: Box<dyn Device>) -> Self {
        let takes_time = device.takes_time();
        let inner = ModelClock { device, mode: Mode::Immediate, model_lag_ns: 0, next: 0, answered: BinaryHeap::new() };
        Self {
            inner: Mutex::new(inner),
            takes_time,
            overhead: OnceLock::new(),
            newly_answered: Mutex::default(),
            totals: Default::default(),
            path_increase_ns: Default::default(),
            in_flight: AtomicU64::new(0),
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
            submitted: false,
            host_cpu_ns: 0,
            path_ns: at_mount_ns,
            others: 0,
        };
        let plan = match inner.mode {
            Mode::Immediate => at_once,
            Mode::Fixed(span) => Plan { due: arrival + span, modelled: true, ..at_once },
            Mode::Model => {
                let others = self.in_flight.load(Acquire);
                inner.collect_answered(&self.newly_answered);
                let reached = inner.arrival_at_model(arrival, others, at_mount_ns);
                inner.next = reached + 1;
                let done = inner.device.submit(reached, op, offset, length);
                let host_cpu_ns = inner.device.host_cpu(op, length);
                let path_ns = self.path_overhead_ns(op, length, done.saturating_sub(reached), others);
                let plan = Plan {
                    reached: reached + inner.model_lag_ns,
                    done,
                    submitted: true,
                    host_cpu_ns,
                    path_ns,
                    others,
                    ..at_once
                };
                if done <= reached {
                    plan
                } else {
                    self.in_flight.fetch_add(1, Relaxed);
                    // The completion time is not counted from the arrival. Otherwise model time would drift away from
                    // real time with each I/O that arrives too early.
                    Plan { due: (done + inner.model_lag_ns).saturating_sub(path_ns), modelled: true, ..plan }
                }
            }
        };
        (arrival, plan)
    }

    /// Notes that the answer to an I/O is about to leave. Must be called once for each plan. `arrival` is the arrival
    /// time of the I/O.
    pub fn record_answer(&self, plan: &Plan, arrival: u64, op: Op, length: u32) {
        if !plan.submitted {
            return;
        }
        let totals = &self.totals[op as usize];
        totals.delay_ns.fetch_add(plan.due.saturating_sub(arrival), Relaxed);
        totals.bytes.fetch_add(u64::from(length), Relaxed);
        totals.others.fetch_add(plan.others, Relaxed);
        totals.count.fetch_add(1, Relaxed);
        if plan.modelled {
            self.newly_answered.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(plan.done));
            // The count is decreased last. A thread that finds nothing in flight must also find the completion times of
            // all answered I/Os.
            self.in_flight.fetch_sub(1, Release);
        }
    }

    /// Returns the sums over the answered I/Os of this operation so far.
    pub fn totals(&self, op: Op) -> AnsweredTotals {
        let totals = &self.totals[op as usize];
        let AtomicTotals { count, bytes, delay_ns, others } = totals;
        let [count, bytes, delay_ns, others] = [count, bytes, delay_ns, others].map(|sum| sum.load(Relaxed));
        AnsweredTotals { count, bytes, delay_ns, others }
    }

    /// Returns the current path overhead in nanoseconds, for an I/O that takes `takes_ns` on the device.
    /// `others` is the number of other I/Os in flight.
    fn path_overhead_ns(&self, op: Op, length: u32, takes_ns: u64, others: u64) -> u64 {
        let overhead = self.overhead();
        let path_increase_ns =
            self.path_increase_ns[op as usize].load(Relaxed).min(overhead.max_increase(op, takes_ns, others));
        overhead.of(op, length).saturating_add_signed(path_increase_ns)
    }

    /// Moves the assumed overhead half-way towards the overhead in the latest measurement.
    pub fn adjust_overhead(&self, op: Op, means: MeanIo) {
        let overhead = self.overhead();
        let Some(beyond) = overhead.beyond else { return };
        let delay_ns = means.delay_ns as u64;
        let at_mount_ns = overhead.of(op, means.bytes as u32) as i64;
        let shortest_ns = -(overhead.of(op, 0) as i64);
        let now_ns = (means.took_ns - means.delay_ns) as i64 + beyond.after(delay_ns) as i64;
        let path_increase_ns = &self.path_increase_ns[op as usize];
        let middle_ns = (path_increase_ns.load(Relaxed) + now_ns - at_mount_ns) / 2;
        path_increase_ns
            .store(middle_ns.clamp(shortest_ns, overhead.max_increase(op, delay_ns, means.others as u64)), Relaxed);
    }

    /// Resets the overhead to the values measured at mount.
    pub fn reset_overhead(&self) {
        self.path_increase_ns.iter().for_each(|one| one.store(0, Relaxed));
    }

    pub fn set_mode(&self, mode: Mode, now: u64) {
        let mut inner = self.locked();
        if mode == Mode::Model && inner.mode != Mode::Model {
            inner.collect_answered(&self.newly_answered);
            inner.next = inner.arrival_at_model(0, 0, 0);
            inner.model_lag_ns = now.saturating_sub(inner.next);
        }
        inner.mode = mode;
    }

    pub fn mode(&self) -> Mode {
        self.locked().mode
    }

    /// Sets the measured overhead. Only the first call has an effect.
    pub fn set_overhead(&self, overhead: Overhead) {
        let _ = self.overhead.set(overhead);
    }

    pub fn overhead(&self) -> &Overhead {
        self.overhead.get().unwrap_or(&Overhead::NONE)
    }

    fn locked(&self) -> MutexGuard<'_, ModelClock> {
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
