//! The random numbers of scripts. Generator, seeding and distributions are the same as in PostgreSQL's pgbench, so that
//! a script with a given seed draws the same values in both.
//!
//! The generator is xoroshiro128** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018).
//! SplitMix64 initialises its state.

use std::f64::consts::PI;

/// A stream of random numbers. Every client has its own stream, so that a trial is reproducible however the clients
/// interleave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    low: u64,
    high: u64,
}

/// Number of random bits in a fraction. A double in [1, 2) has this many bits after the binary point.
const FRACTION_BITS: u32 = 52;

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        let (low, high) = (seeds.next_u64(), seeds.next_u64());
        if low == 0 && high == 0 {
            // The generator could never leave the state zero. PostgreSQL replaces it with these constants.
            return Self { low: 0x5851_F42D_4C95_7F2D, high: 0x1405_7B7E_F767_814F };
        }
        Self { low, high }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let low = self.low;
        let mixed = self.high ^ low;
        let value = low.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.low = low.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.high = mixed.rotate_left(37);
        value
    }

    /// Draws uniformly from `0..=limit`. Rejection makes it unbiased.
    #[inline]
    pub fn up_to(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        let shift = limit.leading_zeros();
        loop {
            let value = self.next_u64() >> shift;
            if value <= limit {
                return value;
            }
        }
    }

    /// Draws uniformly from [0, 1).
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> (64 - FRACTION_BITS)) as f64 * (1.0 / (1u64 << FRACTION_BITS) as f64)
    }

    /// Draws uniformly from `min..=max`. The difference `max - min` must fit into an i64.
    #[inline]
    pub fn integer(&mut self, min: i64, max: i64) -> i64 {
        min.wrapping_add(self.up_to(max.wrapping_sub(min) as u64) as i64)
    }

    /// Draws from an exponential distribution cut off at `parameter` and stretched over `min..=max`. `parameter` must
    /// be above 0.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        stretch(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
    }

    /// Draws from a normal distribution cut off at ± `parameter` standard deviations and stretched over `min..=max`.
    pub fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let deviate = loop {
            let deviate = self.normal();
            if deviate >= -parameter && deviate < parameter {
                break deviate;
            }
        };
        stretch(min, max, (deviate + parameter) / (parameter * 2.0))
    }

    /// Draws from a bounded Zipf distribution over `min..=max` by rejection. `exponent` must be above 1. Source:
    /// Devroye, "Non-Uniform Random Variate Generation", chapter X.6.1.
    pub fn zipfian(&mut self, min: i64, max: i64, exponent: f64) -> i64 {
        let size = max - min + 1;
        if size <= 1 {
            return min;
        }
        let size_f = size as f64;
        let b = 2f64.powf(exponent - 1.0);
        loop {
            let u = self.fraction();
            let v = self.fraction();
            let x = u.powf(-1.0 / (exponent - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(exponent - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= size_f {
                return min + (x as i64 - 1);
            }
        }
    }

    /// Draws a standard normal deviate with the Box–Muller transform.
    fn normal(&mut self) -> f64 {
        let u1 = 1.0 - self.fraction();
        let u2 = 1.0 - self.fraction();
        (-2.0 * u1.ln()).sqrt() * (2.0 * PI * u2).sin()
    }
}

/// Maps `fraction` in [0, 1) to an integer. The result is in `min..=max` even if the product rounds up to the size of
/// the range.
fn stretch(min: i64, max: i64, fraction: f64) -> i64 {
    let size = max - min + 1;
    min + ((size as f64 * fraction) as i64).min(size - 1)
}

/// The generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). Any
/// seed may be used, because even consecutive seeds give independent streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Self::mixed(self.0)
    }

    /// Draws from 0 to `n` − 1, with a bias of at most n / 2⁶⁴.
    /// Source: Lemire, "Fast random integer generation in an interval", 2019, without the rejection.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns the hash of a value, computed by the output function of the generator.
    #[inline]
    pub fn mixed(value: u64) -> u64 {
        let mixed = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Seeds of a trial, drawn from the trial's seed. The order is that of pgbench with one thread per client. First come
/// the seeds of the clients' functions, then `:default_seed`. For each thread, the seed for choosing scripts follows,
/// and the seeds of two streams that are not used here.
#[derive(Debug, Clone)]
pub struct Seeds {
    clients: Vec<u64>,
    choices: Vec<u64>,
    /// Value of `:default_seed`, unless the user sets it.
    pub default_seed: i64,
}

impl Seeds {
    /// Draws the seeds. Like pgbench, it draws no `:default_seed` if the user sets it.
    pub fn new(trial_seed: u64, clients: usize, gives_default_seed: bool) -> Self {
        let mut base = Random::new(trial_seed);
        let functions = (0..clients).map(|_| base.next_u64()).collect();
        let default_seed = if gives_default_seed { 0 } else { base.next_u64() as i64 };
        let choices = (0..clients).map(|_| {
            let choice = base.next_u64();
            let (_throttle, _sample) = (base.next_u64(), base.next_u64());
            choice
        });
        Self { choices: choices.collect(), clients: functions, default_seed }
    }

    /// Returns the stream for the random functions of this client.
    pub fn client(&self, client: usize) -> Random {
        Random::new(self.clients[client])
    }

    /// Returns the stream for this client's choice of scripts.
    pub fn choice(&self, client: usize) -> Random {
        Random::new(self.choices[client])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_clients_differ() {
        let seeds = Seeds::new(42, 3, false);
        assert_eq!(seeds.client(1), Seeds::new(42, 3, false).client(1));
        assert_ne!(seeds.client(0), seeds.client(1));
        assert_ne!(seeds.choice(0), seeds.choice(1));
        assert_ne!(seeds.choice(2), seeds.client(2));
    }

    #[test]
    fn a_limit_of_all_bits_is_drawn_without_a_shift() {
        let mut random = Random::new(1);
        assert!((0..64).any(|_| random.up_to(u64::MAX) > u64::MAX / 2));
    }

    /// Computes Pearson's statistic of `draws` draws from `1..=expected.len()` against their probabilities.
    fn chi_square(draws: usize, expected: &[f64], mut draw: impl FnMut() -> i64) -> f64 {
        let mut seen = vec![0u32; expected.len()];
        (0..draws).for_each(|_| seen[draw() as usize - 1] += 1);
        let deviation = |(seen, expected): (&u32, &f64)| (f64::from(*seen) - expected).powi(2) / expected;
        let counts: Vec<f64> = expected.iter().map(|probability| probability * draws as f64).collect();
        seen.iter().zip(&counts).map(deviation).sum()
    }

    /// The seeds are fixed. A value of 60 is far in the tail of the distribution for 19 degrees of freedom (p < 1e-5).
    #[test]
    fn the_distributions_are_those_of_the_books() {
        const CELLS: usize = 20;
        const DRAWS: usize = 100_000;
        let cells = || (0..CELLS).map(|cell| cell as f64 / CELLS as f64);
        let normalised = |weights: Vec<f64>| {
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / sum).collect::<Vec<_>>()
        };
        let width = 1.0 / CELLS as f64;
        let decay = 3.0f64;
        let exponential = normalised(cells().map(|x| (-decay * x).exp() - (-decay * (x + width)).exp()).collect());
        let zipf = normalised((1..=CELLS).map(|rank| (rank as f64).powf(-1.3)).collect());
        let density = |x: f64| (-(x * 5.0 - 2.5).powi(2) / 2.0).exp();
        // Simpson's rule integrates each cell of the normal density, cut at 2.5 standard deviations.
        let normal =
            normalised(cells().map(|x| density(x) + 4.0 * density(x + width / 2.0) + density(x + width)).collect());
        let mut random = Random::new(2026);
        let max = CELLS as i64;
        assert!(chi_square(DRAWS, &[1.0 / CELLS as f64; CELLS], || random.integer(1, max)) < 60.0);
        assert!(chi_square(DRAWS, &exponential, || random.exponential(1, max, decay)) < 60.0);
        assert!(chi_square(DRAWS, &zipf, || random.zipfian(1, max, 1.3)) < 60.0);
        assert!(chi_square(DRAWS, &normal, || random.gaussian(1, max, 2.5)) < 60.0);
    }

    proptest! {
        #[test]
        fn every_distribution_stays_in_its_bounds(
            seed: u64, min in -1_000_000_000i64..1_000_000_000, size in 1i64..1_000_000_000,
            deviation in 2.0f64..20.0, decay in 0.001f64..50.0, exponent in 1.001f64..20.0,
        ) {
            let mut random = Random::new(seed);
            let max = min + size - 1;
            for _ in 0..20 {
                for value in [
                    random.integer(min, max),
                    random.gaussian(min, max, deviation),
                    random.exponential(min, max, decay),
                    random.zipfian(min, max, exponent),
                ] {
                    prop_assert!((min..=max).contains(&value));
                }
                prop_assert!((0.0..1.0).contains(&random.fraction()));
            }
        }
    }
}
