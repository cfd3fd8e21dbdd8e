//! The buckets of a `Histogram`, for code that records values during a trial. Recording a value takes a shift, an
//! addition and an increment.
//!
//! The buckets are the same as in an HdrHistogram with lowest value 1 and 3 significant digits. There are 2048 buckets
//! of width 1, then 1024 for each doubling (HdrHistogram's documentation, "Counts array"). Converting the buckets to a
//! `Histogram` therefore loses nothing.

use super::Histogram;
use super::histogram::LONGEST_NS;

/// Base-2 logarithm of the number of buckets per doubling. Values below twice that number of buckets have a bucket
/// each.
const HALF_BITS: u32 = 10;
const HALF: usize = 1 << HALF_BITS;
const BUCKET_COUNT: usize = bucket_index(LONGEST_NS) + 1;

/// Number of recorded values in each bucket. The buckets occupy 270 KB of address space. Memory is needed only for the
/// buckets in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets {
    counts: Vec<u64>,
    /// Index of the highest non-zero bucket.
    highest: usize,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { counts: vec![0; BUCKET_COUNT], highest: 0 }
    }
}

impl Buckets {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket_index(ns.min(LONGEST_NS));
        self.counts[bucket] += 1;
        self.highest = self.highest.max(bucket);
    }

    /// Copies `other`. Does not touch the memory of buckets that are unused in both.
    pub fn copy(&mut self, other: &Self) {
        let length = self.highest.max(other.highest) + 1;
        self.counts[..length].copy_from_slice(&other.counts[..length]);
        self.highest = other.highest;
    }

    /// Returns the recorded values and clears the buckets.
    pub fn take(&mut self) -> Histogram {
        let mut histogram = Histogram::new();
        for (bucket, count) in self.counts[..=self.highest].iter_mut().enumerate() {
            if *count > 0 {
                histogram.record_n(bucket_start(bucket), std::mem::take(count));
            }
        }
        self.highest = 0;
        histogram
    }
}

/// Returns the bucket of a value.
#[inline]
const fn bucket_index(value: u64) -> usize {
    let doublings = (u64::BITS - HALF_BITS - 1) - (value | (2 * HALF as u64 - 1)).leading_zeros();
    ((doublings as usize) << HALF_BITS) + (value >> doublings) as usize
}

/// Returns the lowest value of a bucket.
const fn bucket_start(bucket: usize) -> u64 {
    if bucket < 2 * HALF {
        return bucket as u64;
    }
    let doublings = (bucket >> HALF_BITS) - 1;
    ((HALF + (bucket & (HALF - 1))) as u64) << doublings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_on_the_way_into_a_histogram(
            values in prop::collection::vec((0u64..64).prop_flat_map(|bits| 0..=(u64::MAX >> bits)), 0..300)
        ) {
            let (mut buckets, mut direct) = (Buckets::default(), Histogram::new());
            for &value in &values {
                buckets.record(value);
                direct.record(value);
            }
            let taken = buckets.take();
            prop_assert_eq!(taken.buckets(), direct.buckets());
            prop_assert_eq!(taken.count(), direct.count());
            prop_assert_eq!((taken.max_s().to_bits(), taken.min_s().to_bits()), (direct.max_s().to_bits(), direct.min_s().to_bits()));
            prop_assert_eq!(buckets.take().count(), 0);
        }

        #[test]
        fn a_bucket_holds_its_lowest_value(place_of in 0..BUCKET_COUNT) {
            prop_assert_eq!(bucket_index(bucket_start(place_of)), place_of);
        }
    }
}
