//! High Dynamic Range histograms of times in nanoseconds: 3 significant digits, mergeable, bounded memory.

use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::clock::SECOND;
use crate::{Error, Result};

const DIGITS: u8 = 3;
/// Longest recorded time, one hour. A longer time is recorded as one hour.
pub const LONGEST_NS: u64 = 3_600 * SECOND;

/// Size of the V2 format's header, which contains cookie, payload length, offset, digits, lowest, highest and ratio.
const HEADER_BYTES: usize = 40;
/// Maximum size of an inflated histogram, which has at most 35,000 counts of up to nine bytes each.
const MAX_BYTES: u64 = 1 << 20;

/// A histogram that grows with the largest recorded value: about 100 KB for values up to 1 ms, at most 280 KB.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    pub fn new() -> Self {
        let mut inner =
            hdrhistogram::Histogram::new_with_bounds(1, 1_000_000, DIGITS).expect("constant bounds are valid");
        inner.auto(true);
        Self(inner)
    }

    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    pub fn record_n(&mut self, ns: u64, count: u64) {
        self.0.record_n(ns.min(LONGEST_NS), count).expect("a growing histogram has room for every value");
    }

    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("a growing histogram has room for every value");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the quantile `q` (0 to 1) in seconds, or NaN if the histogram is empty.
    pub fn quantile_s(&self, q: f64) -> f64 {
        self.when_filled(|h| seconds(h.value_at_quantile(q)))
    }

    pub fn mean_s(&self) -> f64 {
        self.when_filled(|h| h.mean() / SECOND as f64)
    }

    pub fn stdev_s(&self) -> f64 {
        self.when_filled(|h| h.stdev() / SECOND as f64)
    }

    pub fn min_s(&self) -> f64 {
        self.when_filled(|h| seconds(h.min()))
    }

    pub fn max_s(&self) -> f64 {
        self.when_filled(|h| seconds(h.max()))
    }

    /// Returns the sum of all values, or 0 if the histogram is empty.
    pub fn sum_s(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.mean_s() * self.count() as f64 }
    }

    /// Returns the non-empty buckets. Each consists of the lowest and the highest equivalent value in seconds, and the
    /// count.
    pub fn buckets(&self) -> Vec<(f64, f64, u64)> {
        let bucket = |value: u64, count: u64| {
            (seconds(self.0.lowest_equivalent(value)), seconds(self.0.highest_equivalent(value)), count)
        };
        self.0.iter_recorded().map(|v| bucket(v.value_iterated_to(), v.count_at_value())).collect()
    }

    /// Encodes the histogram in HdrHistogram's V2 format, deflated.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("writing to memory does not fail");
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bad = |why: String| Error::input("histogram", format!("these bytes are not an HdrHistogram: {why}"));
        let plain = inflated(bytes).map_err(bad)?;
        let mut inner: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut &plain[..]).map_err(|e| bad(e.to_string()))?;
        inner.auto(true);
        Ok(Self(inner))
    }

    /// Encodes the value and the count of each non-empty bucket as base-128 numbers. This format is compact, and adding
    /// it to a histogram is fast.
    pub fn to_pairs(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for bucket in self.0.iter_recorded() {
            put(&mut bytes, bucket.value_iterated_to());
            put(&mut bytes, bucket.count_at_value());
        }
        bytes
    }

    /// Adds the buckets that `to_pairs` wrote.
    ///
    /// # Errors
    /// Input: the bytes do not encode such buckets.
    pub fn add_pairs(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (Some(value), Some(count)) = (take(&mut bytes), take(&mut bytes)) else {
                return Err(Error::input("histogram", "these bytes are not values and counts"));
            };
            if self.count().checked_add(count).is_none() {
                return Err(Error::input("histogram", "the counts overflow"));
            }
            self.record_n(value, count);
        }
        Ok(())
    }

    pub(super) fn inner(&self) -> &hdrhistogram::Histogram<u64> {
        &self.0
    }

    fn when_filled(&self, value: impl Fn(&hdrhistogram::Histogram<u64>) -> f64) -> f64 {
        if self.0.is_empty() { f64::NAN } else { value(&self.0) }
    }
}

