//! Student's t distribution, computed with the incomplete beta function of statrs and the error function of libm.
//!
//! The probability of |T| ≤ t is I_y(1/2, ν/2) with y = t²/(ν + t²), and the probability of |T| > t is I_x(ν/2, 1/2)
//! with x = 1 − y. Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.1 and 26.5.27. The crate
//! statrs (0.19) computes I from differences of ln Γ, which lose one digit for each digit of ν. From ν = 1000 on, the
//! normal distribution with Hill's expansion replaces it. The error function of statrs is off by 4e-11 at 2 standard
//! deviations, so it only provides the start of the search. The result comes from libm's function.

use std::f64::consts::{PI, SQRT_2};

use libm::{erf, erfc};
use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc_inv;
use statrs::function::gamma::ln_gamma;

/// Limit of t² that separates two computations. Up to it, the probability inside ±t is computed, and above it the
/// probability outside ±t. In this way, 1 − x loses no digits in either case.
const MIDDLE: f64 = 3.0;
/// Degrees of freedom at and above which Hill's expansion is accurate to 1e-13 for probabilities of at least 1e-15.
const MANY: f64 = 1000.0;
/// Degrees of freedom above which the distribution equals the normal distribution to 1e-10.
const NORMAL: f64 = 1e12;
/// Newton's method ends with a step smaller than this. The remaining error is then about the square of that step.
const LAST_STEP: f64 = 1e-8;
const MAX_STEPS: usize = 100;
/// Largest start of the search for a quantile. Up to this t, no density underflows.
const FARTHEST_START: f64 = 300.0;

/// Returns P(T ≥ t). Returns NaN unless `freedom` is above 0.
pub fn above(t: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    let (within, outside) = parts(t.abs(), freedom.min(NORMAL));
    if t >= 0.0 { outside / 2.0 } else { within + outside / 2.0 }
}

/// Returns t with P(T ≤ t) = p. Returns NaN unless 0 < p < 1 and `freedom` is above 0.
pub fn quantile(p: f64, freedom: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && freedom > 0.0) {
        return f64::NAN;
    }
    let (freedom, tail) = (freedom.min(NORMAL), p.min(1.0 - p));
    let t = if tail < 0.25 { reached_outside(2.0 * tail, freedom) } else { reached_within(1.0 - 2.0 * tail, freedom) };
    t.copysign(p - 0.5)
}

/// Returns t with P(|T| > t) = `outside`, a probability below 1/2.
///
/// Newton's method solves for the logarithms of t and of the probability. The density of ln |T| is log-concave, so ln
/// P(|T| > eᵘ) is concave in u. The search therefore converges from any start.
fn reached_outside(outside: f64, freedom: f64) -> f64 {
    // Wallace, "Bounds on normal approximations to Student's and the chi-square distributions",
    // Annals of Mathematical Statistics 30 (1959), 1121–1130.
    let normal = SQRT_2 * erfc_inv(outside) * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    let square = normal * normal / freedom;
    let grown = if square < 700.0 { square.exp_m1().ln() } else { square };
    solved(((freedom.ln() + grown) / 2.0).min(FARTHEST_START), |t| {
        let reached = parts(t, freedom).1;
        (reached / outside).ln() * reached / slope(t, freedom)
    })
}

/// Returns t with P(|T| ≤ t) = `within`, a probability of at most 1/2. Newton's method converges here too, because ln
/// P(|T| ≤ eᵘ) is concave in u.
fn reached_within(within: f64, freedom: f64) -> f64 {
    if within == 0.0 {
        return 0.0;
    }
    // The density is highest at 0. A lower bound of t therefore results from assuming that density everywhere.
    solved((within / 2.0).ln() - ln_density(0.0, freedom), |t| {
        let reached = parts(t, freedom).0;
        (within / reached).ln() * reached / slope(t, freedom)
    })
}

