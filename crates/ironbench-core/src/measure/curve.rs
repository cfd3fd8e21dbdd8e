//! A quantity that follows a declared curve over time. This module computes its value, its integral, and the inverse of
//! the integral.
//!
//! With fixed arrivals, a transaction of an open loop starts whenever the integral of the rate reaches an integer. With
//! Poisson arrivals, a transaction starts whenever the integral reaches the next sum of exponential gaps with mean 1.
//! These starts are a Poisson process with exactly that rate (time change; Çınlar, "Introduction to Stochastic
//! Processes", 1975, chapter 4.7). The starts follow every change of the rate continuously, not in steps.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// A part of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Piece {
    /// A straight line, which is constant if both ends are equal.
    Line { seconds: f64, from: f64, to: f64 },
    /// A wave from `low` to `high` and back: one period of a cosine.
    Wave { seconds: f64, low: f64, high: f64 },
}

impl Piece {
    fn seconds(&self) -> f64 {
        match *self {
            Self::Line { seconds, .. } | Self::Wave { seconds, .. } => seconds,
        }
    }

    fn is_valid(&self) -> bool {
        let (Self::Line { seconds, from: a, to: b } | Self::Wave { seconds, low: a, high: b }) = *self;
        let value = |v: f64| v.is_finite() && v >= 0.0;
        seconds.is_finite() && seconds > 0.0 && value(a) && value(b)
    }

    fn end(&self) -> f64 {
        match *self {
            Self::Line { to, .. } => to,
            Self::Wave { low, .. } => low,
        }
    }

    fn value(&self, at: f64) -> f64 {
        match *self {
            Self::Line { seconds, from, to } => from + (to - from) * at / seconds,
            Self::Wave { seconds, low, high } => (low + high) / 2.0 - (high - low) / 2.0 * (TAU * at / seconds).cos(),
        }
    }

    fn integral(&self, at: f64) -> f64 {
        match *self {
            Self::Line { seconds, from, to } => at * (from + (to - from) * at / seconds / 2.0),
            Self::Wave { seconds, low, high } => {
                (low + high) / 2.0 * at - (high - low) / 2.0 * seconds / TAU * (TAU * at / seconds).sin()
            }
        }
    }

    fn total(&self) -> f64 {
        match *self {
            Self::Line { seconds, from: a, to: b } | Self::Wave { seconds, low: a, high: b } => seconds * (a + b) / 2.0,
        }
    }

    /// Returns the time at which the integral is `sum`. `sum` must be above zero and at most the integral of the whole
    /// piece.
    fn time_of_integral(&self, sum: f64) -> f64 {
        match *self {
            // This form of the quadratic formula loses no digits, whether the line rises or falls.
            Self::Line { seconds, from, to } => {
                let slope = (to - from) / seconds;
                let root = (from * from + 2.0 * slope * sum).max(0.0).sqrt();
                (2.0 * sum / (from + root)).min(seconds)
            }
            Self::Wave { seconds, .. } => self.wave_time_of_integral(sum, seconds),
        }
    }

    /// Returns the time at which a wave's integral is `sum`, found by Newton's method. Newton's method fails where the
    /// wave is zero, and it may be zero at both ends. Each step is therefore bounded by bisection.
    fn wave_time_of_integral(&self, sum: f64, seconds: f64) -> f64 {
        let (mut low, mut high) = (0.0, seconds);
        let mut at = seconds * sum / self.total();
        for _ in 0..64 {
            let error = self.integral(at) - sum;
            if error.abs() <= 1e-9 {
                break;
            }
            if error > 0.0 {
                high = at
            } else {
                low = at
            }
            let step = at - error / self.value(at);
            at = if step > low && step < high { step } else { (low + high) / 2.0 };
        }
        at
    }
}

/// Consecutive pieces, from time 0. After the last piece, its end value continues.
#[derive(Debug, Clone)]
pub struct Curve {
    pieces: Vec<TimedPiece>,
}

