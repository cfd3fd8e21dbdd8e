//! When an answer is due: the time of the model, minus the I/O path overhead that exists anyway.

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

/// What determines when an answer is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Immediately, while file systems are created and data are loaded.
    Free,
    /// After this many nanoseconds, to measure the overhead.
    Fixed(u64),
    Model,
}

/// When an I/O that arrived will be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// May be before the arrival, if the I/O path overhead alone exceeds the time of the model.
    pub due: u64,
    /// When it reached the model, by our clock: not before those were done, by the model's word, which it is taken to
    /// follow, and later than all that reached it before.
    pub reached: u64,
    /// When the I/O is complete by the clock of the model.
    pub done: u64,
    /// Whether a model determined the time; otherwise no answer is late.
    pub modelled: bool,
    /// Whether the I/O went through the model at all.
    pub asked: bool,
    /// CPU time of the host that the device uses meanwhile.
    pub host_cpu_ns: u64,
    /// Assumed I/O path overhead in nanoseconds.
    pub way_ns: u64,
    /// Other I/Os with a model time that were in flight when the I/O arrived.
    pub others: u64,
}

impl Plan {
    /// When it is done for a trace: by the model's word, or when the answer leaves where that is later. What is taken
    /// to follow it reaches the model no earlier. By the times at which requests come in here some would be there
    /// before the answer that they follow, when the way is shorter than it is taken to be, and would seem to follow
    /// another one. So lateness up to the length of the way is not the device's in a trace: it is time between I/Os.
    pub fn over(&self, leaves: u64) -> u64 {
        leaves.max(if self.modelled { self.due + self.way_ns } else { self.reached })
    }
}

pub struct Pace {
    inner: Mutex<Inner>,
    takes_time: bool,
    overhead: OnceLock<Overhead>,
    /// On their way to `Inner::answered`, so that who answers never waits for a model.
    left: Mutex<Vec<Reverse<u64>>>,
    /// By kind; of I/Os that the model was asked for.
    sums: [Sums; KINDS],
    /// Nanoseconds by which the ways are longer now than they were at mount, by kind.
    longer_ns: [AtomicI64; KINDS],
    /// I/Os that take time by the model's word and whose answers have not left.
    under_way: AtomicU64,
}

/// Cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Answered {
    pub count: u64,
    pub bytes: u64,
    /// Answers were to be held for so long.
    pub held_ns: u64,
    /// Under way when each arrived, summed up.
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
    /// Added to our time to make the model's, which stands still while the model is not asked.
    behind: u64,
    /// The earliest at which the next request may reach the model: later than the last did, so that the order of their
    /// times is that in which the model had them.
    next: u64,
    /// When those were done, by the model's time, whose answers have left and were not yet followed by another request.
    answered: BinaryHeap<Reverse<u64>>,
}

impl Inner {
    fn collect(&mut self, left: &Mutex<Vec<Reverse<u64>>>) {
        let left = mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
        self.answered.extend(left);
    }

    /// When a request that arrives now reaches the model. Whoever has an answer sees the device done with it, even when
    /// the way there was shorter than usual. Requests are taken to follow answers in the order in which those were
    /// done; with nothing else under way, all of them. What was done longer ago than `way_ns` was followed or is by
    /// none.
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

    /// Whether an answer may ever be held.
    pub fn takes_time(&self) -> bool {
        self.takes_time
    }

    /// `now` reads the clock: calls reach the model in the order of their times.
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
                    // Not from the arrival on: the model's time would run away from ours with each that came too early.
                    Plan { due: (done + inner.behind).saturating_sub(way_ns), modelled: true, ..plan }
                }
            }
        };
        (arrival, plan)
    }

    /// Once for each plan, before the answer to what came at `arrival` leaves.
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
            // Last: who finds nothing under way finds all that left.
            self.under_way.fetch_sub(1, Release);
        }
    }

    pub fn so_far(&self, op: Op) -> Answered {
        let sums = &self.sums[op as usize];
        let Sums { count, bytes, held_ns, others } = sums;
        let [count, bytes, held_ns, others] = [count, bytes, held_ns, others].map(|sum| sum.load(Relaxed));
        Answered { count, bytes, held_ns, others }
    }

    /// Nanoseconds that the way to the device takes beside it now, for one that takes so long with so many others under
    /// way.
    fn way(&self, op: Op, length: u32, takes_ns: u64, others: u64) -> u64 {
        let overhead = self.overhead();
        let longer_ns = self.longer_ns[op as usize].load(Relaxed).min(overhead.longest_more(op, takes_ns, others));
        overhead.of(op, length).saturating_add_signed(longer_ns)
    }

    /// The way becomes what it was lately, half of it at a time.
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

    /// The ways are what they were at mount.
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

    /// Once; the first stays.
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
