//! A synthetic closed-loop load on a model, like the load of a storage benchmark.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironbench_core::measure::Histogram;
use pgbench_script::Random;
use serde::Deserialize;

use crate::device::{Device, Op};
use crate::model::fifo_server::nanoseconds;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyntheticLoad {
    /// Fraction of reads, 0 to 1.
    pub reads: f64,
    pub random: bool,
    pub length: u32,
    /// Number of outstanding I/Os.
    pub depth: u32,
    /// Number of measured I/Os. `warm_up` I/Os precede them.
    pub count: u64,
    pub warm_up: u64,
    /// Duration of the measurement in seconds. The measurement starts after `ramp_s` seconds, and includes the I/Os
    /// that complete in it. If the duration is 0, `count` I/Os are measured instead.
    pub seconds: f64,
    pub ramp_s: f64,
    /// Number of bytes at the start of the device that are accessed. With 0, the whole device is accessed.
    pub span: u64,
    /// Whether each write is followed by a flush. The two then count as one I/O.
    pub flush: bool,
    pub seed: u64,
}

impl Default for SyntheticLoad {
    fn default() -> Self {
        Self {
            reads: 1.0,
            random: true,
            length: 4096,
            depth: 1,
            count: 10_000,
            warm_up: 1_000,
            seconds: 0.0,
            ramp_s: 0.0,
            span: 0,
            flush: false,
            seed: 1,
        }
    }
}

#[derive(Debug, Clone)]
pub struct LoadResult {
    pub latency: Histogram,
    /// Duration in nanoseconds.
    pub elapsed: u64,
    pub bytes: u64,
}

impl LoadResult {
    pub fn iops(&self) -> f64 {
        self.latency.count() as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }

    /// Returns the rate in bytes per second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }
}

/// Time of the next event. If a write completes that must be flushed, the event also contains the number of the write
/// and the time at which the write was submitted.
type Event = (u64, Option<(u64, u64)>);

/// Measures the device. The first I/Os arrive at time 0.
pub fn run_synthetic(device: &mut dyn Device, load: &SyntheticLoad) -> LoadResult {
    let span = if load.span == 0 { device.capacity() } else { load.span.min(device.capacity()) };
    let offsets = (span / u64::from(load.length)).max(1);
    let timed = load.seconds > 0.0;
    let ramp = nanoseconds(load.ramp_s);
    let end = ramp + nanoseconds(load.seconds);
    let last = if timed { u64::MAX } else { load.warm_up + load.count };
    let mut random = Random::new(load.seed);
    let mut due: BinaryHeap<Reverse<Event>> = (0..load.depth.max(1)).map(|_| Reverse((0, None))).collect();
    let mut measured = LoadResult { latency: Histogram::new(), elapsed: 0, bytes: 0 };
    let (mut begun, mut next) = (0, 0);
    while let Some(Reverse((now, written))) = due.pop() {
        let (asked, number, done) = match written {
            Some((asked, number)) => (asked, number, device.submit(now, Op::Flush, 0, 0)),
            None if next == last || timed && now >= end => continue,
            None => {
                let number = next;
                next += 1;
                let op = if load.reads >= 1.0 || random.fraction() < load.reads { Op::Read } else { Op::Write };
                let place = if load.random { random.up_to(offsets - 1) } else { number % offsets };
                let done = device.submit(now, op, place * u64::from(load.length), load.length);
                if number == load.warm_up {
                    begun = now;
                }
                if load.flush && op == Op::Write {
                    due.push(Reverse((done, Some((now, number)))));
                    continue;
                }
                (now, number, done)
            }
        };
        due.push(Reverse((done, None)));
        let counts = if timed { ramp < done && done <= end } else { number >= load.warm_up };
        if counts {
            measured.latency.record(done - asked);
            measured.bytes += u64::from(load.length);
            measured.elapsed = measured.elapsed.max(done.saturating_sub(begun));
        }
    }
    if timed {
        measured.elapsed = end - ramp;
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that serves one I/O at a time. The device takes 1 ms for each of the first 500 I/Os, and 10 ms for each
    /// one after them.
    struct Tiring {
        done: u64,
        free_at: u64,
    }

    impl Device for Tiring {
        fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
            self.done += 1;
            self.free_at = self.free_at.max(now) + if self.done <= 500 { 1_000_000 } else { 10_000_000 };
            self.free_at
        }

        fn capacity(&self) -> u64 {
            1 << 30
        }
    }

    #[test]
    fn a_probe_of_a_time_has_what_ends_after_its_ramp_and_within_its_seconds() {
        let seen = |ramp_s, seconds, depth| {
            let load = SyntheticLoad { ramp_s, seconds, depth, ..SyntheticLoad::default() };
            run_synthetic(&mut Tiring { done: 0, free_at: 0 }, &load)
        };
        assert_eq!(seen(0.0, 1.0, 4).iops(), 550.0);
        let after = seen(1.0, 2.0, 4);
        assert_eq!((after.iops(), after.latency.count(), after.elapsed), (100.0, 200, 2_000_000_000));
        assert!((after.latency.mean_s() - 0.04).abs() < 1e-3);
    }
}
