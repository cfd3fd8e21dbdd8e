//! Submits a given sequence of I/Os to a model, like a program that waits for its I/Os (closed loop).
//!
//! The result shows what a live device would do at exactly these offsets, but is computed without waiting. With other
//! offsets, a comparison with the live device would be uncertain. On a disk, the mean of 1,000 random reads differs by
//! up to 3% from the mean over all offsets. A sequential pass that starts at another offset is in other zones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ironbench_core::measure::Histogram;
use ironbench_core::{Error, Result};
use serde::Deserialize;

use super::LoadResult;
use crate::device::{Device, Op};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedLoad {
    pub write: bool,
    /// Size of each I/O in bytes.
    pub length: u32,
    /// Number of outstanding I/Os, until no more are left to submit.
    pub depth: u32,
    /// Number of I/Os that complete before the measurement starts.
    pub warm_up: usize,
    /// Number of I/Os that are measured after the warm-up. The I/Os after them only keep the queue depth constant.
    pub count: usize,
    pub seed: u64,
}

/// Measures the device. The first I/Os arrive at time 0. `offsets` are the offsets of the I/Os.
///
/// The measured time starts at the last completion of the warm-up and ends at the last measured completion, so it
/// covers exactly the counted I/Os.
///
/// # Errors
/// Input: there are too few I/Os, or one is outside the device.
pub fn run_listed(device: &mut dyn Device, load: &ListedLoad, offsets: &[u64]) -> Result<LoadResult> {
    let last = load.warm_up.saturating_add(load.count);
    if load.count == 0 || offsets.len() < last {
        let cause = format!("{} are measured after {}, but there are only {}", load.count, load.warm_up, offsets.len());
        return Err(Error::input("I/Os", cause));
    }
    let room = device.capacity().saturating_sub(u64::from(load.length));
    if let Some(place) = offsets.iter().find(|place| **place > room) {
        let cause = format!("{} bytes at {place} are outside the device of {}", load.length, device.capacity());
        return Err(Error::input("I/Os", cause));
    }
    let op = if load.write { Op::Write } else { Op::Read };
    let mut measured = LoadResult { latency: Histogram::new(), elapsed: 0, bytes: 0 };
    let mut left = offsets.iter();
    let mut under_way = BinaryHeap::new();
    for place in left.by_ref().take(load.depth.max(1) as usize) {
        under_way.push(Reverse((device.submit(0, op, *place, load.length), 0)));
    }
    let mut begun = 0;
    for number in 0..last {
        let Some(Reverse((now, asked))) = under_way.pop() else { break };
        if number < load.warm_up {
            begun = now;
        } else {
            measured.latency.record(now - asked);
            measured.bytes += u64::from(load.length);
            measured.elapsed = now - begun;
        }
        if let Some(place) = left.next() {
            under_way.push(Reverse((device.submit(now, op, *place, load.length), now)));
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{SyntheticLoad, run_synthetic};
    use crate::testing::models;
    use crate::{build, parse};

    const CAPACITY: u64 = 8 << 30;

    fn device(text: &str) -> Box<dyn Device> {
        build(&parse(text).unwrap(), &models(), Some(CAPACITY), 1).unwrap()
    }

    fn load() -> ListedLoad {
        ListedLoad { write: false, length: 1 << 20, depth: 1, warm_up: 0, count: 500, seed: 1 }
    }

    fn seen(text: &str, load: &ListedLoad, offsets: &[u64]) -> LoadResult {
        run_listed(&mut *device(text), load, offsets).unwrap()
    }

    #[test]
    fn places_one_after_another_are_what_a_sequential_probe_asks() {
        let offsets: Vec<u64> = (0..500).map(|number| number << 20).collect();
        for text in ["disk", "disk(cache=on)", "flash", "volume"] {
            for (write, depth) in [(false, 1), (true, 1), (false, 8), (true, 8)] {
                let ours = seen(text, &ListedLoad { write, depth, ..load() }, &offsets);
                let reads = if write { 0.0 } else { 1.0 };
                let made = SyntheticLoad {
                    reads,
                    depth,
                    random: false,
                    length: 1 << 20,
                    count: 500,
                    warm_up: 0,
                    ..SyntheticLoad::default()
                };
                let theirs = run_synthetic(&mut *device(text), &made);
                assert_eq!((ours.elapsed, ours.bytes), (theirs.elapsed, theirs.bytes), "{text} {write} {depth}");
                assert_eq!(ours.latency, theirs.latency, "{text} {write} {depth}");
            }
        }
    }

    #[test]
    fn what_warms_up_takes_none_of_the_time() {
        // Outer tracks pass the head twice as fast as inner ones.
        let outer: Vec<u64> = (0..200).map(|number| number << 20).collect();
        let inner: Vec<u64> = (0..200).map(|number| CAPACITY - ((200 - number) << 20)).collect();
        let both: Vec<u64> = outer.iter().chain(&inner).copied().collect();
        for depth in [1, 8] {
            let after = seen("disk", &ListedLoad { depth, warm_up: 200, count: 180, ..load() }, &both);
            assert_eq!((after.latency.count(), after.bytes), (180, 180 << 20));
            assert!((after.rate() - 75e6).abs() < 75e6 * 0.03, "{depth}: {}", after.rate());
            // By Little's law, IOPS times latency is the depth only if the depth was constant while I/Os were counted.
            let under_way = after.iops() * after.latency.mean_s();
            assert!((under_way - f64::from(depth)).abs() < f64::from(depth) * 0.01, "{depth}: {under_way}");
        }
    }

    #[test]
    fn nothing_to_measure_and_places_beyond_the_device_are_refused() {
        let refused =
            |load: &ListedLoad, offsets: &[u64]| run_listed(&mut *device("disk"), load, offsets).unwrap_err().cause;
        assert!(refused(&load(), &[0; 499]).contains("there are only 499"));
        assert!(refused(&ListedLoad { count: 0, ..load() }, &[0, 0]).contains("0 are measured"));
        assert!(refused(&ListedLoad { warm_up: 2, count: 1, ..load() }, &[0, 0]).contains("1 are measured after 2"));
        assert!(refused(&ListedLoad { count: 2, ..load() }, &[0, CAPACITY - 4096]).contains("outside the device"));
    }
}
