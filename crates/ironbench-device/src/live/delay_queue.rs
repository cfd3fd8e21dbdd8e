//! Delays answers until their time. A heap contains the answers, and a thread sleeps for most of the wait and spins for
//! the rest.
//!
//! A sleeping thread wakes some microseconds late, because of timers and idle states of the processor. The longer the
//! sleep, the later it wakes. A spinning thread is on time. Therefore the thread sets its wake-up early by twice its
//! recent wake-up latency, and spins until the answer must be sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironbench_core::Result;
use ironbench_core::measure::threads::{BackgroundThread, Gate, ThreadSettings, Timing};

/// Assumed wake-up latency before the first measurement.
const INITIAL_LATENCY_NS: u64 = 15_000;
/// Maximum time to spin, however high the wake-up latency is. The thread also spins for at most a quarter of the wait,
/// because it wakes less late from a short sleep.
const MAX_SPIN_NS: u64 = 100_000;
const MIN_SPIN_NS: u64 = 20_000;
/// Queue depth from which on the lateness of a single answer hardly matters. From this depth on, the thread does not
/// spin, and leaves the CPU to the clients. Answers that are less than `BATCH_WINDOW_NS` apart are sent together. Some
/// of them are slightly early, others slightly late.
const DEEP_QUEUE: usize = 8;
const BATCH_WINDOW_NS: u64 = 16_000;
/// Maximum number of answers taken at a time. An answer that becomes due while these are sent has to wait for them, so
/// their number is limited.
const BATCH: usize = 16;
const NEVER: u64 = u64::MAX;

/// A clock that starts at 0 and counts nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    #[inline]
    pub fn now(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Spins until the time that `until` returns. The function is called in every iteration, because its result may
    /// change.
    pub fn spin_until(self, until: impl Fn() -> u64) {
        while self.now() < until() {
            std::hint::spin_loop();
        }
    }
}

/// A queue that delivers each item at its due time, in a separate thread.
#[derive(Debug)]
pub struct DelayQueue<T> {
    shared: Arc<Shared<T>>,
    _thread: BackgroundThread,
}

/// State of a queue that its thread and the callers share.
#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    /// Time at which the first waiting answer becomes due, or `NEVER` if no answer waits.
    earliest: AtomicU64,
}

#[derive(Debug)]
struct State<T> {
    waiting: DueHeap<T>,
    ended: bool,
}

/// Items ordered by due time. Items with equal due times are in order of arrival.
#[derive(Debug)]
struct DueHeap<T> {
    heap: BinaryHeap<Reverse<HeapEntry<T>>>,
    number: u64,
    /// Time at which an item last arrived or was sent.
    last_activity: u64,
}

impl<T> Default for DueHeap<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::with_capacity(1024), number: 0, last_activity: 0 }
    }
}

impl<T> DueHeap<T> {
    /// Adds an item that arrived at `now`.
    fn push(&mut self, now: u64, due: u64, item: T) {
        self.heap.push(Reverse(HeapEntry { due, number: self.number, item }));
        self.number += 1;
        self.note_activity(now);
    }

    /// Records that an item arrived or was sent.
    fn note_activity(&mut self, now: u64) {
        self.last_activity = self.last_activity.max(now);
    }

    /// Whether so many items wait that the thread need not spin.
    fn is_deep(&self) -> bool {
        self.heap.len() >= DEEP_QUEUE
    }

    /// Returns when the first item must be sent. After an idle period, this is earlier than the item's due time,
    /// because the receiver wakes up late after such a period. Returns `NEVER` if there are no items.
    fn earliest(&self, ahead: impl Fn(u64) -> u64) -> u64 {
        self.heap.peek().map_or(NEVER, |Reverse(first)| first.due.saturating_sub(self.ahead(first.due, ahead)))
    }

    /// Removes the first item if it must be sent now. Returns the item, and how long before its due time to send it.
    fn pop(&mut self, now: u64, ahead: impl Fn(u64) -> u64) -> Option<(T, u64)> {
        let first = &self.heap.peek()?.0;
        let ahead = self.ahead(first.due, ahead);
        let run_parallel = if self.is_deep() { BATCH_WINDOW_NS } else { 0 };
        let leaves = first.due <= now.saturating_add(ahead.max(run_parallel));
        leaves.then(|| self.heap.pop()).flatten().map(|first| (first.0.item, ahead))
    }

