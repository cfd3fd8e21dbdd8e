//! Stores samples by time, in limited memory. Only samples in the measured windows count. The windows are known only at
//! the end, so all samples are kept until then.

use foldhash::{HashMap, HashMapExt as _};

/// Index of a row of the profile (`Rows`).
pub type RowId = u32;

/// Maximum number of entries, about 64 MB.
const MOST_ENTRIES: usize = 1 << 21;
const NARROWEST_NS: u64 = 1_000_000;

/// Measured windows, each with its start (inclusive) and end (exclusive) on CLOCK_MONOTONIC in ns.
pub type Windows = [(u64, u64)];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    pub samples: u64,
    pub ns: u64,
}

/// The samples of one row in one time bucket.
#[derive(Clone, Copy)]
struct Entry {
    bucket: u64,
    row: RowId,
    samples: u32,
    ns: u64,
}

/// A sample that lasted longer than a bucket.
#[derive(Clone, Copy)]
struct Long {
    start: u64,
    end: u64,
    row: RowId,
}

/// Stores samples by time. Time is divided into buckets. The buckets are 1 ms wide at first, and are made wider when
/// there are too many entries.
pub struct Timeline {
    width: u64,
    entries: Vec<Entry>,
    longs: Vec<Long>,
    /// The bucket that is being filled, and the positions of its entries.
    current: (u64, HashMap<RowId, usize>),
    most: usize,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::with_limit(MOST_ENTRIES)
    }
}

impl Timeline {
    fn with_limit(most: usize) -> Self {
        let (width, entries, longs) = (NARROWEST_NS, Vec::new(), Vec::new());
        Self { width, entries, longs, current: (0, HashMap::new()), most }
    }

    /// Adds a sample of `ns` nanoseconds at `time`.
    pub fn add(&mut self, row: RowId, time: u64, ns: u64) {
        let bucket = time / self.width;
        if self.current.0 != bucket {
            self.current = (bucket, HashMap::new());
        }
        let place = *self.current.1.entry(row).or_insert(self.entries.len());
        if let Some(entry) = self.entries.get_mut(place) {
            entry.samples += 1;
            entry.ns += ns;
        } else {
            self.entries.push(Entry { bucket, row, samples: 1, ns });
            self.widen_if_full();
        }
    }

    /// Adds a sample that lasted from `start` to `end`.
    pub fn add_interval(&mut self, row: RowId, start: u64, end: u64) {
        let ns = end.saturating_sub(start);
        if ns <= self.width {
            self.add(row, start + ns / 2, ns);
        } else {
            self.longs.push(Long { start, end, row });
            self.widen_if_full();
        }
    }

    fn widen_if_full(&mut self) {
        while self.entries.len() + self.longs.len() > self.most {
            self.width *= 2;
            self.current = (0, HashMap::new());
            for entry in &mut self.entries {
                entry.bucket /= 2;
            }
            let width = self.width;
            let entries = &mut self.entries;
            self.longs.retain(|long| {
                let ns = long.end - long.start;
                if ns <= width {
                    entries.push(Entry { bucket: (long.start + ns / 2) / width, row: long.row, samples: 1, ns });
                }
                ns > width
            });
            entries.sort_unstable_by_key(|entry| (entry.bucket, entry.row));
            entries.dedup_by(|next, first| {
                let same = (next.bucket, next.row) == (first.bucket, first.row);
                if same {
                    first.samples += next.samples;
                    first.ns += next.ns;
                }
                same
            });
        }
    }

    /// Returns, for each row, the sum of the samples in the windows. If `windows` is empty, all samples count. A bucket
    /// counts if its middle is in a window. `weight`: the factor by which the times of a row at a time are multiplied.
    pub fn totals(&self, windows: &Windows, rows: usize, weight: impl Fn(RowId, u64) -> f64) -> Vec<Total> {
        let mut totals = vec![Total::default(); rows];
        for entry in &self.entries {
            let middle = entry.bucket * self.width + self.width / 2;
            if windows.is_empty() || windows.iter().any(|&(start, end)| start <= middle && middle < end) {
                totals[entry.row as usize].samples += u64::from(entry.samples);
                totals[entry.row as usize].ns += (entry.ns as f64 * weight(entry.row, middle)).round() as u64;
            }
        }
        for long in &self.longs {
            let common = |&(start, end): &(u64, u64)| end.min(long.end).saturating_sub(start.max(long.start));
            let ns = match windows {
                [] => long.end - long.start,
                windows => windows.iter().map(common).sum(),
            };
            totals[long.row as usize].samples += u64::from(ns > 0);
            let middle = u64::midpoint(long.start, long.end);
            totals[long.row as usize].ns += (ns as f64 * weight(long.row, middle)).round() as u64;
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn once(_: RowId, _: u64) -> f64 {
        1.0
    }

    #[test]
    fn only_samples_in_a_window_count() {
        let mut timeline = Timeline::default();
        for ms in 0..100 {
            timeline.add(0, ms * MS + 10, MS);
        }
        assert_eq!(timeline.totals(&[], 1, once), [Total { samples: 100, ns: 100 * MS }]);
        let windows = [(10 * MS, 20 * MS), (50 * MS, 55 * MS)];
        assert_eq!(timeline.totals(&windows, 1, once), [Total { samples: 15, ns: 15 * MS }]);
    }

    #[test]
    fn a_long_wait_counts_with_its_part_in_the_windows() {
        let mut timeline = Timeline::default();
        timeline.add_interval(1, 10 * MS, 110 * MS);
        let windows = [(0, 20 * MS), (100 * MS, 200 * MS), (300 * MS, 400 * MS)];
        assert_eq!(timeline.totals(&windows, 2, once)[1], Total { samples: 1, ns: 20 * MS });
        assert_eq!(timeline.totals(&[(200 * MS, 300 * MS)], 2, once)[1], Total::default());
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_lost_when_buckets_become_wider() {
        let mut timeline = Timeline::with_limit(64);
        for ms in 0..1000_u64 {
            timeline.add(0, ms * MS, 3);
            timeline.add_interval(1, ms * MS, (ms + 2) * MS);
            assert!(timeline.entries.len() + timeline.longs.len() <= 64);
        }
        let all = timeline.totals(&[], 2, once);
        assert_eq!(all, [Total { samples: 1000, ns: 3000 }, Total { samples: 1000, ns: 2000 * MS }]);
        let half = timeline.totals(&[(0, 500 * MS)], 2, once);
        assert!(half[0].samples.abs_diff(500) <= timeline.width / MS);
    }
}