/// Runs Newton's method on ln t and returns t. The search starts at ln t = `start`. `step` returns the step at t.
fn solved(start: f64, step: impl Fn(f64) -> f64) -> f64 {
    let mut log = start;
    for _ in 0..MAX_STEPS {
        let step = step(log.exp());
        if step.is_nan() {
            break; // t is beyond the largest number
        }
        log += step;
        if step.abs() < LAST_STEP {
            break;
        }
    }
    log.exp()
}

/// Returns P(|T| ≤ t) and P(|T| > t) for t ≥ 0.
fn parts(t: f64, freedom: f64) -> (f64, f64) {
    let ratio = ratio(t, freedom);
    if freedom >= MANY {
        let part = normal_deviate(ratio, freedom) / SQRT_2;
        (erf(part), erfc(part))
    } else if t * t <= MIDDLE {
        let within = checked_beta_reg(0.5, freedom / 2.0, 1.0 / (1.0 + 1.0 / ratio)).unwrap_or(f64::NAN);
        (within, 1.0 - within)
    } else {
        let outside = checked_beta_reg(freedom / 2.0, 0.5, 1.0 / (1.0 + ratio)).unwrap_or(f64::NAN);
        (1.0 - outside, outside)
    }
}

/// Returns t²/ν, computed so that t² does not overflow.
fn ratio(t: f64, freedom: f64) -> f64 {
    let root = t / freedom.sqrt();
    root * root
}

/// Returns z so that P(|Z| ≤ z) = P(|T| ≤ t) for a standard normal Z. The formula is from Hill, "Algorithm 395:
/// Student's t-distribution", Communications of the ACM 13 (1970), 617–619.
fn normal_deviate(ratio: f64, freedom: f64) -> f64 {
    let a = freedom - 0.5;
    let b = 48.0 * a * a;
    let y = a * ratio.ln_1p();
    let third = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b);
    ((third + y + 3.0) / b + 1.0) * y.sqrt()
}

/// Returns the derivative of P(|T| ≤ t) with respect to ln t.
fn slope(t: f64, freedom: f64) -> f64 {
    (2.0_f64.ln() + t.ln() + ln_density(t, freedom)).exp()
}

fn ln_density(t: f64, freedom: f64) -> f64 {
    ln_gamma((freedom + 1.0) / 2.0)
        - ln_gamma(freedom / 2.0)
        - (freedom * PI).ln() / 2.0
        - (freedom + 1.0) / 2.0 * ratio(t, freedom).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, known: f64) -> bool {
        (found - known).abs() <= 1e-12 * known.abs()
    }

    /// The quantile has closed forms for 1 and 2 degrees of freedom: tan(π (p − 1/2)) and (2p − 1)·√(2 / (4p (1 − p))).
    #[test]
    fn the_quantile_is_that_of_the_closed_forms() {
        for p in [1e-12, 1e-3, 0.2, 0.25, 0.4, 0.499, 0.6, 0.75, 0.975, 0.999] {
            assert!(near(quantile(p, 1.0), -1.0 / (PI * p).tan()), "{p}");
            assert!(near(quantile(p, 2.0), (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt()), "{p}");
        }
        assert_eq!(quantile(0.5, 7.0), 0.0);
    }

    #[test]
    fn the_tail_at_a_quantile_is_what_was_asked_for() {
        for freedom in [0.5, 1.0, 3.7, 30.0, 1e3, 1e6] {
            for p in [1e-15, 1e-6, 0.01, 0.2499, 0.2501, 0.4] {
                let found = above(-quantile(p, freedom), freedom);
                assert!((found / p - 1.0).abs() < 1e-9, "{freedom} {p}: {found}");
            }
        }
    }

    #[test]
    fn what_has_no_quantile_is_not_a_number() {
        for (p, freedom) in [(0.0, 3.0), (1.0, 3.0), (0.3, 0.0), (f64::NAN, 3.0), (0.3, f64::NAN)] {
            assert!(quantile(p, freedom).is_nan());
        }
        assert!(above(1.0, 0.0).is_nan() && above(1.0, f64::NAN).is_nan());
        assert_eq!(above(f64::INFINITY, 3.0), 0.0);
    }
}
