//! Counts a partition's requests and their latencies. The counts can be read at any time.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use crate::Op;

/// Number of size buckets: up to 512 bytes, up to 1 KiB, and so on by powers of two up to 1 MiB, and larger.
const SIZES: usize = 13;
const SMALLEST_SIZE: u64 = 512;
/// Number of latency buckets per octave. Each bucket is 9% wide, and they cover 1 µs to 2^27 µs.
const PER_OCTAVE: u64 = 8;
const LATENCIES: usize = (27 * PER_OCTAVE) as usize + 1;
/// Number of kinds of operations. The kinds are used as indices.
pub const KINDS: usize = 3;

/// Counts of a partition, updated by several threads.
#[derive(Debug)]
pub struct PartitionTally {
    kinds: [OpTally; KINDS],
    in_flight: AtomicU64,
    deepest: AtomicU64,
}

/// Counts of one kind of operation, updated by several threads.
#[derive(Debug)]
struct OpTally {
    count: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
    /// Total time by which answers left too late. `late` is the number of these answers.
    late_ns: AtomicU64,
    late: AtomicU64,
    sizes: [AtomicU64; SIZES],
    latencies: [AtomicU64; LATENCIES],
}

impl Default for OpTally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            count: zero(),
            bytes: zero(),
            latency_ns: zero(),
            late_ns: zero(),
            late: zero(),
            sizes: std::array::from_fn(|_| zero()),
            latencies: std::array::from_fn(|_| zero()),
        }
    }
}

impl Default for PartitionTally {
    fn default() -> Self {
        Self {
            kinds: std::array::from_fn(|_| OpTally::default()),
            in_flight: AtomicU64::new(0),
            deepest: AtomicU64::new(0),
        }
    }
}

/// Cumulative counts since the mount. The histograms are sparse, with bucket and count.
#[derive(Debug, Serialize)]
pub struct PartitionCounts {
    pub read: OpCounts,
    pub write: OpCounts,
    pub flush: OpCounts,
    pub in_flight: u64,
    /// Maximum number of requests in flight.
    pub deepest: u64,
}

/// Cumulative counts of one kind of operation since the mount.
#[derive(Debug, Serialize)]
pub struct OpCounts {
    pub count: u64,
    pub bytes: u64,
    pub latency_ns: u64,
    pub late: u64,
    pub late_ns: u64,
    /// Upper limit of each bucket of sizes in bytes, and its count.
    pub sizes: Vec<(u64, u64)>,
    /// Upper limit of each bucket of latencies in nanoseconds, and its count.
    pub latencies: Vec<(u64, u64)>,
}

impl PartitionTally {
    pub fn start_request(&self) {
        let now = self.in_flight.fetch_add(1, Relaxed) + 1;
        self.deepest.fetch_max(now, Relaxed);
    }

    /// Counts a completed request. The lateness `late_ns` is explained at `OpTally`.
    pub fn end_request(&self, op: Op, length: u32, latency_ns: u64, late_ns: u64) {
        self.in_flight.fetch_sub(1, Relaxed);
        let kind = &self.kinds[op as usize];
        kind.count.fetch_add(1, Relaxed);
        kind.bytes.fetch_add(u64::from(length), Relaxed);
        kind.latency_ns.fetch_add(latency_ns, Relaxed);
        if late_ns > 0 {
            kind.late.fetch_add(1, Relaxed);
            kind.late_ns.fetch_add(late_ns, Relaxed);
        }
        kind.sizes[size_bucket(u64::from(length))].fetch_add(1, Relaxed);
        kind.latencies[latency_bucket(latency_ns)].fetch_add(1, Relaxed);
    }

    /// Ends a request without counting it. This is for requests that were refused, and for those that are not a read,
    /// write or flush.
    pub fn drop_request(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    pub fn counts(&self) -> PartitionCounts {
        let of = |op: Op| self.kinds[op as usize].counts();
        PartitionCounts {
            read: of(Op::Read),
            write: of(Op::Write),
            flush: of(Op::Flush),
            in_flight: self.in_flight.load(Relaxed),
            deepest: self.deepest.load(Relaxed),
        }
    }
}

impl OpTally {
    fn counts(&self) -> OpCounts {
        let sparse = |buckets: &[AtomicU64], edge: fn(usize) -> u64| {
            let counted = buckets.iter().map(|bucket| bucket.load(Relaxed)).enumerate();
            counted.filter(|&(_, count)| count > 0).map(|(index, count)| (edge(index), count)).collect()
        };
        OpCounts {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            latency_ns: self.latency_ns.load(Relaxed),
            late: self.late.load(Relaxed),
            late_ns: self.late_ns.load(Relaxed),
            sizes: sparse(&self.sizes, |index| SMALLEST_SIZE << index),
            latencies: sparse(&self.latencies, latency_bucket_end),
        }
    }
}

fn size_bucket(length: u64) -> usize {
    let octave = length.max(SMALLEST_SIZE).next_power_of_two().ilog2() - SMALLEST_SIZE.ilog2();
    (octave as usize).min(SIZES - 1)
}

fn latency_bucket(ns: u64) -> usize {
    let us = ns as f64 / 1e3;
    if us <= 1.0 {
        return 0;
    }
    ((us.log2() * PER_OCTAVE as f64).ceil() as usize).min(LATENCIES - 1)
}

/// Returns the upper limit of a latency bucket, in nanoseconds.
fn latency_bucket_end(index: usize) -> u64 {
    (1e3 * (index as f64 / PER_OCTAVE as f64).exp2()).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_counted_is_told() {
        let tally = PartitionTally::default();
        tally.start_request();
        tally.start_request();
        tally.end_request(Op::Read, 4096, 80_000, 0);
        tally.end_request(Op::Write, 8192, 2_000_000, 1_000);
        tally.start_request();
        tally.drop_request();
        let counts = tally.counts();
        assert_eq!((counts.read.count, counts.read.bytes, counts.read.sizes), (1, 4096, vec![(4096, 1)]));
        assert_eq!((counts.write.latency_ns, counts.write.late, counts.write.late_ns), (2_000_000, 1, 1_000));
        assert_eq!((counts.in_flight, counts.deepest, counts.flush.count), (0, 2, 0));
    }

    proptest! {
        #[test]
        fn a_latency_is_within_the_edges_of_its_bucket(ns in 1_001u64..100_000_000_000) {
            let index = latency_bucket(ns);
            prop_assert!(ns <= latency_bucket_end(index) + 1 && ns + 1 >= latency_bucket_end(index - 1));
        }

        #[test]
        fn a_size_is_at_most_its_buckets(length in 0u64..(1 << 20)) {
            let edge = SMALLEST_SIZE << size_bucket(length);
            prop_assert!(length <= edge && (edge == SMALLEST_SIZE || length > edge / 2));
        }
    }
}
