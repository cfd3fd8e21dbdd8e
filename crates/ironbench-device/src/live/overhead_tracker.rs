//! Tracks the I/O path overhead while the device is used. The overhead changes by a few microseconds, depending on how
//! other programs or virtual machines use the processors. A few microseconds are a large part of an SSD's latency.
//!
//! The kernel reports how long requests to a block device took (Documentation/block/stat.rst). This process measures
//! how long it delayed the answers to these requests. The difference is the current overhead.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ironbench_core::Result;
use ironbench_core::measure::threads::{BackgroundThread, Gate, ThreadSettings};

use super::pace::AnsweredTotals;
use super::request_handler::RequestHandler;
use crate::Op;

const INTERVAL: Duration = Duration::from_millis(250);
/// Minimum number of I/Os for a comparison. The kernel's unit is a millisecond, so with this many I/Os the resolution
/// is a microsecond per I/O.
const MIN_IOS: u64 = 1000;
/// Maximum mean size for a comparison. With larger I/Os, copying takes most of the time, so their times say little
/// about small I/Os.
const MAX_MEAN_SIZE: u64 = 64 << 10;
/// The kernel and this process may count different numbers of requests, because requests are split on their way or are
/// in flight. If the numbers differ by more than one in this many, they are not compared.
const MAX_MISMATCH_ONE_IN: u64 = 100;

/// Number and total duration of requests to block devices since their creation, as counted by the kernel. The duration
/// in milliseconds wraps around at 2³².
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BlockStats {
    pub count: u64,
    pub took_ms: u32,
    pub flushes: u64,
}

impl BlockStats {
    /// Returns the sum of the statistics of several block devices. `stats` are the files of their statistics in `/sys`.
    pub fn read(stats: &[PathBuf], op: Op) -> io::Result<Self> {
        let mut sum = Self::default();
        for stat in stats {
            let text = fs::read_to_string(stat)?;
            sum = sum
                .plus(Self::parse(&text, op).ok_or_else(|| io::Error::other(format!("{text:?} is not a statistic")))?);
        }
        Ok(sum)
    }

    fn parse(text: &str, op: Op) -> Option<Self> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let at = |index: usize| fields.get(index).copied();
        let first = if op == Op::Read { 0 } else { 4 };
        let flushes = if op == Op::Read { 0 } else { at(15).unwrap_or(0) };
        Some(Self { count: at(first)?, took_ms: at(first + 3)? as u32, flushes })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            took_ms: self.took_ms.wrapping_add(other.took_ms),
            flushes: self.flushes + other.flushes,
        }
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            count: self.count.saturating_sub(before.count),
            took_ms: self.took_ms.wrapping_sub(before.took_ms),
            flushes: self.flushes.saturating_sub(before.flushes),
        }
    }

    pub fn took_ns(self) -> u64 {
        u64::from(self.took_ms) * 1_000_000
    }
}

/// Returns the file in which the kernel reports the statistics of a block device.
pub fn stat_file(block_device: &str) -> io::Result<PathBuf> {
    let number = fs::metadata(block_device)?.rdev();
    Ok(PathBuf::from(format!("/sys/dev/block/{}:{}/stat", libc::major(number), libc::minor(number))))
}

/// A thread that reports changes of the overhead to the handler. The thread ends when this value is dropped.
#[derive(Debug)]
pub struct OverheadTracker {
    _thread: BackgroundThread,
}

impl OverheadTracker {
    pub fn start(handler: Arc<RequestHandler>, stats: Vec<PathBuf>) -> Result<Self> {
        let watch = move |gate: &Gate| {
            let mut kinds = [Op::Read, Op::Write].map(|op| (op, LastComparison::default()));
            while gate.pause(INTERVAL) {
                for (op, last) in &mut kinds {
                    let Ok(seen) = BlockStats::read(&stats, *op) else {
                        handler.pace.reset_overhead();
                        return Ok(());
                    };
                    if let Some(means) = last.compare(seen, handler.pace.totals(*op)) {
                        handler.pace.adjust_overhead(*op, means);
                    }
                }
            }
            Ok(())
        };
        Ok(Self { _thread: BackgroundThread::start(ThreadSettings::new("device-way"), Arc::default(), watch)? })
    }
}

