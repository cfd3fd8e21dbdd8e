//! What one driving thread writes down while the stopwatch runs: three histogram records and a few sums per transaction.
//!
//! A transaction belongs to the moment it ends: it is measured when it ends inside the window, with its whole response
//! time even if it began before. Work under way when the window closes is not measured; it is counted as unfinished.
//! What both edges do to the sum of response times is kept, so that it can be held against clients × window.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use super::buckets::Buckets;
use super::clock::{MILLISECOND, NEVER, SECOND};
use super::cpu::Cpu;
use super::tally::Counts;
use super::{Histogram, Tally};

/// Width of a bucket of the timeline.
pub const BUCKET_NS: u64 = 100 * MILLISECOND;
const BUCKETS_PER_SECOND: usize = (SECOND / BUCKET_NS) as usize;

/// What is measured: from `start` until before `end`; `NEVER` when the number of transactions ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: u64,
    pub end: u64,
}

/// What happened in one 100 ms bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    pub transactions: u32,
    pub failed: u32,
    pub retries: u32,
}

impl Bucket {
    pub fn plus(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            failed: self.failed + other.failed,
            retries: self.retries + other.retries,
        }
    }
}

/// A thread's response times of one second of the window, handed over when it has passed.
#[derive(Debug)]
pub struct Slice {
    pub thread: usize,
    pub second: usize,
    pub response: Histogram,
    /// Transactions given up.
    pub failed: u64,
    pub width_ns: u64,
}

/// Read by others while the trial runs; brought up to date every 100 ms.
#[derive(Debug, Default)]
pub struct Live {
    pub transactions: AtomicU64,
    pub failed: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Open,
    Closed,
}

pub struct Recorder<'a> {
    /// Everything since the clients connected.
    pub tally: Tally,
    window: Window,
    phase: Phase,
    /// The next instant at which `cross` has something to do.
    boundary: u64,
    /// In a closed loop response time is service time, and one histogram holds both.
    open_loop: bool,
    response: Vec<Buckets>,
    service: Vec<Buckets>,
    second: Buckets,
    second_failed: u64,
    lateness: Buckets,
    lag: Buckets,
    answers: Vec<Histogram>,
    timeline: Vec<Bucket>,
    sent: usize,
    counted: Counts,
    at_start: Tally,
    carried_ns: u64,
    cpu_at_start: Cpu,
    cpu: Cpu,
    thread: usize,
    slices: Sender<Slice>,
    live: &'a Live,
}

/// What a thread measured in its window, and its tally since the start.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Nanoseconds from the start of the window to its end in this thread; 0 if it never opened.
    pub elapsed_ns: u64,
    pub measured: Tally,
    pub total: Tally,
    pub response: Vec<Histogram>,
    /// Empty in a closed loop.
    pub service: Vec<Histogram>,
    /// Times of answers by command of the program; empty unless statements are timed.
    pub answers: Vec<Histogram>,
    /// How much of the measured transactions' time lies before the window.
    pub carried_ns: u64,
    pub lateness: Histogram,
    /// How long work that became due without a schedule waited for a client.
    pub lag: Histogram,
    pub timeline: Vec<Bucket>,
    pub cpu: Cpu,
}

impl<'a> Recorder<'a> {
    pub fn new(
        thread: usize,
        kinds: usize,
        window: Window,
        open_loop: bool,
        slices: Sender<Slice>,
        live: &'a Live,
    ) -> Self {
        let buckets = |n| (0..n).map(|_| Buckets::default()).collect::<Vec<_>>();
        Self {
            tally: Tally::new(kinds),
            window,
            phase: Phase::WarmUp,
            boundary: 0,
            open_loop,
            response: buckets(kinds),
            service: buckets(if open_loop { kinds } else { 0 }),
            second: Buckets::default(),
            second_failed: 0,
            lateness: Buckets::default(),
            lag: Buckets::default(),
            answers: Vec::new(),
            timeline: Vec::new(),
            sent: 0,
            counted: Counts::default(),
            at_start: Tally::new(kinds),
            carried_ns: 0,
            cpu_at_start: Cpu::default(),
            cpu: Cpu::default(),
            thread,
            slices,
            live,
        }
    }

