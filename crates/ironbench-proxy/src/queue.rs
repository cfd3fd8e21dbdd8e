//! The queue between the threads that pass on bytes and the thread that stores statements. The queue never blocks the
//! threads that pass on bytes. Statements that do not fit are dropped and counted.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironbench_capture::observed::Event;

/// Interval at which the reader takes statements from the queue. If it woke for each statement, it would take CPU time
/// from the server.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    woken: Condvar,
    most_bytes: usize,
    /// Number of statements that did not fit.
    pub lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    bytes: usize,
    is_over: bool,
}

impl Queue {
    pub fn new(most_bytes: usize) -> Self {
        Self { waiting: Mutex::default(), woken: Condvar::new(), most_bytes, lost: AtomicU64::new(0) }
    }

    /// Moves the events of one session into the queue. Returns false if statements were dropped.
    pub fn put(&self, events: &mut Vec<Event>) -> bool {
        let mut waiting = self.lock();
        let bytes: usize = events.iter().map(Event::size).sum();
        let fits = waiting.bytes + bytes <= self.most_bytes;
        if !fits {
            // The ends of sessions are not dropped. These events are small, and without them, the reader would keep
            // sessions forever.
            let before = events.len();
            events.retain(|event| matches!(event, Event::Ended(_)));
            self.lost.fetch_add((before - events.len()) as u64, Relaxed);
        }
        let was_half_full = waiting.bytes > self.most_bytes / 2;
        waiting.bytes += events.iter().map(Event::size).sum::<usize>();
        waiting.events.extend(events.drain(..));
        if waiting.bytes > self.most_bytes / 2 && !was_half_full {
            self.woken.notify_all();
        }
        fits
    }

    /// Waits until the interval has passed, the queue is half full, or the queue has ended. Returns the events that
    /// have arrived, and whether more may follow.
    pub fn take(&self) -> (VecDeque<Event>, bool) {
        let until = Instant::now() + INTERVAL;
        let mut waiting = self.lock();
        while !waiting.is_over && waiting.bytes <= self.most_bytes / 2 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            waiting = self.woken.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.bytes = 0;
        (std::mem::take(&mut waiting.events), !waiting.is_over)
    }

    /// Ends the queue. No events may be put into it afterwards.
    pub fn end(&self) {
        self.lock().is_over = true;
        self.woken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let queue = Queue::new(40);
        assert!(queue.put(&mut vec![Event::Ended(1), Event::Ended(2)]));
        assert!(!queue.put(&mut vec![Event::Ended(3)]), "it does not fit");
        let (events, more) = queue.take();
        assert_eq!((events.len(), more), (3, true), "ends of sessions are always kept");
        queue.end();
        assert!(!queue.take().1);
    }
}