#[derive(Debug, Clone, Copy)]
struct TimedPiece {
    piece: Piece,
    /// Time in seconds at which the piece starts.
    start: f64,
    integral_before: f64,
}

impl Curve {
    /// Returns None if there is no piece, a piece has no length, or a value is negative or not finite.
    pub fn new(pieces: &[Piece]) -> Option<Self> {
        let (mut start, mut integral_before) = (0.0, 0.0);
        let mut placed = Vec::with_capacity(pieces.len());
        for piece in pieces {
            placed.push(TimedPiece { piece: *piece, start, integral_before });
            start += piece.seconds();
            integral_before += piece.total();
        }
        (!pieces.is_empty() && pieces.iter().all(Piece::is_valid)).then_some(Self { pieces: placed })
    }

    /// Returns the value at time `at`, in seconds.
    pub fn value(&self, at: f64) -> f64 {
        let placed = &self.pieces[self.pieces.partition_point(|one| one.start <= at).saturating_sub(1)];
        let since = (at - placed.start).max(0.0);
        if since < placed.piece.seconds() { placed.piece.value(since) } else { placed.piece.end() }
    }

    /// Returns the first time at which the value is at least `level`, not before `at`. Returns None if there is no such
    /// time.
    pub fn reaches(&self, level: f64, at: f64) -> Option<f64> {
        if self.value(at) >= level {
            return Some(at);
        }
        let first = self.pieces.partition_point(|one| one.start <= at).saturating_sub(1);
        self.pieces[first..].iter().find_map(|one| one.rises_to(level, at))
    }

    /// Returns the time in seconds at which the integral is `sum`. Returns infinity if the integral never reaches
    /// `sum`. `hint` is the index of a piece. The search starts at this piece and updates `hint`, so sums must not
    /// decrease between calls.
    pub fn time_of_integral(&self, sum: f64, hint: &mut usize) -> f64 {
        while let Some(next) = self.pieces.get(*hint + 1)
            && next.integral_before < sum
        {
            *hint += 1;
        }
        let TimedPiece { piece, start, integral_before } = self.pieces[*hint];
        let (rest, whole) = (sum - integral_before, piece.total());
        if rest <= whole && rest > 0.0 {
            return start + piece.time_of_integral(rest);
        }
        if rest <= 0.0 {
            return start;
        }
        let (end, value) = (start + piece.seconds(), piece.end());
        if value > 0.0 { end + (rest - whole) / value } else { f64::INFINITY }
    }
}

