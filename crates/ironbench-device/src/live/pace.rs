//! When an answer is due: the model's word, less what the way to the device takes anyway.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use super::drift::Means;
use super::tally::KINDS;
use crate::{Device, Op};

/// Nanoseconds that the way to the device takes beside the device: so much for each I/O, so much more for each byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Way {
    pub each_ns: f64,
    pub byte_ns: f64,
}

impl Way {
    /// From the mean times of a small and a large I/O.
    pub fn through(small: (usize, f64), large: (usize, f64)) -> Self {
        let byte_ns = ((large.1 - small.1) / (large.0 - small.0) as f64).max(0.0);
        Self { each_ns: (small.1 - byte_ns * small.0 as f64).max(0.0), byte_ns }
    }

    fn of(self, length: u32) -> u64 {
        (self.each_ns + self.byte_ns * f64::from(length)) as u64
    }
}

/// What a hold adds to the time until an answer arrives: the processor of whoever waits for it goes to sleep, and on a
/// virtual machine is given to others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct AfterHold {
    /// After so many nanoseconds without any request or answer, in ascending order …
    pub after_ns: [u64; Self::POINTS],
    /// … so many more.
    pub more_ns: [f64; Self::POINTS],
}

impl AfterHold {
    pub const POINTS: usize = 5;

    /// Between the points on a line; as the first before it and the last one beyond it.
    pub fn after(&self, idle_ns: u64) -> u64 {
        let next = self.after_ns.partition_point(|&point| point <= idle_ns);
        if next == 0 || next == Self::POINTS {
            return self.more_ns[next.saturating_sub(1)] as u64;
        }
        let ((from, to), (less, more)) =
            ((self.after_ns[next - 1], self.after_ns[next]), (self.more_ns[next - 1], self.more_ns[next]));
        (less + (more - less) * (idle_ns - from) as f64 / (to - from) as f64) as u64
    }
}

/// What was measured at mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Overhead {
    pub read: Way,
    pub write: Way,
    pub flush: Way,
    /// How much later an answer arrives when nothing happened here for a while.
    pub waking: AfterHold,
    /// Held answers are usually so late; the ways contain it.
    pub late_ns: u64,
    /// What a read takes before and after the block device has it, which is a part of its way; None where the kernel keeps
    /// no account of block devices.
    pub beyond: Option<AfterHold>,
}

impl Overhead {
    pub fn of(&self, op: Op, length: u32) -> u64 {
        match op {
            Op::Read => self.read.of(length),
            Op::Write => self.write.of(length),
            Op::Flush => self.flush.of(0),
        }
    }
}

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
}

pub struct Pace {
    inner: Mutex<Inner>,
    takes_time: bool,
    overhead: OnceLock<Overhead>,
    /// When the last of those that were answered was done, by the model's time.
    answered: AtomicU64,
    /// By kind; of I/Os that the model was asked for.
    sums: [Sums; KINDS],
    /// Nanoseconds by which the ways are longer now than they were at mount, by kind.
    longer_ns: [AtomicI64; KINDS],
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
}

