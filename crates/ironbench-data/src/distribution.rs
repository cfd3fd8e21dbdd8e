//! Distributions of row numbers. The distributions are the same as for `sysbench --rand-type=…`, so that the same rows
//! are hot.
//!
//! sysbench documents names and parameters. The distribution `special` was measured, with tables of 100 to 100 000
//! rows. A window of 1 + 1% of the rows lies in the middle of the table, and 75% of the accesses hit the upper 75% of
//! this window. For the other accesses, and for all accesses of `gaussian`, the row number is the mean of 12 uniform
//! random numbers.

use pgbench_script::Random;
use serde::Deserialize;

/// Number of uniform random numbers that are averaged to get an approximately normal number (`--rand-spec-iter`).
const SUMMANDS: u32 = 12;
/// Width of the window of hot rows, as a share of all rows (`--rand-spec-pct`).
const HOT_ROWS: f64 = 0.01;
/// Share of the accesses that hit the window of hot rows (`--rand-spec-res`). These accesses hit only a part of the
/// window. This part is at its upper end and has the same share of its width.
const HOT_ACCESSES: f64 = 0.75;
/// Parameter of the Pareto distribution (`--rand-pareto-h`). With 0.2, 80% of the accesses hit 20% of the rows.
const PARETO: f64 = 0.2;

/// Kind of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Uniform,
    Gaussian,
    Special,
    /// A distribution in which the lowest numbers are the most frequent.
    Pareto,
    /// A distribution in which the probability of the k-th number is proportional to 1 / k^exponent.
    Zipfian {
        exponent: f64,
    },
}

/// A distribution over `low..=high`.
#[derive(Debug, Clone)]
pub struct Distribution {
    low: i64,
    size: f64,
    shape: Shape,
}

#[derive(Debug, Clone)]
enum Shape {
    Uniform { high: i64 },
    Gaussian,
    Special,
    Pareto,
    Zipfian(Zipfian),
}

impl Distribution {
    /// Creates a distribution. `low` must not be above `high`.
    pub fn new(kind: Kind, low: i64, high: i64) -> Self {
        let size = (high - low + 1) as f64;
        let shape = match kind {
            Kind::Uniform => Shape::Uniform { high },
            Kind::Gaussian => Shape::Gaussian,
            Kind::Special => Shape::Special,
            Kind::Pareto => Shape::Pareto,
            Kind::Zipfian { exponent } => Shape::Zipfian(Zipfian::new(size, exponent)),
        };
        Self { low, size, shape }
    }

    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        let offset = match &self.shape {
            Shape::Uniform { high } => return random.integer(self.low, *high),
            Shape::Gaussian => gaussian(self.size, random),
            Shape::Special => special(self.size, random),
            // The formula is "self-similar" in Gray et al., "Quickly generating billion-record synthetic databases",
            // SIGMOD 1994.
            Shape::Pareto => self.size * random.fraction().powf(PARETO.ln() / (1.0 - PARETO).ln()),
            Shape::Zipfian(zipfian) => zipfian.draw(random),
        };
        self.low + (offset as i64).min(self.size as i64 - 1)
    }
}

fn gaussian(size: f64, random: &mut Random) -> f64 {
    let sum: f64 = (0..SUMMANDS).map(|_| random.fraction()).sum();
    size * sum / f64::from(SUMMANDS)
}

fn special(size: f64, random: &mut Random) -> f64 {
    if random.fraction() >= HOT_ACCESSES {
        return gaussian(size, random);
    }
    let window = HOT_ROWS * size + 1.0;
    (size - window) / 2.0 + window * (1.0 - HOT_ACCESSES * random.fraction())
}

/// Draws from a Zipf distribution with any exponent above 0, in constant time.
/// Source: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
/// ACM TOMACS 6 (1996).
#[derive(Debug, Clone)]
pub(crate) struct Zipfian {
    exponent: f64,
    size: f64,
    /// The integral of the density up to the lower end of the range. The next field is the integral up to the upper
    /// end.
    first: f64,
    last: f64,
    /// If a candidate exceeds the unrounded value by at most this much, it is accepted without a test.
    sure: f64,
}

impl Zipfian {
    pub(crate) fn new(size: f64, exponent: f64) -> Self {
        let mut made = Self { exponent, size, first: 0.0, last: 0.0, sure: 0.0 };
        made.first = made.integral(1.5) - 1.0;
        made.last = made.integral(size + 0.5);
        made.sure = 2.0 - made.inverse(made.integral(2.5) - made.density(2.0));
        made
    }