/// Inflates the V2 format. Fails if the header claims more memory than the data themselves need.
///
/// The deserializer would allocate memory for any length and number of digits that the header claims. Source:
/// https://github.com/HdrHistogram/HdrHistogram, `AbstractHistogram.encodeIntoByteBuffer`
fn inflated(bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let compressed = bytes.get(8..).ok_or("the data are truncated")?;
    let mut plain = Vec::new();
    ZlibDecoder::new(compressed).take(MAX_BYTES + 1).read_to_end(&mut plain).map_err(|e| e.to_string())?;
    let field = |at: usize| plain.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("four bytes")));
    let (Some(payload), Some(digits)) = (field(4), field(12)) else { return Err("the data are truncated".into()) };
    if plain.len() as u64 > MAX_BYTES || payload as usize != plain.len() - HEADER_BYTES.min(plain.len()) {
        return Err("the length does not match the header".into());
    }
    if digits > u32::from(DIGITS) {
        return Err(format!("{digits} digits exceed the maximum of {DIGITS}"));
    }
    Ok(plain)
}

/// Appends a number in LEB128: seven bits per byte, lowest first. A set high bit means that more bytes follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&v| histogram.record(v));
        histogram
    }

    proptest! {
        #[test]
        fn merge_is_associative_and_commutative(
            a in prop::collection::vec(1u64..LONGEST_NS, 0..40),
            b in prop::collection::vec(1u64..LONGEST_NS, 0..40),
            c in prop::collection::vec(1u64..LONGEST_NS, 0..40),
        ) {
            let (mut left, mut right, mut bc) = (of(&a), of(&c), of(&b));
            left.merge(&of(&b));
            left.merge(&of(&c));
            bc.merge(&of(&c));
            right.merge(&of(&b));
            right.merge(&of(&a));
            let mut nested = of(&a);
            nested.merge(&bc);
            prop_assert_eq!(left.buckets(), nested.buckets());
            prop_assert_eq!(left.buckets(), right.buckets());
        }

        #[test]
        fn a_value_is_kept_to_three_digits(value in 1u64..LONGEST_NS) {
            let read = of(&[value]).quantile_s(0.5) * 1e9;
            prop_assert!((read - value as f64).abs() <= value as f64 * 1e-3 + 1e-3);
        }

        #[test]
        fn pairs_add_up_to_the_histogram_of_all_values(
            a in prop::collection::vec(0u64..LONGEST_NS, 0..60),
            b in prop::collection::vec(0u64..LONGEST_NS, 0..60),
        ) {
            let mut sum = Histogram::new();
            sum.add_pairs(&of(&a).to_pairs()).unwrap();
            sum.add_pairs(&of(&b).to_pairs()).unwrap();
            let whole = of(&[a, b].concat());
            prop_assert_eq!(sum.buckets(), whole.buckets());
            let figures = |h: &Histogram| format!("{} {} {} {}", h.mean_s(), h.stdev_s(), h.min_s(), h.max_s());
            prop_assert_eq!(figures(&sum), figures(&whole));
        }

        #[test]
        fn bytes_that_are_no_pairs_are_refused_or_counted(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Histogram::new().add_pairs(&bytes);
        }

        #[test]
        fn bytes_come_back_equal(values in prop::collection::vec(0u64..LONGEST_NS, 0..60)) {
            let histogram = of(&values);
            let read = Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            prop_assert_eq!(read.buckets(), histogram.buckets());
        }
    }

    #[test]
    fn times_beyond_an_hour_count_as_an_hour() {
        assert!((of(&[u64::MAX]).max_s() - 3_600.0).abs() < 4.0);
    }

    /// Returns an encoded histogram with a changed header: `value` replaces the four bytes from `at` on.
    fn with_header(at: usize, value: u32) -> Vec<u8> {
        let mut plain = inflated(&of(&[1, 2_000_000]).to_bytes()).unwrap();
        plain[at..at + 4].copy_from_slice(&value.to_be_bytes());
        let mut bytes = 0x1c84_9304u32.to_be_bytes().to_vec();
        let mut deflated = Vec::new();
        flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::fast()).read_to_end(&mut deflated).unwrap();
        bytes.extend((deflated.len() as u32).to_be_bytes());
        bytes.extend(deflated);
        bytes
    }

    #[test]
    fn a_header_that_claims_memory_is_refused() {
        assert!(Histogram::from_bytes(&with_header(12, 3)).is_ok());
        for (at, value) in [(4, u32::MAX), (4, 1 << 31), (12, 5), (12, 200)] {
            assert!(Histogram::from_bytes(&with_header(at, value)).is_err(), "{at}: {value}");
        }
        let mut bomb = Vec::new();
        let zeros = std::io::repeat(0).take(1 << 26);
        flate2::read::ZlibEncoder::new(zeros, flate2::Compression::fast()).read_to_end(&mut bomb).unwrap();
        assert!(Histogram::from_bytes(&[&[0x1c, 0x84, 0x93, 4, 0, 0, 0, 0][..], &bomb].concat()).is_err());
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        assert!(Histogram::new().quantile_s(0.5).is_nan());
        assert!(Histogram::new().mean_s().is_nan());
    }
}