impl TimedPiece {
    /// Returns the first time at which the piece has risen to `level`, not before `at`.
    fn rises_to(&self, level: f64, at: f64) -> Option<f64> {
        let from = (at - self.start).max(0.0);
        if from >= self.piece.seconds() {
            return None;
        }
        let since = match self.piece {
            _ if self.piece.value(from) >= level => from,
            Piece::Line { seconds, from: low, to: high } if high > low && high >= level => {
                (level - low) / (high - low) * seconds
            }
            Piece::Wave { seconds, low, high } if high > low && high >= level => {
                let up = (1.0 - 2.0 * (level - low) / (high - low)).clamp(-1.0, 1.0).acos() / TAU * seconds;
                if up < from {
                    return None; // the wave is falling and rises again only in the next period
                }
                up
            }
            _ => return None,
        };
        Some(self.start + since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let value = prop_oneof![Just(0.0), 0.0f64..5000.0];
        let piece = (any::<bool>(), 0.1f64..100.0, value.clone(), value).prop_map(|(line, seconds, a, b)| match line {
            true => Piece::Line { seconds, from: a, to: b },
            false => Piece::Wave { seconds, low: a.min(b), high: a.max(b) },
        });
        prop::collection::vec(piece, 1..8)
    }

    fn integral(curve: &Curve, at: f64) -> f64 {
        let placed = &curve.pieces[curve.pieces.partition_point(|one| one.start <= at).saturating_sub(1)];
        let since = (at - placed.start).min(placed.piece.seconds());
        placed.integral_before + placed.piece.integral(since) + placed.piece.end() * (at - placed.start - since)
    }

    proptest! {
        #[test]
        fn the_integral_is_the_area_under_the_value(pieces in pieces(), share in 0.0f64..1.2) {
            let curve = Curve::new(&pieces).unwrap();
            let end = share * pieces.iter().map(Piece::seconds).sum::<f64>();
            let steps = 20_000;
            let area: f64 = (0..steps).map(|n| curve.value(end * (f64::from(n) + 0.5) / f64::from(steps))).sum();
            let found = integral(&curve, end);
            // Where two pieces meet, one step of the numerical sum may use the wrong piece.
            let step = end / f64::from(steps);
            prop_assert!((area * step - found).abs() <= 8.0 * step * 5000.0 + found * 1e-3, "{area} {found}");
        }

        #[test]
        fn a_place_is_where_the_integral_is_the_sum(pieces in pieces(), shares in prop::collection::vec(0.0f64..1.1, 50)) {
            let curve = Curve::new(&pieces).unwrap();
            let whole: f64 = pieces.iter().map(Piece::total).sum();
            let mut sums: Vec<f64> = shares.into_iter().map(|share| share * whole).collect();
            sums.sort_by(f64::total_cmp);
            let (mut hint, mut last) = (0, 0.0);
            for sum in sums {
                let at = curve.time_of_integral(sum, &mut hint);
                prop_assert!(at >= last, "{at} after {last}");
                last = at;
                if at.is_finite() {
                    prop_assert!((integral(&curve, at) - sum).abs() < 1e-6 * whole.max(1.0), "{sum} at {at}");
                } else {
                    prop_assert!(sum > whole * (1.0 - 1e-9) && pieces.last().unwrap().end() == 0.0);
                }
            }
        }

        #[test]
        fn a_level_is_reached_where_the_value_first_is_as_high(pieces in pieces(), share in 0.0f64..1.2, level in 0.0f64..5000.0) {
            let curve = Curve::new(&pieces).unwrap();
            let whole = pieces.iter().map(Piece::seconds).sum::<f64>();
            let at = share * whole;
            let reached = curve.reaches(level, at);
            let steps = 2000;
            let end = reached.unwrap_or(whole * 1.3);
            let samples = (0..steps).map(|n| at + (end - at) * f64::from(n) / f64::from(steps));
            prop_assert!(end <= at || samples.into_iter().all(|t| curve.value(t) < level + 1e-6 * level.max(1.0)));
            if let Some(t) = reached {
                prop_assert!(t >= at && curve.value(t) >= level - 1e-6 * level.max(1.0), "{} at {t}", curve.value(t));
            }
        }
    }

    #[test]
    fn a_ramp_has_its_values_and_keeps_the_last() {
        let ramp = Curve::new(&[Piece::Line { seconds: 10.0, from: 100.0, to: 300.0 }]).unwrap();
        assert_eq!([0.0, 5.0, 10.0, 99.0].map(|at| ramp.value(at)), [100.0, 200.0, 300.0, 300.0]);
        assert_eq!(ramp.time_of_integral(2000.0, &mut 0), 10.0);
        assert_eq!(ramp.time_of_integral(2300.0, &mut 0), 11.0);
    }

    #[test]
    fn a_curve_that_cannot_be_followed_is_none() {
        let line = |seconds, from, to| Curve::new(&[Piece::Line { seconds, from, to }]).is_some();
        assert!(line(1.0, 0.0, 0.0));
        assert!(
            !line(0.0, 1.0, 1.0)
                && !line(f64::NAN, 1.0, 1.0)
                && !line(1.0, -1.0, 1.0)
                && !line(1.0, 1.0, f64::INFINITY)
        );
        assert!(Curve::new(&[]).is_none());
    }
}
