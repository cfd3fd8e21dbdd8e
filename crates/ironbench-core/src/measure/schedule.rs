//! The scheduled starts of transactions in an open loop, independent of the server.

use super::curve::Curve;
use pgbench_script::SplitMix64;

/// A non-decreasing sequence of instants in nanoseconds. The instants are absolute, so that lateness never accumulates.
#[derive(Debug, Clone)]
pub struct Schedule {
    kind: Kind,
    /// Start of the next transaction, in nanoseconds after the origin.
    next_ns: f64,
    origin: u64,
}

#[derive(Debug, Clone)]
enum Kind {
    Fixed { gap_ns: f64 },
    Poisson { mean_gap_ns: f64, random: SplitMix64 },
    Curve(Follower),
}

/// Follows a curve of the rate.
#[derive(Debug, Clone)]
struct Follower {
    curve: Curve,
    /// Integral of the rate up to the next transaction.
    sum: f64,
    piece: usize,
    /// Source of random gaps between transactions, or None if the integral grows by exactly 1 between transactions.
    random: Option<SplitMix64>,
}

impl Follower {
    fn next_ns(&mut self) -> f64 {
        // This instant is later than any trial, but small enough that additions do not overflow.
        const LATE_NS: f64 = 1e18;
        (self.curve.time_of_integral(self.sum, &mut self.piece) * 1e9).min(LATE_NS)
    }

    fn advance(&mut self) -> f64 {
        self.sum += self.random.as_mut().map_or(1.0, exponential);
        self.next_ns()
    }
}

impl Schedule {
    /// Schedules one transaction every `1 / rate` seconds. `phase` (0 to 1) is the fraction of a gap before the first
    /// transaction. With different phases, the schedules of several processes interleave.
    pub fn fixed(origin: u64, rate: f64, phase: f64) -> Self {
        let gap_ns = 1e9 / rate;
        Self { kind: Kind::Fixed { gap_ns }, next_ns: gap_ns * phase, origin }
    }

    /// Schedules transactions with exponentially distributed gaps of mean `1 / rate`, like independent users.
    /// The union of several such schedules is again such a schedule.
    pub fn poisson(origin: u64, rate: f64, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mean_gap_ns = 1e9 / rate;
        let next_ns = exponential(&mut random) * mean_gap_ns;
        Self { kind: Kind::Poisson { mean_gap_ns, random }, next_ns, origin }
    }

    /// Schedules transactions at a rate that follows a curve. A transaction starts whenever the integral of the rate
    /// passes an integer plus `phase`.
    pub fn fixed_curve(origin: u64, curve: Curve, phase: f64) -> Self {
        Self::follow(origin, Follower { curve, sum: phase, piece: 0, random: None })
    }

    /// Schedules transactions at a rate that follows a curve. The transactions arrive like those of independent users.
    pub fn poisson_curve(origin: u64, curve: Curve, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let sum = exponential(&mut random);
        Self::follow(origin, Follower { curve, sum, piece: 0, random: Some(random) })
    }

    fn follow(origin: u64, mut follower: Follower) -> Self {
        let next_ns = follower.next_ns();
        Self { kind: Kind::Curve(follower), next_ns, origin }
    }

    /// Returns the scheduled start of the next transaction.
    #[inline]
    pub fn due(&self) -> u64 {
        self.origin + self.next_ns as u64
    }

    /// Advances to the next transaction.
    #[inline]
    pub fn advance(&mut self) {
        self.next_ns = match &mut self.kind {
            Kind::Fixed { gap_ns } => self.next_ns + *gap_ns,
            Kind::Poisson { mean_gap_ns, random } => self.next_ns + exponential(random) * *mean_gap_ns,
            Kind::Curve(follower) => follower.advance(),
        };
    }

    /// Skips the transactions that are due before `instant`. Returns the number of skipped transactions.
    pub fn skip_until(&mut self, instant: u64) -> u64 {
        let mut skipped = 0;
        while self.due() < instant {
            self.advance();
            skipped += 1;
        }
        skipped
    }
}

/// Returns an exponentially distributed number with mean 1.
/// The argument of the logarithm is in (0, 1], so the result is finite and not negative.
fn exponential(random: &mut SplitMix64) -> f64 {
    let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::curve::Piece;
    use proptest::prelude::*;

    fn dues(mut schedule: Schedule, n: usize) -> Vec<u64> {
        (0..n)
            .map(|_| {
                let due = schedule.due();
                schedule.advance();
                due
            })
            .collect()
    }

    proptest! {
        #[test]
        fn no_transaction_is_due_before_its_predecessor_or_the_origin(seed: u64, rate in 1.0f64..1e6, origin in 0u64..1 << 60) {
            for schedule in [Schedule::poisson(origin, rate, seed), Schedule::fixed(origin, rate, 0.5)] {
                let dues = dues(schedule, 200);
                prop_assert!(dues[0] >= origin);
                prop_assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
            }
        }

        #[test]
        fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential(seed: u64, rate in 10.0f64..1e6) {
            let n = 20_000;
            let dues = dues(Schedule::poisson(0, rate, seed), n);
            let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64 * rate / 1e9).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            // The tolerance is five standard errors: 1 / sqrt(n) for the mean, sqrt(8 / n) for the variance.
            prop_assert!((mean - 1.0).abs() < 5.0 / (n as f64).sqrt(), "mean {mean}");
            prop_assert!((variance - 1.0).abs() < 5.0 * (8.0 / n as f64).sqrt(), "variance {variance}");
        }

        #[test]
        fn arrivals_of_a_ramp_are_as_many_as_its_area(
            from in 0.0f64..1000.0, to in 0.0f64..1000.0, seconds in 1u32..60, seed: u64
        ) {
            let curve = Curve::new(&[Piece::Line { seconds: seconds.into(), from, to }]).unwrap();
            let end = u64::from(seconds) * 1_000_000_000;
            let fixed = Schedule::fixed_curve(0, curve.clone(), 0.5).skip_until(end);
            let area = f64::from(seconds) * (from + to) / 2.0;
            prop_assert!((fixed as f64 - area).abs() <= 1.0, "{fixed} of {area}");
            let poisson = Schedule::poisson_curve(0, curve, seed).skip_until(end);
            // The tolerance is five standard deviations of a Poisson count.
            prop_assert!((poisson as f64 - area).abs() <= 5.0 * area.sqrt() + 5.0, "{poisson} of {area}");
        }

        #[test]
        fn arrivals_of_a_flat_curve_are_those_of_its_rate(seed: u64, rate in 1.0f64..1e5) {
            let curve = Curve::new(&[Piece::Line { seconds: 1.0, from: rate, to: rate }]).unwrap();
            let near = |a: Vec<u64>, b: Vec<u64>| a.into_iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 1 + b / 1_000_000_000);
            let flat = Schedule::poisson_curve(0, curve.clone(), seed);
            prop_assert!(near(dues(flat, 1000), dues(Schedule::poisson(0, rate, seed), 1000)));
            let flat = Schedule::fixed_curve(0, curve, 0.5);
            prop_assert!(near(dues(flat, 1000), dues(Schedule::fixed(0, rate, 0.5), 1000)));
        }

        #[test]
        fn a_fixed_rate_makes_exactly_its_number_in_a_second(rate in 1u32..50_000) {
            let mut schedule = Schedule::fixed(7, f64::from(rate), 0.5);
            prop_assert_eq!(schedule.skip_until(7 + 1_000_000_000), u64::from(rate));
        }
    }
}
