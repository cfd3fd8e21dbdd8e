//! What a pass came to.

use ironbench_core::measure::clock::MILLISECOND;
use ironbench_core::measure::cpu::Cpu;
use ironbench_core::measure::{Histogram, clock};
use serde::Serialize;

/// Width of the buckets over time.
pub const BUCKET_NS: u64 = 100 * MILLISECOND;
/// A pass of many hours keeps its last bucket open.
const MOST_BUCKETS: usize = 1_000_000;

/// What one thread did.
#[derive(Debug, Default)]
pub struct Recording {
    pub reads: Histogram,
    pub writes: Histogram,
    /// I/Os that ended in each tenth of a second.
    pub buckets: Vec<u64>,
    /// From the common start to its last completion.
    pub ended_ns: u64,
    pub cpu: Cpu,
}

impl Recording {
    /// An I/O that took `took_ns`.
    #[inline]
    pub fn ended(&mut self, reads: bool, took_ns: u64) {
        if reads { self.reads.record(took_ns) } else { self.writes.record(took_ns) }
    }

    /// `count` I/Os have ended, `elapsed_ns` after the start.
    #[inline]
    pub fn counted(&mut self, elapsed_ns: u64, count: u64) {
        self.ended_ns = elapsed_ns;
        let bucket = ((elapsed_ns / BUCKET_NS) as usize).min(MOST_BUCKETS - 1);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += count;
    }

    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.cpu = self.cpu.plus(other.cpu);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }
}

/// A pass as a whole.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// From the common start to the last completion of any thread.
    pub elapsed_s: f64,
    pub reads: u64,
    pub writes: u64,
    pub bytes: u64,
    /// Bytes of each file, in the order of the plan.
    pub file_bytes: Vec<u64>,
    /// Of the threads that did it, with the kernel's threads that worked for them.
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    /// `io_uring` or `threads`.
    pub io: &'static str,
    /// Why it is not io_uring; empty when it is.
    pub note: String,
    /// Somebody stopped it before its end.
    pub stopped: bool,
}

#[derive(Debug)]
pub struct Outcome {
    pub summary: Summary,
    pub reads: Histogram,
    pub writes: Histogram,
    /// I/Os in each tenth of a second.
    pub buckets: Vec<u64>,
}

pub fn seconds(ns: u64) -> f64 {
    clock::to_seconds(ns)
}