    fn ahead(&self, due: u64, ahead: impl Fn(u64) -> u64) -> u64 {
        ahead(due.saturating_sub(self.last_activity))
    }
}

/// Moving average of the wake-up latency.
#[derive(Debug)]
struct WakeupLatency {
    mean_ns: u64,
}

impl Default for WakeupLatency {
    fn default() -> Self {
        Self { mean_ns: INITIAL_LATENCY_NS }
    }
}

impl WakeupLatency {
    /// Returns how long to sleep until an item must leave. Returns None if the time is so short that the thread should
    /// spin.
    fn sleep_ns(&self, earliest: u64, now: u64, many: bool) -> Option<u64> {
        let left = earliest.saturating_sub(now);
        let longest = (left / 4).clamp(MIN_SPIN_NS, MAX_SPIN_NS);
        let spin_ns = if many { 0 } else { (2 * self.mean_ns).clamp(MIN_SPIN_NS / 2, longest) };
        left.checked_sub(spin_ns).filter(|&sleep| sleep > 0)
    }

    /// Records a wake-up latency: the time by which a sleep lasted longer than requested.
    fn record(&mut self, late_ns: u64) {
        self.mean_ns = (self.mean_ns * 7 + late_ns) / 8;
    }
}

/// An item with its due time. The number keeps items with equal due times in order of arrival.
#[derive(Debug)]
struct HeapEntry<T> {
    due: u64,
    number: u64,
    item: T,
}

impl<T> HeapEntry<T> {
    fn key(&self) -> (u64, u64) {
        (self.due, self.number)
    }
}

impl<T> PartialEq for HeapEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for HeapEntry<T> {}

impl<T> PartialOrd for HeapEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for HeapEntry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Shared<T> {
    fn locked(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> DelayQueue<T> {
    /// Starts the thread, which calls `answer` for each item in order of due time. Items with equal due times are
    /// answered in order of arrival. Items may be sent before their due time. The function `ahead` determines how long
    /// before, from the length of the idle period before the item. Both times are in nanoseconds. The result of `ahead`
    /// is passed to `answer` as the second argument.
    pub fn start(
        clock: Clock,
        ahead: impl Fn(u64) -> u64 + Send + 'static,
        answer: impl Fn(T, u64) + Send + 'static,
    ) -> Result<Self> {
        let state = State { waiting: DueHeap::default(), ended: false };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new(), earliest: AtomicU64::new(NEVER) });
        let for_thread = Arc::clone(&shared);
        let settings = ThreadSettings::new("device-due").with_timing(Timing::RealTime);
        let thread = BackgroundThread::start(settings, Arc::default(), move |_: &Gate| {
            run(&for_thread, clock, &ahead, &answer);
            Ok(())
        })?;
        Ok(Self { shared, _thread: thread })
    }

    /// Delays an item that arrived at `now`.
    pub fn push(&self, now: u64, due: u64, item: T) {
        let mut state = self.shared.locked();
        state.waiting.push(now, due, item);
        if due < self.shared.earliest.load(Acquire) {
            self.shared.earliest.store(due, Release);
            self.shared.wake.notify_one();
        }
    }
}

impl<T> Drop for DelayQueue<T> {
    /// Answers all remaining items immediately.
    fn drop(&mut self) {
        self.shared.locked().ended = true;
        self.shared.earliest.store(0, Release);
        self.shared.wake.notify_one();
    }
}

