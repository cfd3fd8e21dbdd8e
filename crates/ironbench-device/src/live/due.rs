//! Answers held back until they are due: a heap, and one thread that sleeps most of the wait and spins the rest.
//!
//! A sleeping thread wakes some tens of microseconds after its time (timers, idle states of the processor); one that
//! spins is on time. So the thread wakes `spin_ns` early and looks at the clock until the answer is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process;

/// A held answer is woken for so much earlier, and spun for: most sleepers wake within it when the processor may not
/// sleep deeply (43 µs late without that, 17 µs with it, p99 30 µs).
pub const SPIN_NS: u64 = 30_000;
/// So many due answers are taken at a time; those that come due meanwhile wait for no more than these.
pub const BATCH: usize = 16;
pub const NEVER: u64 = u64::MAX;

/// Nanoseconds since it was made.
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
}

#[derive(Debug)]
pub struct Due<T> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    /// When the first that waits is due; `NEVER` when none does.
    earliest: AtomicU64,
}

#[derive(Debug)]
struct State<T> {
    waiting: Waiting<T>,
    ended: bool,
}

/// Things by when they are due; of equals, as they came.
#[derive(Debug)]
pub struct Waiting<T> {
    heap: BinaryHeap<Reverse<Held<T>>>,
    number: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::with_capacity(1024), number: 0 }
    }
}

impl<T> Waiting<T> {
    pub fn push(&mut self, due: u64, what: T) {
        self.heap.push(Reverse(Held { due, number: self.number, what }));
        self.number += 1;
    }

    /// The first, if it is due.
    pub fn pop(&mut self, now: u64) -> Option<T> {
        let due = self.earliest() <= now;
        due.then(|| self.heap.pop()).flatten().map(|first| first.0.what)
    }

    /// When the first is due; `NEVER` of none.
    pub fn earliest(&self) -> u64 {
        self.heap.peek().map_or(NEVER, |first| first.0.due)
    }
}

#[derive(Debug)]
struct Held<T> {
    due: u64,
    number: u64,
    what: T,
}

impl<T> Held<T> {
    fn key(&self) -> (u64, u64) {
        (self.due, self.number)
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Shared<T> {
    fn locked(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Due<T> {
    /// `answer` is called on the thread, in the order in which things are due; of equals, as they came.
    pub fn start(clock: Clock, spin_ns: u64, answer: impl Fn(T) + Send + 'static) -> std::io::Result<Self> {
        let state = State { waiting: Waiting::default(), ended: false };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new(), earliest: AtomicU64::new(NEVER) });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("device-due".into()).spawn(move || {
            process::hasten_thread();
            keep_time(&theirs, clock, spin_ns, &answer);
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn hold(&self, due: u64, what: T) {
        let mut state = self.shared.locked();
        state.waiting.push(due, what);
        if due < self.shared.earliest.load(Acquire) {
            self.shared.earliest.store(due, Release);
            self.shared.wake.notify_one();
        }
    }
}

impl<T> Drop for Due<T> {
    /// Whatever is still held is answered at once.
    fn drop(&mut self) {
        self.shared.locked().ended = true;
        self.shared.earliest.store(0, Release);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep_time<T>(shared: &Shared<T>, clock: Clock, spin_ns: u64, answer: &impl Fn(T)) {
    let mut ready = Vec::with_capacity(BATCH);
    let mut state = shared.locked();
    loop {
        let now = if state.ended { NEVER } else { clock.now() };
        while ready.len() < BATCH
            && let Some(what) = state.waiting.pop(now)
        {
            ready.push(what);
        }
        let due = state.waiting.earliest();
        shared.earliest.store(due, Release);
        if !ready.is_empty() {
            drop(state);
            ready.drain(..).for_each(answer);
            state = shared.locked();
        } else if state.ended {
            return;
        } else if due == NEVER {
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        } else if due - now > spin_ns {
            let nap = Duration::from_nanos(due - now - spin_ns);
            state = shared.wake.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
        } else {
            drop(state);
            while clock.now() < shared.earliest.load(Acquire) {
                std::hint::spin_loop();
            }
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
        let due = Due::start(clock, 20_000, move |wanted: u64| told.send((wanted, clock.now())).unwrap()).unwrap();
        let now = clock.now();
        for wait_us in [3_000, 500, 2_000, 500, 10, 0] {
            due.hold(now + wait_us * 1_000, now + wait_us * 1_000);
        }
        let answers: Vec<_> = (0..6).map(|_| heard.recv().unwrap()).collect();
        assert!(answers.iter().all(|(wanted, at)| at >= wanted));
        let mut wanted: Vec<_> = answers[1..].iter().map(|(wanted, _)| *wanted).collect();
        // The first may be answered before the others are there.
        wanted.insert(0, answers[0].0);
        let late: Vec<_> = wanted.iter().filter(|&&wanted| wanted > now + 400_000).copied().collect();
        assert!(late.is_sorted());
    }

    #[test]
    fn the_end_answers_everything() {
        let clock = Clock::start();
        let (told, heard) = mpsc::channel();
        let due = Due::start(clock, 0, move |number: u32| told.send(number).unwrap()).unwrap();
        for number in 0..100 {
            due.hold(clock.now() + 3_600_000_000_000, number);
        }
        drop(due);
        assert_eq!(heard.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }
}
