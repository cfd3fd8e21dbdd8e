//! When an answer is due: the model's word, less what the way to the device takes anyway.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::drift::Means;
use super::tally::KINDS;
use super::way::Overhead;
use crate::{Device, Op};

/// The way is not learned to be longer than it may be with so many others under way.
const MOST_OTHERS: u64 = 31;

/// An answer that was not followed by a request so long after it was done is followed by none.
const FOLLOWED_WITHIN_NS: u64 = 1_000_000;

/// What decides when an answer is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// At once: while file systems are made and data loaded.
    Free,
    /// So many nanoseconds later: to measure what comes on top.
    Fixed(u64),
    Model,
}

/// When an I/O that arrived will be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// May lie before the arrival: then the way alone takes longer than the model.
    pub due: u64,
    /// When it is done, by the model's time.
    pub done: u64,
    /// Whether a model said so; otherwise nothing is late.
    pub modelled: bool,
    /// Whether the model was asked at all.
    pub asked: bool,
    /// Of the host's processor, to be taken away meanwhile.
    pub host_cpu_ns: u64,
    /// That the way to the device is thought to take beside it.
    pub way_ns: u64,
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
    /// Held answers of the model.
    under_way: AtomicU64,
}

/// Cumulative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Answered {
    pub count: u64,
    pub bytes: u64,
    /// Answers were to be held for so long.
    pub held_ns: u64,
}

#[derive(Debug, Default)]
struct Sums {
    count: AtomicU64,
    bytes: AtomicU64,
    held_ns: AtomicU64,
}

struct Inner {
    device: Box<dyn Device>,
    mode: Mode,
    /// Added to our time to make the model's, which stands still while the model is not asked.
    behind: u64,
    last: u64,
    /// When those were done, by the model's time, whose answers have left and were not yet followed by another request.
    answered: BinaryHeap<Reverse<u64>>,
}

impl Inner {
    /// When a request that arrives now reaches the model: whoever has an answer sees the device done with it, even when
    /// the way there was shorter than usual. Requests follow answers in the order in which those were done.
    fn reaches(&mut self, arrival: u64) -> u64 {
        let now = arrival.saturating_sub(self.behind).max(self.last);
        while self.answered.peek().is_some_and(|done| done.0 + FOLLOWED_WITHIN_NS < now) {
            self.answered.pop();
        }
        self.answered.pop().map_or(now, |done| done.0.max(now))
    }
}

impl Pace {
    pub fn new(device: Box<dyn Device>) -> Self {
        let takes_time = device.takes_time();
        let inner = Inner { device, mode: Mode::Free, behind: 0, last: 0, answered: BinaryHeap::new() };
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
        let way_ns = self.overhead().of(op, length);
        let at_once = Plan { due: arrival, done: 0, modelled: false, asked: false, host_cpu_ns: 0, way_ns };
        let plan = match inner.mode {
            Mode::Free => at_once,
            Mode::Fixed(span) => Plan { due: arrival + span, modelled: true, ..at_once },
            Mode::Model => {
                inner.answered.extend(self.left.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
                let asked = inner.reaches(arrival);
                inner.last = asked;
                let done = inner.device.submit(asked, op, offset, length);
                let host_cpu_ns = inner.device.host_cpu(op, length);
                if done <= asked {
                    Plan { done, asked: true, host_cpu_ns, ..at_once }
                } else {
                    let others = self.under_way.fetch_add(1, Relaxed);
                    let way_ns = self.way(op, length, done - asked, others);
                    // Not from the arrival on: the model's time would run away from ours with each that came too early.
                    let due = (done + inner.behind).saturating_sub(way_ns);
                    Plan { due, done, modelled: true, asked: true, host_cpu_ns, way_ns }
                }
            }
        };
        (arrival, plan)
    }

    /// Before the answer to what came at `arrival` leaves.
    pub fn answered(&self, plan: &Plan, arrival: u64, op: Op, length: u32) {
        if plan.modelled && plan.asked {
            self.under_way.fetch_sub(1, Relaxed);
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(plan.done));
        }
        if plan.asked {
            let sums = &self.sums[op as usize];
            sums.held_ns.fetch_add(plan.due.saturating_sub(arrival), Relaxed);
            sums.bytes.fetch_add(u64::from(length), Relaxed);
            sums.count.fetch_add(1, Relaxed);
        }
    }

