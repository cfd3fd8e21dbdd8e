//! Complex numbers with floating-point or fixed-point parts. The formulas are the same for both, but one uses the
//! floating-point units of a processor and the other the integer units.

use std::ops::{Add, Mul, Sub};

/// The type of the parts of a complex number.
pub trait Number: Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    fn from_f64(value: f64) -> Self;
    /// Whether this squared magnitude is at most `limit`. The limit is the square of a radius that the orbit of a point
    /// in the set never exceeds.
    fn within(self, limit: Self) -> bool;
}

impl Number for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn within(self, limit: Self) -> bool {
        self <= limit
    }
}

/// A fixed-point number with 28 fraction bits, which needs only integer arithmetic.
///
/// An orbit ends at its first point outside the circle of radius 2. Real and imaginary parts therefore stay below 6.
/// Therefore a factor fits into 32 bits, and a product into 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Fixed(i64);

const FRACTION_BITS: u32 = 28;

impl Number for Fixed {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Self((value * f64::from(1_u32 << FRACTION_BITS)).round() as i64)
    }

    #[inline(always)]
    fn within(self, limit: Self) -> bool {
        self.0 <= limit.0
    }
}

impl Add for Fixed {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl Sub for Fixed {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl Mul for Fixed {
    type Output = Self;

    #[inline(always)]
    #[allow(clippy::suspicious_arithmetic_impl)] // the shift removes one of the two sets of fraction bits
    fn mul(self, other: Self) -> Self {
        // Vector units multiply 32 bits to 64 in one step (vpmuldq). The factors are known to fit.
        Self(i64::from(self.0 as i32).wrapping_mul(i64::from(other.0 as i32)) >> FRACTION_BITS)
    }
}

/// The number `re + im·i`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Complex<N> {
    pub re: N,
    pub im: N,
}

impl<N: Number> Complex<N> {
    #[inline(always)]
    pub fn from_f64(re: f64, im: f64) -> Self {
        Self { re: N::from_f64(re), im: N::from_f64(im) }
    }

    /// Returns the squared magnitude, with two multiplications and one addition.
    #[inline(always)]
    pub fn norm(self) -> N {
        self.re * self.re + self.im * self.im
    }

    /// Returns the square, with three multiplications (the squares are shared with `norm`) and two additions.
    #[inline(always)]
    pub fn square(self) -> Self {
        let product = self.re * self.im;
        Self { re: self.re * self.re - self.im * self.im, im: product + product }
    }
}

impl<N: Number> Add for Complex<N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_follows_floating_point_to_its_last_bits() {
        for (a, b) in [(1.5, -0.75), (-2.0, 2.0), (0.001, 3.999), (-1.25, -1.25)] {
            let product = Fixed::from_f64(a) * Fixed::from_f64(b);
            assert!((product.0 - Fixed::from_f64(a * b).0).abs() <= 4, "{a} × {b}");
        }
    }

    #[test]
    fn a_square_is_the_number_times_itself() {
        let z = Complex::<f64>::from_f64(0.5, -1.5);
        assert_eq!(z.square(), Complex { re: 0.25 - 2.25, im: -1.5 });
        assert_eq!(z.norm(), 2.5);
    }
}