    /// Call `cross` when this instant has passed, before recording anything that ended after it.
    #[inline]
    pub fn boundary(&self) -> u64 {
        self.boundary
    }

    /// A transaction of `kind` ended well at `now`; it should have begun at `intended` and was sent at `begun`.
    #[inline]
    pub fn complete(&mut self, kind: usize, intended: u64, begun: u64, now: u64) {
        self.tally.kinds[kind].transactions += 1;
        if self.phase == Phase::Open {
            self.carried_ns += self.window.start.saturating_sub(begun);
            let response = now - intended;
            self.response[kind].record(response);
            self.second.record(response);
            if self.open_loop {
                self.service[kind].record(now - begun);
            }
        }
    }

    /// A timer of ours meant for `due` was served at `now`.
    #[inline]
    pub fn late(&mut self, due: u64, now: u64) {
        if self.phase == Phase::Open {
            self.lateness.record(now.saturating_sub(due));
        }
    }

    /// Work that waited for a client was due at `due` and begins at `now`.
    #[inline]
    pub fn waited(&mut self, due: u64, now: u64) {
        if self.phase == Phase::Open {
            self.lag.record(now.saturating_sub(due));
        }
    }

    /// Closes buckets and seconds that have passed, opens and closes the window.
    #[cold]
    pub fn cross(&mut self, now: u64) {
        while now >= self.boundary && self.phase != Phase::Closed {
            match self.phase {
                Phase::WarmUp if now >= self.window.start => self.open(),
                Phase::WarmUp => {
                    self.show();
                    self.boundary = self.window.start.min(now + BUCKET_NS);
                }
                Phase::Open if self.boundary >= self.window.end => {
                    self.close(self.window.end);
                }
                _ => {
                    self.end_bucket();
                    self.boundary = self.window.end.min(self.bucket_end());
                }
            }
        }
    }

    /// Ends the window now: the last transaction has ended, or the trial was stopped.
    /// False when it had been closed already.
    pub fn close(&mut self, now: u64) -> bool {
        match self.phase {
            Phase::Closed => return false,
            Phase::WarmUp => self.window.end = self.window.start,
            Phase::Open => {
                self.window.end = now.clamp(self.window.start, self.window.end);
                self.cpu = Cpu::of_thread().since(self.cpu_at_start);
                self.end_bucket();
                self.end_second();
            }
        }
        if self.phase == Phase::WarmUp {
            self.at_start = self.tally.clone();
        }
        self.at_end();
        true
    }

    /// How much of the time from `begun` on lies inside the window, which is closed.
    pub fn inside_window(&self, begun: u64) -> u64 {
        self.window.end.saturating_sub(begun.max(self.window.start))
    }

    /// Where the window ends; true of an early end only when it is closed.
    pub fn window_end(&self) -> u64 {
        self.window.end
    }

    pub fn is_warming_up(&self) -> bool {
        self.phase == Phase::WarmUp
    }

    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub fn finish(mut self) -> Recording {
        self.close(self.window.end);
        let measured = std::mem::take(&mut self.at_start);
        Recording {
            elapsed_ns: self.window.end - self.window.start,
            measured,
            total: self.tally,
            response: self.response.iter_mut().map(Buckets::take).collect(),
            service: self.service.iter_mut().map(Buckets::take).collect(),
            answers: self.answers,
            carried_ns: self.carried_ns,
            lateness: self.lateness.take(),
            lag: self.lag.take(),
            timeline: self.timeline,
            cpu: self.cpu,
        }
    }

    fn open(&mut self) {
        self.phase = Phase::Open;
        self.show();
        self.at_start = self.tally.clone();
        self.tally.keep_answers();
        self.cpu_at_start = Cpu::of_thread();
        self.boundary = self.window.end.min(self.bucket_end());
    }

    /// From here on `at_start` holds what the window measured.
    fn at_end(&mut self) {
        self.phase = Phase::Closed;
        self.boundary = NEVER;
        self.answers = self.tally.take_answers();
        self.at_start = self.tally.since(&self.at_start);
    }

    fn bucket_end(&self) -> u64 {
        self.window.start + BUCKET_NS * (self.timeline.len() as u64 + 1)
    }