    pub fn so_far(&self, op: Op) -> Answered {
        let sums = &self.sums[op as usize];
        let [count, bytes, held_ns] = [&sums.count, &sums.bytes, &sums.held_ns].map(|sum| sum.load(Relaxed));
        Answered { count, bytes, held_ns }
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
        let at_mount_ns = overhead.of(op, 0) as i64;
        let now_ns = (means.took_ns - means.held_ns) as i64 + beyond.after(held_ns) as i64;
        let longer_ns = &self.longer_ns[op as usize];
        let middle_ns = (longer_ns.load(Relaxed) + now_ns - at_mount_ns) / 2;
        longer_ns.store(middle_ns.clamp(-at_mount_ns, overhead.longest_more(op, held_ns, MOST_OTHERS)), Relaxed);
    }

    /// The ways are what they were at mount.
    pub fn as_at_mount(&self) {
        self.longer_ns.iter().for_each(|one| one.store(0, Relaxed));
    }

    pub fn set(&self, mode: Mode, now: u64) {
        let mut inner = self.locked();
        if mode == Mode::Model && inner.mode != Mode::Model {
            inner.behind = now.saturating_sub(inner.last);
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
mod tests {
    use super::super::way::{AfterHold, Way};
    use super::*;

    /// Takes 100 µs for everything, one thing at a time.
    struct Slow {
        free_at: u64,
    }

    impl Device for Slow {
        fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
            self.free_at = self.free_at.max(now) + 100_000;
            self.free_at
        }

        fn capacity(&self) -> u64 {
            1 << 30
        }
    }

    fn pace() -> Pace {
        Pace::new(Box::new(Slow { free_at: 0 }))
    }

    #[test]
    fn the_way_is_taken_off_what_the_model_says() {
        let pace = pace();
        let way = Way { each_ns: 20_000.0, byte_ns: 0.5 };
        pace.calibrated(Overhead { read: way, ..Overhead::default() });
        pace.set(Mode::Model, 0);
        let (arrival, plan) = pace.plan(|| 1_000, Op::Read, 0, 4096);
        assert_eq!((arrival, plan.due, plan.modelled), (1_000, 101_000 - 22_048, true));
        // The device is busy until 101 000, whatever the way takes.
        assert_eq!(pace.plan(|| 2_000, Op::Write, 0, 4096).1.due, 201_000);
    }

    #[test]
    fn the_models_time_stands_still_while_it_is_not_asked() {
        let pace = pace();
        pace.set(Mode::Model, 0);
        assert_eq!(pace.plan(|| 0, Op::Read, 0, 512).1.due, 100_000);
        pace.set(Mode::Free, 50_000);
        assert_eq!(
            pace.plan(|| 60_000, Op::Read, 0, 512).1,
            Plan { due: 60_000, done: 0, modelled: false, asked: false, host_cpu_ns: 0, way_ns: 0 }
        );
        pace.set(Mode::Model, 1_000_000);
        // What it was asked for at its time 0 keeps it busy for 100 µs of its time still.
        assert_eq!(pace.plan(|| 1_000_000, Op::Read, 0, 512).1.due, 1_200_000);
    }

    #[test]
    fn what_was_answered_is_done_when_the_next_arrives_however_early_that_is() {
        let pace = pace();
        let way = Way { each_ns: 20_000.0, byte_ns: 0.0 };
        pace.calibrated(Overhead { read: way, ..Overhead::default() });
        pace.set(Mode::Model, 0);
        let (_, first) = pace.plan(|| 0, Op::Read, 0, 4096);
        assert_eq!((first.due, first.done), (80_000, 100_000));
        pace.answered(&first, 0, Op::Read, 4096);
        // Answered at 80 000; the way took 5 000, not 20 000. The device does not know of two at a time.
        let (_, second) = pace.plan(|| 85_000, Op::Read, 0, 4096);
        assert_eq!((second.due, second.done), (180_000, 200_000));
    }

    /// Takes 100 µs for everything, however much that is.
    struct Wide;

    impl Device for Wide {
        fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
            now + 100_000
        }

        fn capacity(&self) -> u64 {
            1 << 30
        }
    }

    #[test]
    fn requests_follow_answers_in_the_order_in_which_those_were_done() {
        let pace = Pace::new(Box::new(Wide));
        let way = Way { each_ns: 50_000.0, byte_ns: 0.0 };
        pace.calibrated(Overhead { read: way, ..Overhead::default() });
        pace.set(Mode::Model, 0);
        let done_for = |now| pace.plan(|| now, Op::Read, 0, 512).1.done;
        let (_, first) = pace.plan(|| 0, Op::Read, 0, 512);
        let (_, second) = pace.plan(|| 20_000, Op::Read, 0, 512);
        pace.answered(&second, 20_000, Op::Read, 512);
        pace.answered(&first, 0, Op::Read, 512);
        // Both have left, and two requests come: one when the first is done, the other when the second is.
        assert_eq!((done_for(90_000), done_for(91_000)), (200_000, 220_000));
        // A third follows neither.
        assert_eq!(done_for(125_000), 225_000);
    }

    #[test]
    fn answers_that_nothing_followed_soon_are_forgotten() {
        let pace = Pace::new(Box::new(Wide));
        pace.set(Mode::Model, 0);
        let answered = |now| {
            let (arrival, plan) = pace.plan(|| now, Op::Read, 0, 512);
            pace.answered(&plan, arrival, Op::Read, 512);
            plan.done
        };
        let early = [pace.plan(|| 0, Op::Read, 0, 512), pace.plan(|| 0, Op::Read, 0, 512)];
        early.iter().for_each(|(arrival, plan)| pace.answered(plan, *arrival, Op::Read, 512));
        let later = 100_001 + FOLLOWED_WITHIN_NS;
        assert_eq!(answered(later), later + 100_000);
        // Remembered, one of them would be what this one follows.
        assert_eq!(answered(later + 10_000), later + 200_000);
    }

    #[test]
    fn the_way_becomes_what_it_was_lately_within_limits() {
        let pace = pace();
        let way = Way { each_ns: 20_000.0, byte_ns: 0.0 };
        let after_ns = [60_000, 200_000, 1_000_000, 2_000_000, 3_000_000];
        let waking = AfterHold { after_ns, more_ns: [0.0, 0.0, 50_000.0, 50_000.0, 50_000.0] };
        let beyond = Some(AfterHold { after_ns, more_ns: [4_000.0; AfterHold::POINTS] });
        pace.calibrated(Overhead { read: way, write: way, waking, beyond, ..Overhead::default() });
        let seen = |op, way_ns| pace.seen(op, Means { held_ns: 80_000.0, took_ns: 76_000.0 + way_ns });
        let lone = |op| pace.way(op, 4096, 100_000, 0);
        seen(Op::Read, 30_000.0);
        assert_eq!((lone(Op::Read), lone(Op::Write)), (25_000, 20_000));
        (0..20).for_each(|_| seen(Op::Read, 30_000.0));
        assert!(lone(Op::Read).abs_diff(30_000) <= 1);
        seen(Op::Read, 1e9);
        seen(Op::Write, -1e9);
        assert_eq!((lone(Op::Read), lone(Op::Write)), (40_000, 0));
        assert_eq!(pace.way(Op::Read, 4096, 2_000_000, 0), 90_000); // the processor may have gone to sleep
        assert_eq!(pace.way(Op::Read, 4096, 100_000, 16), 80_000); // the others have their turn
        pace.as_at_mount();
        assert_eq!((lone(Op::Read), lone(Op::Write)), (20_000, 20_000));
    }

    #[test]
    fn what_was_answered_counts_with_the_time_that_it_was_to_be_held() {
        let pace = pace();
        pace.set(Mode::Model, 0);
        for (now, length) in [(0, 512), (50_000, 1024)] {
            let (arrival, plan) = pace.plan(|| now, Op::Write, 0, length);
            pace.answered(&plan, arrival, Op::Write, length);
        }
        assert_eq!(pace.so_far(Op::Write), Answered { count: 2, bytes: 1536, held_ns: 250_000 });
        assert_eq!(pace.so_far(Op::Read), Answered::default());
    }
}