    /// Draws a whole number from 0 to the size of the range − 1. The number 0 is the most frequent.
    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        loop {
            let area = self.last + random.fraction() * (self.first - self.last);
            let value = self.inverse(area);
            let rank = value.round().clamp(1.0, self.size);
            if rank - value <= self.sure || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank - 1.0;
            }
        }
    }

    fn density(&self, rank: f64) -> f64 {
        rank.powf(-self.exponent)
    }

    /// Returns the integral of the density from 1 to `rank`.
    fn integral(&self, rank: f64) -> f64 {
        let (log, rest) = (rank.ln(), 1.0 - self.exponent);
        if rest == 0.0 { log } else { (rest * log).exp_m1() / rest }
    }

    fn inverse(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest == 0.0 { area.exp() } else { ((area * rest).ln_1p() / rest).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DRAWS: usize = 200_000;

    /// Returns how often each offset from `low` is drawn.
    fn counts(kind: Kind, size: usize) -> Vec<f64> {
        let distribution = Distribution::new(kind, 1, size as i64);
        let mut random = Random::new(2026);
        let mut counts = vec![0.0; size];
        (0..DRAWS).for_each(|_| counts[distribution.draw(&mut random) as usize - 1] += 1.0);
        counts
    }

    /// Asserts that a drawn share is within five standard deviations of its probability.
    fn agrees(drawn: f64, probability: f64) {
        let expected = probability * DRAWS as f64;
        let deviation = (expected * (1.0 - probability)).sqrt();
        assert!((drawn - expected).abs() <= 5.0 * deviation + 1e-9, "{drawn} instead of {expected}");
    }

    #[test]
    fn zipfian_numbers_have_the_probabilities_of_the_definition() {
        for exponent in [0.5, 0.8, 0.99, 1.0, 1.3, 3.0] {
            let drawn = counts(Kind::Zipfian { exponent }, 50);
            let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            drawn.iter().zip(weights).for_each(|(&count, weight)| agrees(count, weight / sum));
        }
    }

    #[test]
    fn four_fifths_of_pareto_numbers_are_in_the_first_fifth_and_so_on() {
        let drawn = counts(Kind::Pareto, 10_000);
        let upto = |last: usize| drawn[..last].iter().sum::<f64>();
        agrees(upto(2_000), 0.8);
        agrees(upto(400), 0.64);
        agrees(upto(80), 0.512);
    }

    #[test]
    fn three_quarters_of_special_numbers_are_in_the_middle_as_measured_with_sysbench() {
        // In sysbench with 10 000 rows, the rows from 4976 to 5050 have the full density. Row 4975 has a quarter of it,
        // and row 5051 has half of it.
        let drawn = counts(Kind::Special, 10_000);
        let each = HOT_ACCESSES / 75.75;
        let cold = |number: f64| 0.25 * normal((number - 5000.5) / 833.333) / 833.333;
        agrees(drawn[4974], 0.25 * each + cold(4975.0));
        agrees(drawn[5050], 0.5 * each + cold(5051.0));
        (4976..=5050).for_each(|number| agrees(drawn[number - 1], each + cold(number as f64)));
        agrees(drawn[..4000].iter().sum(), 0.25 * 0.1151); // 1.2 standard deviations below the mean
    }

    #[test]
    fn gaussian_numbers_are_means_of_twelve() {
        let drawn = counts(Kind::Gaussian, 10_000);
        let moment = |power: i32| {
            let sum: f64 = drawn.iter().enumerate().map(|(n, count)| count * (n as f64 - 4999.5).powi(power)).sum();
            sum / DRAWS as f64
        };
        assert!(moment(1).abs() < 5.0 * 833.3 / (DRAWS as f64).sqrt());
        assert!((moment(2).sqrt() / 833.3 - 1.0).abs() < 0.01, "{}", moment(2).sqrt());
        // The sum of twelve uniform numbers has an excess kurtosis of -0.1, so its kurtosis is 2.9.
        assert!((moment(4) / moment(2).powi(2) - 2.9).abs() < 0.06, "{}", moment(4) / moment(2).powi(2));
    }

    #[test]
    fn uniform_numbers_are_even() {
        counts(Kind::Uniform, 20).iter().for_each(|&count| agrees(count, 0.05));
    }

    fn normal(x: f64) -> f64 {
        (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }

    proptest! {
        #[test]
        fn every_number_is_in_its_range(
            seed: u64, low in -1000i64..1000, size in 1i64..10_000_000_000, exponent in 0.01f64..5.0,
        ) {
            let mut random = Random::new(seed);
            let kinds = [Kind::Uniform, Kind::Gaussian, Kind::Special, Kind::Pareto, Kind::Zipfian { exponent }];
            for kind in kinds {
                let distribution = Distribution::new(kind, low, low + size - 1);
                for _ in 0..20 {
                    prop_assert!((low..low + size).contains(&distribution.draw(&mut random)), "{kind:?}");
                }
            }
        }
    }
}