    fn end_bucket(&mut self) {
        let new = self.show();
        self.second_failed += new.failed;
        self.timeline.push(Bucket {
            transactions: new.transactions as u32,
            failed: new.failed as u32,
            retries: new.retries as u32,
        });
        if self.timeline.len().is_multiple_of(BUCKETS_PER_SECOND) {
            self.end_second();
        }
    }

    fn end_second(&mut self) {
        let second = (self.timeline.len().max(1) - 1) / BUCKETS_PER_SECOND;
        if self.sent > second {
            return;
        }
        self.sent = second + 1;
        let response = self.second.take();
        let failed = std::mem::take(&mut self.second_failed);
        let width_ns = SECOND.min(self.window.end - self.window.start - second as u64 * SECOND);
        // The receiver is gone only when the trial has been given up.
        let _ = self.slices.send(Slice { thread: self.thread, second, response, failed, width_ns });
    }

    /// What is new since the last call; the others see it too.
    fn show(&mut self) -> Counts {
        let total = self.tally.total();
        let new = total.since(self.counted);
        self.counted = total;
        self.live.transactions.fetch_add(new.transactions, Relaxed);
        self.live.failed.fetch_add(new.failed, Relaxed);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::mpsc::channel;

    fn run(window: Window, ends: &[u64], close: Option<u64>) -> (Recording, Vec<Slice>) {
        let (sender, receiver) = channel();
        let live = Live::default();
        let mut recorder = Recorder::new(0, 1, window, true, sender, &live);
        for &end in ends {
            if end >= recorder.boundary() {
                recorder.cross(end);
            }
            recorder.complete(0, end.saturating_sub(100), end.saturating_sub(50), end);
        }
        match close {
            Some(instant) => assert!(recorder.close(instant)),
            None => recorder.cross(window.end),
        }
        (recorder.finish(), receiver.try_iter().collect())
    }

    proptest! {
        #[test]
        fn timeline_seconds_histograms_and_counts_agree(
            mut ends in prop::collection::vec(0u64..8 * SECOND, 0..200), width in 1u64..4 * SECOND, warmup in 0u64..3 * SECOND
        ) {
            ends.sort_unstable();
            let window = Window { start: 1000 + warmup, end: 1000 + warmup + width };
            let ends: Vec<u64> = ends.into_iter().map(|e| e + 1000).collect();
            let inside = ends.iter().filter(|&&e| e >= window.start && e < window.end).count() as u64;
            let (recording, slices) = run(window, &ends, None);
            prop_assert_eq!(recording.measured.total().transactions, inside);
            prop_assert_eq!(recording.total.total().transactions, ends.len() as u64);
            prop_assert_eq!(recording.timeline.iter().map(|b| u64::from(b.transactions)).sum::<u64>(), inside);
            prop_assert_eq!(recording.response[0].count(), inside);
            prop_assert_eq!(recording.service[0].count(), inside);
            prop_assert_eq!(slices.iter().map(|s| s.response.count()).sum::<u64>(), inside);
            prop_assert_eq!(recording.elapsed_ns, width);
            prop_assert_eq!(recording.timeline.len() as u64, width.div_ceil(BUCKET_NS));
            prop_assert_eq!(slices.len() as u64, width.div_ceil(SECOND));
        }
    }

    #[test]
    fn a_trial_stopped_while_warming_up_has_an_empty_window() {
        let window = Window { start: 10 * SECOND, end: 20 * SECOND };
        let (recording, slices) = run(window, &[SECOND, 2 * SECOND], Some(3 * SECOND));
        assert_eq!((recording.elapsed_ns, recording.measured.total().transactions), (0, 0));
        assert_eq!(recording.total.total().transactions, 2);
        assert!(slices.is_empty() && recording.timeline.is_empty());
    }

    #[test]
    fn an_early_stop_keeps_what_was_measured() {
        let window = Window { start: SECOND, end: 20 * SECOND };
        let (recording, slices) = run(window, &[SECOND, 2 * SECOND], Some(2 * SECOND + 30 * MILLISECOND));
        assert_eq!(recording.elapsed_ns, SECOND + 30 * MILLISECOND);
        assert_eq!((recording.timeline.len(), slices.len()), (11, 2));
    }
}