impl Pace {
    pub fn new(device: Box<dyn Device>) -> Self {
        let takes_time = device.takes_time();
        let inner = Inner { device, mode: Mode::Free, behind: 0, last: 0 };
        Self {
            inner: Mutex::new(inner),
            takes_time,
            overhead: OnceLock::new(),
            answered: AtomicU64::new(0),
            sums: Default::default(),
            longer_ns: Default::default(),
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
        let at_once = Plan { due: arrival, done: 0, modelled: false, asked: false, host_cpu_ns: 0 };
        let plan = match inner.mode {
            Mode::Free => at_once,
            Mode::Fixed(span) => Plan { due: arrival + span, modelled: true, ..at_once },
            Mode::Model => {
                // Whoever has an answer sees the device done with it, even when the way there was shorter than usual.
                let answered = self.answered.load(Acquire);
                let asked = (arrival.saturating_sub(inner.behind)).max(inner.last).max(answered);
                inner.last = asked;
                let done = inner.device.submit(asked, op, offset, length);
                let host_cpu_ns = inner.device.host_cpu(op, length);
                if done <= asked {
                    Plan { done, asked: true, host_cpu_ns, ..at_once }
                } else {
                    // Not from the arrival on: the model's time would run away from ours with each that came too early.
                    let due = (done + inner.behind).saturating_sub(self.way(op, length));
                    Plan { due, done, modelled: true, asked: true, host_cpu_ns }
                }
            }
        };
        (arrival, plan)
    }

    /// Before the answer to what came at `arrival` leaves.
    pub fn answered(&self, plan: &Plan, arrival: u64, op: Op, length: u32) {
        self.answered.fetch_max(plan.done, AcqRel);
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

    /// Nanoseconds that the way to the device takes beside it now.
    pub fn way(&self, op: Op, length: u32) -> u64 {
        self.overhead().of(op, length).saturating_add_signed(self.longer_ns[op as usize].load(Relaxed))
    }

    /// The way becomes what it was lately, half of it at a time. Beyond twice the way at mount, and the waking after holds
    /// so long, it is not the way that takes long: more is asked than gets through here.
    pub fn seen(&self, op: Op, means: Means) {
        let overhead = self.overhead();
        let Some(beyond) = overhead.beyond else { return };
        let held_ns = means.held_ns as u64;
        let at_mount_ns = overhead.of(op, 0) as i64;
        let most = at_mount_ns + overhead.waking.after(held_ns) as i64;
        let now_ns = (means.took_ns - means.held_ns) as i64 + beyond.after(held_ns) as i64;
        let longer_ns = &self.longer_ns[op as usize];
        let middle_ns = (longer_ns.load(Relaxed) + now_ns - at_mount_ns) / 2;
        longer_ns.store(middle_ns.clamp(-at_mount_ns, most), Relaxed);
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
        const NONE: Overhead = Overhead {
            read: Way { each_ns: 0.0, byte_ns: 0.0 },
            write: Way { each_ns: 0.0, byte_ns: 0.0 },
            flush: Way { each_ns: 0.0, byte_ns: 0.0 },
            waking: AfterHold { after_ns: [0; AfterHold::POINTS], more_ns: [0.0; AfterHold::POINTS] },
            late_ns: 0,
            beyond: None,
        };
        self.overhead.get().unwrap_or(&NONE)
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
            Plan { due: 60_000, done: 0, modelled: false, asked: false, host_cpu_ns: 0 }
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

    #[test]
    fn the_way_becomes_what_it_was_lately_within_limits() {
        let pace = pace();
        let way = Way { each_ns: 20_000.0, byte_ns: 0.0 };
        let after_ns = [60_000, 200_000, 1_000_000, 2_000_000, 3_000_000];
        let waking = AfterHold { after_ns, more_ns: [0.0, 0.0, 50_000.0, 50_000.0, 50_000.0] };
        let beyond = Some(AfterHold { after_ns, more_ns: [4_000.0; AfterHold::POINTS] });
        pace.calibrated(Overhead { read: way, write: way, waking, beyond, ..Overhead::default() });
        let seen = |op, way_ns| pace.seen(op, Means { held_ns: 80_000.0, took_ns: 76_000.0 + way_ns });
        seen(Op::Read, 30_000.0);
        assert_eq!((pace.way(Op::Read, 4096), pace.way(Op::Write, 4096)), (25_000, 20_000));
        (0..20).for_each(|_| seen(Op::Read, 30_000.0));
        assert!(pace.way(Op::Read, 4096).abs_diff(30_000) <= 1);
        seen(Op::Read, 1e9);
        seen(Op::Write, -1e9);
        assert_eq!((pace.way(Op::Read, 4096), pace.way(Op::Write, 4096)), (40_000, 0));
        pace.seen(Op::Read, Means { held_ns: 2e6, took_ns: 1e9 }); // the processor may have gone to sleep
        assert_eq!(pace.way(Op::Read, 4096), 90_000);
        pace.as_at_mount();
        assert_eq!((pace.way(Op::Read, 4096), pace.way(Op::Write, 4096)), (20_000, 20_000));
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

    #[test]
    fn a_waking_lies_between_those_that_were_measured() {
        let waking = AfterHold { after_ns: [10, 20, 40, 80, 160], more_ns: [0.0, 100.0, 200.0, 200.0, 600.0] };
        let found: Vec<_> = [0, 10, 15, 30, 60, 120, 160, 1_000].into_iter().map(|idle| waking.after(idle)).collect();
        assert_eq!(found, [0, 0, 50, 150, 200, 400, 600, 600]);
        assert_eq!(AfterHold::default().after(5_000), 0);
    }

    #[test]
    fn a_way_goes_through_both_measurements() {
        let way = Way::through((4096, 25_000.0), (262_144, 60_000.0));
        for (length, expected) in [(4096u32, 25_000), (262_144, 60_000)] {
            assert!(way.of(length).abs_diff(expected) <= 1);
        }
        assert_eq!(Way::through((4096, 25_000.0), (262_144, 20_000.0)).byte_ns, 0.0);
    }
}