fn run<T>(shared: &Shared<T>, clock: Clock, ahead: &impl Fn(u64) -> u64, answer: &impl Fn(T, u64)) {
    let mut ready = Vec::with_capacity(BATCH);
    let mut latency = WakeupLatency::default();
    let mut state = shared.locked();
    loop {
        let now = if state.ended { NEVER } else { clock.now() };
        while ready.len() < BATCH
            && let Some(item) = state.waiting.pop(now, ahead)
        {
            ready.push(item);
        }
        let earliest = state.waiting.earliest(ahead);
        shared.earliest.store(earliest, Release);
        if !ready.is_empty() {
            drop(state);
            ready.drain(..).for_each(|(item, ahead)| answer(item, ahead));
            state = shared.locked();
            state.waiting.note_activity(clock.now());
        } else if state.ended {
            return;
        } else if earliest == NEVER {
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        } else if let Some(sleep) = latency.sleep_ns(earliest, now, state.waiting.is_deep()) {
            let (woken, outcome) =
                shared.wake.wait_timeout(state, Duration::from_nanos(sleep)).unwrap_or_else(PoisonError::into_inner);
            if outcome.timed_out() {
                latency.record(clock.now().saturating_sub(now + sleep));
            }
            state = woken;
        } else {
            drop(state);
            clock.spin_until(|| shared.earliest.load(Acquire));
            state = shared.locked();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn answers_come_in_the_order_in_which_they_are_due_and_never_early() {
        let clock = Clock::start();
        let (told, heard) = mpsc::channel();
        let due =
            DelayQueue::start(clock, |_| 0, move |wanted: u64, _| told.send((wanted, clock.now())).unwrap()).unwrap();
        let now = clock.now();
        for wait_us in [3_000, 500, 2_000, 500, 10, 0] {
            due.push(now, now + wait_us * 1_000, now + wait_us * 1_000);
        }
        let answers: Vec<_> = (0..6).map(|_| heard.recv().unwrap()).collect();
        assert!(answers.iter().all(|(wanted, at)| at >= wanted));
        let mut wanted: Vec<_> = answers[1..].iter().map(|(wanted, _)| *wanted).collect();
        // The first item may be answered before the others arrive.
        wanted.insert(0, answers[0].0);
        let late: Vec<_> = wanted.iter().filter(|&&wanted| wanted > now + 400_000).copied().collect();
        assert!(late.is_sorted());
    }

    #[test]
    fn an_answer_leaves_ahead_of_its_time_after_a_pause_only() {
        let ahead = |idle_ns: u64| idle_ns / 10;
        let mut waiting = DueHeap::default();
        waiting.push(0, 100_000, "first");
        assert_eq!((waiting.earliest(ahead), waiting.pop(89_999, ahead)), (90_000, None));
        waiting.push(60_000, 200_000, "second");
        assert_eq!(waiting.earliest(ahead), 96_000); // an item arrived at 60 000
        assert_eq!(waiting.pop(96_000, ahead), Some(("first", 4_000)));
        waiting.note_activity(96_000);
        assert_eq!(waiting.earliest(ahead), 200_000 - 10_400);
    }

    #[test]
    fn of_many_those_that_are_due_soon_leave_together() {
        let mut waiting = DueHeap::default();
        (0..DEEP_QUEUE as u64 + 1).for_each(|number| waiting.push(0, 100_000 + number * 10_000, number));
        let mut leave = |now: u64| std::iter::from_fn(|| waiting.pop(now, |_| 0)).count();
        assert_eq!((leave(100_000 - BATCH_WINDOW_NS - 1), leave(100_000)), (0, 2));
        assert_eq!((leave(119_999), leave(120_000)), (0, 1)); // fewer than `DEEP_QUEUE` are left
    }

    #[test]
    fn nobody_sleeps_through_what_is_near_or_spins_for_long() {
        let mut latency = WakeupLatency::default();
        assert_eq!(latency.sleep_ns(1_000_000, 0, false), Some(970_000));
        assert_eq!(latency.sleep_ns(15_000, 0, false), None);
        assert_eq!(latency.sleep_ns(15_000, 0, true), Some(15_000));
        (0..100).for_each(|_| latency.record(500_000));
        assert_eq!(latency.sleep_ns(1_000_000, 0, false), Some(900_000));
        assert_eq!(latency.sleep_ns(100_000, 0, false), Some(75_000));
    }

    #[test]
    fn the_end_answers_everything() {
        let clock = Clock::start();
        let (told, heard) = mpsc::channel();
        let due = DelayQueue::start(clock, |_| 0, move |number: u32, _| told.send(number).unwrap()).unwrap();
        for number in 0..100 {
            due.push(clock.now(), clock.now() + 3_600_000_000_000, number);
        }
        drop(due);
        assert_eq!(heard.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }
}
