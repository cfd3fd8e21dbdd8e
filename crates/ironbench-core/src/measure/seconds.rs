//! The timeline of the whole trial, merged from the timelines of the threads.

use std::collections::BTreeMap;

use super::Histogram;
use super::clock::{MILLISECOND, to_seconds};

/// Width of a bucket of the timeline.
pub const BUCKET_NS: u64 = 100 * MILLISECOND;

/// Counts of one 100 ms bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    pub transactions: u32,
    pub failed: u32,
    pub retries: u32,
    /// Number of `transactions` that were run by clients that follow no schedule.
    pub unscheduled: u32,
}

impl Bucket {
    pub fn plus(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            failed: self.failed + other.failed,
            retries: self.retries + other.retries,
            unscheduled: self.unscheduled + other.unscheduled,
        }
    }
}

/// A thread's response times in one second of the window. The thread sends them when that second has passed.
#[derive(Debug)]
pub struct Slice {
    pub thread: usize,
    pub second: usize,
    pub response: Histogram,
    /// Failed transactions.
    pub failed: u64,
    /// Transactions of the first kind that succeeded and were not rolled back on purpose. 0 in turns, because the tally
    /// also counts transactions that end between two slices.
    pub first_committed: u64,
    pub width_ns: u64,
}

/// Response times of one second over all threads. The response times are NaN if no transaction ended in that second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// Length of the row in seconds. Only the last row of the window may be shorter than a second.
    pub width_s: f64,
    pub transactions: u64,
    /// Failed transactions.
    pub failed: u64,
    /// See [`Slice::first_committed`].
    pub first_committed: u64,
    pub mean_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p95_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
    pub stdev_s: f64,
}

impl Second {
    fn of(passed: &PartialSecond) -> Self {
        Self::new(&passed.response, passed.failed, passed.first_committed, passed.width_ns)
    }

    pub fn new(response: &Histogram, failed: u64, first_committed: u64, width_ns: u64) -> Self {
        Self {
            width_s: to_seconds(width_ns),
            transactions: response.count(),
            failed,
            first_committed,
            mean_s: response.mean_s(),
            p50_s: response.quantile_s(0.50),
            p90_s: response.quantile_s(0.90),
            p95_s: response.quantile_s(0.95),
            p99_s: response.quantile_s(0.99),
            max_s: response.max_s(),
            stdev_s: response.stdev_s(),
        }
    }
}

/// A second of one drive that can be merged with the same second of another drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeableSecond {
    /// Response times, encoded by [`Histogram::to_pairs`].
    pub pairs: Vec<u8>,
    pub failed: u64,
    /// See [`Slice::first_committed`].
    pub first_committed: u64,
    pub width_ns: u64,
}

/// A second that some threads have sent, with the merged values of these threads.
#[derive(Debug, Default)]
struct PartialSecond {
    response: Histogram,
    failed: u64,
    first_committed: u64,
    width_ns: u64,
}

/// Merges the seconds of all threads. The histogram of a second is kept only until all threads have sent that second.
#[derive(Debug)]
pub struct Seconds {
    /// Number of seconds that each thread has sent.
    seconds_sent: Vec<usize>,
    waiting: BTreeMap<usize, PartialSecond>,
    rows: Vec<Second>,
    /// Seconds to be merged with the seconds of other drives. Empty unless this drive is a part.
    mergeable: Vec<MergeableSecond>,
    to_merge: bool,
}

impl Seconds {
    pub fn new(threads: usize, to_merge: bool) -> Self {
        let (waiting, rows, mergeable) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { seconds_sent: vec![0; threads], waiting, rows, mergeable, to_merge }
    }

    /// Adds a second of one thread. Returns all seconds that every thread has sent so far.
    pub fn add(&mut self, slice: Slice) -> &[Second] {
        self.seconds_sent[slice.thread] = slice.second + 1;
        let passed = self.waiting.entry(slice.second).or_default();
        passed.response.merge(&slice.response);
        passed.failed += slice.failed;
        passed.first_committed += slice.first_committed;
        passed.width_ns = passed.width_ns.max(slice.width_ns);
        let complete = self.seconds_sent.iter().copied().min().unwrap_or(0);
        self.finish_before(complete);
        &self.rows
    }

    pub fn finish(mut self) -> (Vec<Second>, Vec<MergeableSecond>) {
        let last = self.waiting.keys().next_back().map_or(0, |second| second + 1);
        self.finish_before(last);
        (self.rows, self.mergeable)
    }

    fn finish_before(&mut self, before: usize) {
        while self.rows.len() < before {
            let passed = self.waiting.remove(&self.rows.len()).unwrap_or_default();
            self.rows.push(Second::of(&passed));
            if self.to_merge {
                let PartialSecond { response, failed, first_committed, width_ns } = passed;
                let pairs = response.to_pairs();
                self.mergeable.push(MergeableSecond { pairs, failed, first_committed, width_ns });
            }
        }
    }
}

/// Returns the sum of the threads' timelines, which is as long as the longest of them.
pub fn summed<'a>(timelines: impl IntoIterator<Item = &'a [Bucket]>) -> Vec<Bucket> {
    let mut sum = Vec::<Bucket>::new();
    for timeline in timelines {
        sum.resize(sum.len().max(timeline.len()), Bucket::default());
        for (total, bucket) in sum.iter_mut().zip(timeline) {
            *total = total.plus(*bucket);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(thread: usize, second: usize, values: &[u64]) -> Slice {
        let mut response = Histogram::new();
        values.iter().for_each(|&v| response.record(v));
        Slice { thread, second, response, failed: 1, first_committed: 3, width_ns: 1_000_000_000 }
    }

    #[test]
    fn a_second_is_settled_when_all_threads_have_handed_it_over() {
        let mut seconds = Seconds::new(2, false);
        seconds.add(slice(0, 0, &[1_000]));
        seconds.add(slice(0, 1, &[1_000]));
        assert_eq!(seconds.rows.len(), 0);
        seconds.add(slice(1, 0, &[3_000]));
        assert_eq!((seconds.rows.len(), seconds.waiting.len()), (1, 1));
        assert_eq!((seconds.rows[0].transactions, seconds.rows[0].failed, seconds.rows[0].width_s), (2, 2, 1.0));
        assert_eq!(seconds.rows[0].first_committed, 6);
        let (rows, _) = seconds.finish();
        assert_eq!(rows.len(), 2);
        assert!((rows[0].mean_s - 2e-6).abs() < 1e-8);
        assert!((rows[0].max_s - 3e-6).abs() < 1e-8);
    }

    #[test]
    fn timelines_of_unequal_length_add_up() {
        let bucket = |transactions| Bucket { transactions, failed: 1, retries: 2, unscheduled: 3 };
        let sum = summed([&[bucket(1), bucket(2)][..], &[bucket(10)][..]]);
        assert_eq!(sum.iter().map(|b| b.transactions).collect::<Vec<_>>(), [11, 2]);
        assert_eq!((sum[0].retries, sum[0].unscheduled), (4, 6));
    }
}