/// Mean values over I/Os of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanIo {
    /// Mean delay of the answers to these I/Os, in nanoseconds.
    pub delay_ns: f64,
    /// Mean time that the I/Os took according to the block device, in nanoseconds.
    pub took_ns: f64,
    /// Mean number of other I/Os that were in flight when an I/O arrived.
    pub others: f64,
    pub bytes: f64,
}

/// Statistics at an earlier moment.
#[derive(Debug, Default)]
struct LastComparison(Option<(BlockStats, AnsweredTotals)>);

impl LastComparison {
    /// Returns the means since the last call. Returns None if there are too few I/Os, if they are too large, or if the
    /// counts cannot be compared. Counts cannot be compared if there were flushes. The kernel counts flushes as writes,
    /// and the duration of a write may include the wait for a flush.
    fn compare(&mut self, seen: BlockStats, answered: AnsweredTotals) -> Option<MeanIo> {
        let (seen_before, before) = *self.0.get_or_insert((seen, answered));
        let (arrived, count) = (seen.since(seen_before), answered.count - before.count);
        if count.min(arrived.count) < MIN_IOS {
            return None;
        }
        self.0 = Some((seen, answered));
        let comparable = count.abs_diff(arrived.count) * MAX_MISMATCH_ONE_IN <= count && arrived.flushes == 0;
        let small = answered.bytes - before.bytes <= MAX_MEAN_SIZE * count;
        let sums =
            [answered.delay_ns - before.delay_ns, answered.others - before.others, answered.bytes - before.bytes];
        let [delay_ns, others, bytes] = sums.map(|sum| sum as f64 / count as f64);
        (comparable && small).then(|| MeanIo {
            delay_ns,
            took_ns: arrived.took_ns() as f64 / arrived.count as f64,
            others,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: (BlockStats, AnsweredTotals) = (
        BlockStats { count: 50, took_ms: u32::MAX, flushes: 3 },
        AnsweredTotals { count: 70, bytes: 4096, delay_ns: 1_000, others: 40 },
    );

    fn after(seen: (u64, u32, u64), answered: (u64, u64, u64)) -> Option<(f64, f64)> {
        let mut last = LastComparison::default();
        assert_eq!(last.compare(BEFORE.0, BEFORE.1), None);
        let (count, took_ms, flushes) = seen;
        let seen = BEFORE.0.plus(BlockStats { count, took_ms, flushes });
        let (count, bytes, delay_ns) = answered;
        let (before, bytes) = (BEFORE.1, BEFORE.1.bytes + bytes);
        let others = before.others + 2 * count;
        let answered =
            AnsweredTotals { count: before.count + count, bytes, delay_ns: before.delay_ns + delay_ns, others };
        let mean_bytes = (answered.bytes - before.bytes) as f64 / count as f64;
        let found = last.compare(seen, answered);
        assert!(found.is_none_or(|means| means.others == 2.0 && means.bytes == mean_bytes));
        found.map(|means| (means.delay_ns, means.took_ns))
    }

    #[test]
    fn means_are_of_what_came_since_even_when_the_kernels_time_begins_anew() {
        assert_eq!(after((2000, 170, 0), (2000, 2000 << 12, 90_000_000)), Some((45_000.0, 85_000.0)));
        assert_eq!(after((1999, 170, 0), (2000, 2000 << 12, 0)).map(|means| means.0), Some(0.0));
    }

    #[test]
    fn few_ios_large_ones_and_those_that_were_divided_or_may_have_waited_for_flushes_tell_nothing() {
        assert_eq!(after((999, 99, 0), (999, 999 << 12, 50_000_000)), None);
        assert_eq!(after((2000, 170, 0), (2000, 2000 << 17, 90_000_000)), None);
        assert_eq!(after((4000, 170, 0), (2000, 2000 << 12, 90_000_000)), None);
        assert_eq!(after((2000, 170, 1), (2000, 2000 << 12, 90_000_000)), None);
    }

    #[test]
    fn a_statistic_is_read_as_the_kernel_writes_it() {
        let text = "  10 1 80 40 20 2 160 70 0 90 110 1 0 8 0 5 3\n";
        assert_eq!(BlockStats::parse(text, Op::Read), Some(BlockStats { count: 10, took_ms: 40, flushes: 0 }));
        assert_eq!(BlockStats::parse(text, Op::Write), Some(BlockStats { count: 20, took_ms: 70, flushes: 5 }));
        assert_eq!(BlockStats::parse("10 1", Op::Read), None);
    }
}
