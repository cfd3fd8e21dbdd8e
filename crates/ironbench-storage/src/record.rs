//! The results of a pass.

use ironbench_core::measure::clock::MILLISECOND;
use ironbench_core::measure::cpu::CpuTime;
use ironbench_core::measure::{Histogram, clock};
use serde::Serialize;

/// Width of the time buckets.
pub const BUCKET_NS: u64 = 100 * MILLISECOND;
/// Maximum number of buckets. In a pass of many hours, the last bucket also counts everything after it.
const MAX_BUCKETS: usize = 1_000_000;

/// The measurements of one thread.
#[derive(Debug, Default)]
pub struct Recording {
    pub reads: Histogram,
    pub writes: Histogram,
    /// Number of I/Os that ended in each bucket of 100 ms.
    pub buckets: Vec<u64>,
    /// Time from the common start to the thread's last completion.
    pub ended_ns: u64,
    pub cpu: CpuTime,
}

impl Recording {
    /// Records an I/O that took `took_ns`.
    #[inline]
    pub fn ended(&mut self, reads: bool, took_ns: u64) {
        if reads { self.reads.record(took_ns) } else { self.writes.record(took_ns) }
    }

    /// Counts `count` I/Os that ended `elapsed_ns` after the start.
    #[inline]
    pub fn counted(&mut self, elapsed_ns: u64, count: u64) {
        self.ended_ns = elapsed_ns;
        let bucket = ((elapsed_ns / BUCKET_NS) as usize).min(MAX_BUCKETS - 1);
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

/// The results of all threads of a pass.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Time from the common start to the last completion of any thread.
    pub elapsed_s: f64,
    pub reads: u64,
    pub writes: u64,
    pub bytes: u64,
    /// Bytes transferred in each file, in the order of the plan.
    pub file_bytes: Vec<u64>,
    /// CPU time of the threads of the pass, including kernel threads that worked for them.
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    /// I/O method: `io_uring` or `threads`.
    pub io: &'static str,
    /// Reason why io_uring is not available. The text is empty if io_uring is available or was not requested.
    pub note: String,
    /// Whether the pass was stopped before its end.
    pub stopped: bool,
}

#[derive(Debug)]
pub struct Outcome {
    pub summary: Summary,
    pub reads: Histogram,
    pub writes: Histogram,
    /// Number of I/Os in each bucket of 100 ms.
    pub buckets: Vec<u64>,
}

pub fn seconds(ns: u64) -> f64 {
    clock::to_seconds(ns)
}
