//! Keeps the way to a device true while it is used: it changes by a few microseconds when other programs, or other
//! virtual machines, share processors differently, which is much of what an SSD takes.
//!
//! The kernel counts how long requests to a block device took (Documentation/block/stat.rst); the model said how long
//! they were to take. What lies between their means is how late answers arrive, and the next leave so much earlier.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::exchange::Exchange;
use super::pace::Asked;
use crate::Op;

const EVERY: Duration = Duration::from_millis(250);
/// The kernel tells milliseconds: of so many I/Os that is a microsecond each.
const LEAST: u64 = 1000;
/// Larger I/Os are late by what copying them takes, which says nothing about small ones.
const LARGEST_MEAN: u64 = 64 << 10;
/// Requests that were divided on their way, or flushes that writes had to wait for, would count as lateness.
const OTHERS_SHARE: u64 = 100;

/// Requests to block devices since they were made, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    pub count: u64,
    pub took_ns: u64,
    pub flushes: u64,
}

impl Seen {
    /// Sums over the block devices, which are named by their entries in `/sys`.
    pub fn now(stats: &[PathBuf], op: Op) -> io::Result<Self> {
        let mut sum = Self::default();
        for stat in stats {
            let text = fs::read_to_string(stat)?;
            sum = sum.plus(Self::told(&text, op).ok_or_else(|| io::Error::other(format!("{text:?} is no statistic")))?);
        }
        Ok(sum)
    }

    fn told(text: &str, op: Op) -> Option<Self> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let at = |place: usize| fields.get(place).copied();
        let first = if op == Op::Read { 0 } else { 4 };
        let flushes = if op == Op::Read { 0 } else { at(15).unwrap_or(0) };
        Some(Self { count: at(first)?, took_ns: at(first + 3)? * 1_000_000, flushes })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            took_ns: self.took_ns + other.took_ns,
            flushes: self.flushes + other.flushes,
        }
    }
}

/// Where the kernel tells how long requests to a block device took.
pub fn statistic(block_device: &str) -> io::Result<PathBuf> {
    let number = fs::metadata(block_device)?.rdev();
    let path = PathBuf::from(format!("/sys/dev/block/{}:{}/stat", libc::major(number), libc::minor(number)));
    fs::metadata(&path).map(|_| path)
}

/// Ends when dropped.
#[derive(Debug)]
pub struct Following {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    pub fn start(exchange: Arc<Exchange>, stats: Vec<PathBuf>) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let thread = std::thread::Builder::new().name("device-way".into()).spawn(move || {
            let mut kinds = [Op::Read, Op::Write].map(|op| (op, Window::default()));
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                for (op, window) in &mut kinds {
                    let Ok(seen) = Seen::now(&stats, *op) else { return };
                    if let Some(late_ns) = window.late_ns(seen, exchange.asked(*op)) {
                        exchange.arrived_late(*op, late_ns);
                    }
                }
            }
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What there is of a device that is followed, or not at the moment.
#[derive(Debug, Default)]
pub struct Follower(Mutex<Option<Following>>);

impl Follower {
    pub fn set(&self, following: Option<Following>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = following;
    }
}

/// From some moment on until there are enough I/Os.
#[derive(Debug, Default)]
struct Window(Option<(Seen, Asked)>);

impl Window {
    /// How much longer an I/O took on average than the model said; None while that cannot be told.
    fn late_ns(&mut self, seen: Seen, asked: Asked) -> Option<f64> {
        let (seen_before, asked_before) = *self.0.get_or_insert((seen, asked));
        let count = asked.count - asked_before.count;
        let arrived = seen.count.saturating_sub(seen_before.count);
        if count.min(arrived) < LEAST {
            return None;
        }
        self.0 = Some((seen, asked));
        let flushes = seen.flushes.saturating_sub(seen_before.flushes);
        let comparable = count.abs_diff(arrived).max(flushes) * OTHERS_SHARE <= count;
        let small = asked.bytes - asked_before.bytes <= LARGEST_MEAN * count;
        let took_ns = seen.took_ns.saturating_sub(seen_before.took_ns) as f64 / arrived as f64;
        (comparable && small).then(|| took_ns - (asked.took_ns - asked_before.took_ns) as f64 / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: (Seen, Asked) =
        (Seen { count: 50, took_ns: 9_000_000, flushes: 3 }, Asked { count: 70, bytes: 4096, took_ns: 1_000 });

    fn after(seen: (u64, u64, u64), asked: (u64, u64, u64)) -> Option<f64> {
        let mut window = Window::default();
        assert_eq!(window.late_ns(BEGIN.0, BEGIN.1), None);
        let (count, took_ns, flushes) = seen;
        let seen = BEGIN.0.plus(Seen { count, took_ns, flushes });
        let (count, bytes, took_ns) = asked;
        let (before, bytes) = (BEGIN.1, BEGIN.1.bytes + bytes);
        window.late_ns(seen, Asked { count: before.count + count, bytes, took_ns: before.took_ns + took_ns })
    }

    #[test]
    fn late_is_what_an_io_took_longer_than_its_model_said() {
        assert_eq!(after((2000, 170_000_000, 0), (2000, 2000 << 12, 150_000_000)), Some(10_000.0));
        assert_eq!(after((2000, 140_000_000, 0), (2000, 2000 << 12, 150_000_000)), Some(-5_000.0));
    }

    #[test]
    fn few_ios_large_ones_and_those_that_were_divided_or_waited_for_flushes_tell_nothing() {
        assert_eq!(after((999, 99_900_000, 0), (999, 999 << 12, 50_000_000)), None);
        assert_eq!(after((2000, 170_000_000, 0), (2000, 2000 << 17, 150_000_000)), None);
        assert_eq!(after((4000, 170_000_000, 0), (2000, 2000 << 12, 150_000_000)), None);
        assert_eq!(after((2000, 170_000_000, 21), (2000, 2000 << 12, 150_000_000)), None);
    }

    #[test]
    fn a_statistic_is_read_as_the_kernel_writes_it() {
        let text = "  10 1 80 40 20 2 160 70 0 90 110 1 0 8 0 5 3\n";
        assert_eq!(Seen::told(text, Op::Read), Some(Seen { count: 10, took_ns: 40_000_000, flushes: 0 }));
        assert_eq!(Seen::told(text, Op::Write), Some(Seen { count: 20, took_ns: 70_000_000, flushes: 5 }));
        assert_eq!(Seen::told("10 1", Op::Read), None);
    }
}
