//! The Mandelbrot set: for each point the steps of z → z² + c until |z| > 2, or a limit.
//!
//! Rows are computed by turns in floating point and in fixed point: neighbours need nearly the same steps, and a step
//! is the same arithmetic in both, so that about half of the work is floating point and half integer.

use crate::complex::{Complex, Fixed, Number};

/// Left, right, lower and upper edge of the picture in the complex plane.
const LEFT: f64 = -2.0;
const RIGHT: f64 = 1.0;
const LOWER: f64 = -1.0;
const UPPER: f64 = 1.0;
const ESCAPED: f64 = 4.0;
/// Points computed side by side: two vectors of four 64-bit numbers, so that one's steps hide the other's latency.
const LANES: usize = 8;
/// Steps between two looks whether any point of the group is still within the circle.
const STRIDE: u32 = 8;
/// Steps between two looks whether the work is over, about 10 ms where no point leaves early.
const MOST_STEPS: usize = 1 << 22;
/// Arithmetic of one step in our complex numbers: 3 products (the squares are shared), 5 sums, 1 comparison.
pub const OPERATIONS_PER_STEP: u64 = 9;

/// How the points of a row are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// One point after the other.
    Scalar,
    /// Several points side by side, for the compiler to put into vector registers.
    Vector,
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub width: usize,
    pub height: usize,
    pub limit: u32,
}

/// Steps by kind of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    pub float: u64,
    pub integer: u64,
}

impl View {
    fn re(&self, column: usize) -> f64 {
        LEFT + (RIGHT - LEFT) * (column as f64 + 0.5) / self.width as f64
    }

    fn im(&self, row: usize) -> f64 {
        UPPER - (UPPER - LOWER) * (row as f64 + 0.5) / self.height as f64
    }
}

/// Fills `steps` (width × height, row by row) with the steps of each point.
pub fn draw(view: View, variant: Variant, steps: &mut [u32]) {
    draw_unless(view, variant, steps, &|| false);
}

/// As `draw`, given up when the work is over; whether the picture is whole.
pub fn draw_unless(view: View, variant: Variant, steps: &mut [u32], over: &dyn Fn() -> bool) -> bool {
    assert_eq!(steps.len(), view.width * view.height);
    let mut looks = Looks::new(view.limit, over);
    match variant {
        Variant::Scalar => scalar(view, steps, &mut looks),
        Variant::Vector => vector(view, steps, &mut looks),
    }
}

/// Asks whether the work is over: every few rows of a common picture, so that it costs nothing, and every few points
/// where each may take a million steps.
struct Looks<'a> {
    over: &'a dyn Fn() -> bool,
    /// Points between two looks.
    apart: usize,
    left: usize,
}

impl<'a> Looks<'a> {
    fn new(limit: u32, over: &'a dyn Fn() -> bool) -> Self {
        let groups = MOST_STEPS / limit.max(1) as usize / LANES;
        Self { over, apart: groups.max(1) * LANES, left: 0 }
    }

    /// Before so many points, at most `apart`.
    fn ends(&mut self, points: usize) -> bool {
        if let Some(left) = self.left.checked_sub(points) {
            self.left = left;
            return false;
        }
        self.left = self.apart - points;
        (self.over)()
    }
}

/// The instructions that the vector variant uses on this processor.
pub fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "avx2";
    }
    "baseline"
}

/// FNV-1a (Fowler, Noll, Vo: the 64-bit offset basis and prime) over every eighth point, eight times, and over those
/// eight: side by side they take a hundredth of the time of a picture.
pub fn checksum(steps: &[u32]) -> u64 {
    let mut hashes = [OFFSET_BASIS; LANES];
    let groups = steps.chunks_exact(LANES);
    let rest = groups.remainder();
    for group in groups {
        for (hash, &one) in hashes.iter_mut().zip(group) {
            *hash = hashed(*hash, u64::from(one));
        }
    }
    let tail = rest.iter().map(|&one| u64::from(one));
    hashes.into_iter().chain(tail).fold(OFFSET_BASIS, hashed)
}

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

#[inline(always)]
fn hashed(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Steps of the floating-point rows and of the fixed-point rows.
pub fn counted(view: View, steps: &[u32]) -> Steps {
    let mut found = Steps::default();
    for (row, line) in steps.chunks(view.width).enumerate() {
        let sum: u64 = line.iter().map(|&one| u64::from(one)).sum();
        if is_float(row) { found.float += sum } else { found.integer += sum }
    }
    found
}

fn is_float(row: usize) -> bool {
    row.is_multiple_of(2)
}

fn scalar(view: View, steps: &mut [u32], looks: &mut Looks<'_>) -> bool {
    for (row, line) in steps.chunks_mut(view.width).enumerate() {
        for (piece, points) in line.chunks_mut(looks.apart).enumerate() {
            if looks.ends(points.len()) {
                return false;
            }
            let first = piece * looks.apart;
            if is_float(row) {
                scalar_row::<f64>(view, row, first, points);
            } else {
                scalar_row::<Fixed>(view, row, first, points);
            }
        }
    }
    true
}

/// The points of a row from column `first` on.
fn scalar_row<N: Number>(view: View, row: usize, first: usize, points: &mut [u32]) {
    for (place, found) in points.iter_mut().enumerate() {
        *found = escape(Complex::<N>::from_f64(view.re(first + place), view.im(row)), view.limit);
    }
}

#[inline(always)]
fn escape<N: Number>(c: Complex<N>, limit: u32) -> u32 {
    let circle = N::from_f64(ESCAPED);
    let mut z = Complex::<N>::from_f64(0.0, 0.0);
    let mut step = 0;
    while step < limit && z.norm().within(circle) {
        z = z.square() + c;
        step += 1;
    }
    step
}

fn vector(view: View, steps: &mut [u32], looks: &mut Looks<'_>) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        return unsafe { vector_avx2(view, steps, looks) };
    }
    vector_rows(view, steps, looks)
}

/// Only integer and AVX2 instructions are allowed, not fused ones: every variant gives the same picture to the bit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn vector_avx2(view: View, steps: &mut [u32], looks: &mut Looks<'_>) -> bool {
    vector_rows(view, steps, looks)
}

#[inline(always)]
fn vector_rows(view: View, steps: &mut [u32], looks: &mut Looks<'_>) -> bool {
    for (row, line) in steps.chunks_mut(view.width).enumerate() {
        for (piece, points) in line.chunks_mut(looks.apart).enumerate() {
            if looks.ends(points.len()) {
                return false;
            }
            let first = piece * looks.apart;
            if is_float(row) {
                vector_row::<f64>(view, row, first, points);
            } else {
                vector_row::<Fixed>(view, row, first, points);
            }
        }
    }
    true
}

/// The points of a row from column `first` on.
#[inline(always)]
fn vector_row<N: Number>(view: View, row: usize, first: usize, points: &mut [u32]) {
    let im = N::from_f64(view.im(row));
    for (group, found) in points.chunks_mut(LANES).enumerate() {
        let mut re = [N::from_f64(0.0); LANES];
        for (lane, one) in re.iter_mut().enumerate() {
            *one = N::from_f64(view.re(first + group * LANES + lane));
        }
        let counts = escape_all(&re, im, view.limit);
        for (one, count) in found.iter_mut().zip(counts) {
            *one = count as u32;
        }
    }
}

/// As `escape`, for several points at once: those that have left stay where they are until all have left.
#[inline(always)]
fn escape_all<N: Number>(c_re: &[N; LANES], c_im: N, limit: u32) -> [u64; LANES] {
    let circle = N::from_f64(ESCAPED);
    let zero = N::from_f64(0.0);
    let (mut re, mut im, mut counts) = ([zero; LANES], [zero; LANES], [0_u64; LANES]);
    let mut done = 0;
    while done < limit {
        let most = STRIDE.min(limit - done);
        let before = counts;
        for _ in 0..most {
            for lane in 0..LANES {
                let z = Complex { re: re[lane], im: im[lane] };
                let inside = z.norm().within(circle);
                let next = z.square() + Complex { re: c_re[lane], im: c_im };
                re[lane] = if inside { next.re } else { z.re };
                im[lane] = if inside { next.im } else { z.im };
                counts[lane] += u64::from(inside);
            }
        }
        if counts == before {
            break;
        }
        done += most;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: View = View { width: 321, height: 200, limit: 256 };

    fn picture(variant: Variant) -> Vec<u32> {
        let mut steps = vec![0; VIEW.width * VIEW.height];
        draw(VIEW, variant, &mut steps);
        steps
    }

    #[test]
    fn both_variants_draw_the_same_picture() {
        assert_eq!(picture(Variant::Scalar), picture(Variant::Vector));
    }

    #[test]
    fn a_picture_in_pieces_is_the_same() {
        let view = View { width: 20, height: 8, limit: 300_000 };
        assert!(Looks::new(view.limit, &|| false).apart < view.width);
        let (mut scalar, mut vector) = (vec![0; 160], vec![0; 160]);
        draw(view, Variant::Scalar, &mut scalar);
        draw(view, Variant::Vector, &mut vector);
        assert_eq!(scalar, vector);
        let at =
            |row: usize, column: usize| escape(Complex::<f64>::from_f64(view.re(column), view.im(row)), view.limit);
        for column in 0..view.width {
            assert_eq!(scalar[4 * view.width + column], at(4, column), "column {column}");
        }
    }

    #[test]
    fn a_picture_is_given_up_when_the_work_is_over() {
        let view = View { width: 20_000, height: 100, limit: 1_000_000 };
        let mut steps = vec![0; view.width * view.height];
        for variant in [Variant::Scalar, Variant::Vector] {
            let asked = std::cell::Cell::new(0);
            let over = || {
                asked.set(asked.get() + 1);
                asked.get() == 3
            };
            assert!(!draw_unless(view, variant, &mut steps, &over));
        }
    }

    #[test]
    fn a_common_picture_asks_a_few_times_and_a_long_one_often() {
        let asked = |view: View| {
            let count = std::cell::Cell::new(0);
            let mut steps = vec![0; view.width * view.height];
            draw_unless(view, Variant::Scalar, &mut steps, &|| {
                count.set(count.get() + 1);
                false
            });
            count.get()
        };
        assert!((5..20).contains(&asked(View { width: 480, height: 320, limit: 256 })));
        assert_eq!(asked(View { width: 16, height: 4, limit: 1_000_000 }), 8);
    }

    #[test]
    fn the_picture_is_the_set() {
        let steps = picture(Variant::Scalar);
        let at = |re: f64, im: f64| {
            let column = ((re - LEFT) / (RIGHT - LEFT) * VIEW.width as f64) as usize;
            let row = ((UPPER - im) / (UPPER - LOWER) * VIEW.height as f64) as usize;
            steps[row * VIEW.width + column]
        };
        for inside in [(-0.5, 0.1), (-1.0, 0.05), (0.1, 0.2), (-1.3, 0.01)] {
            assert_eq!(at(inside.0, inside.1), VIEW.limit, "{inside:?}");
        }
        for outside in [(0.9, 0.9), (-1.9, 0.8), (0.5, -0.5)] {
            assert!(at(outside.0, outside.1) < 10, "{outside:?}");
        }
    }

    #[test]
    fn every_point_agrees_with_a_plain_loop_over_doubles() {
        let steps = picture(Variant::Vector);
        let mut differing = 0;
        for row in 0..VIEW.height {
            for column in 0..VIEW.width {
                let (c_re, c_im) = (VIEW.re(column), VIEW.im(row));
                let (mut re, mut im, mut count) = (0.0_f64, 0.0_f64, 0);
                while count < VIEW.limit && re * re + im * im <= 4.0 {
                    (re, im) = (re * re - im * im + c_re, re * im + re * im + c_im);
                    count += 1;
                }
                let found = steps[row * VIEW.width + column];
                if is_float(row) {
                    assert_eq!(found, count, "row {row} column {column}");
                } else {
                    // 28 bits of fraction part from 52 where an orbit is chaotic, right at the edge of the set.
                    differing += usize::from(found != count);
                }
            }
        }
        assert!(differing < VIEW.width * VIEW.height / 20, "{differing} points");
    }

    #[test]
    fn about_half_of_the_arithmetic_is_integer() {
        let steps = counted(VIEW, &picture(Variant::Scalar));
        let share = steps.float as f64 / (steps.float + steps.integer) as f64;
        assert!((0.48..0.52).contains(&share), "{share}");
    }

    #[test]
    fn a_step_is_as_many_operations_as_is_said() {
        use std::cell::Cell;
        use std::ops::{Add, Mul, Sub};
        thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
        fn tick() {
            COUNT.with(|count| count.set(count.get() + 1));
        }
        #[derive(Clone, Copy)]
        struct Counting(f64);
        impl Add for Counting {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                tick();
                Self(self.0 + other.0)
            }
        }
        impl Sub for Counting {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                tick();
                Self(self.0 - other.0)
            }
        }
        impl Mul for Counting {
            type Output = Self;
            fn mul(self, other: Self) -> Self {
                tick();
                Self(self.0 * other.0)
            }
        }
        impl Number for Counting {
            fn from_f64(value: f64) -> Self {
                Self(value)
            }
            fn within(self, limit: Self) -> bool {
                tick();
                self.0 <= limit.0
            }
        }
        let steps = escape(Complex::<Counting>::from_f64(-0.5, 0.0), 100);
        // Written down, a step is 11: the compiler computes the two squares once for the magnitude and the square.
        assert_eq!(COUNT.with(Cell::get), u64::from(steps) * (OPERATIONS_PER_STEP + 2));
    }

    #[test]
    fn a_wrong_point_changes_the_checksum() {
        let mut steps = picture(Variant::Scalar);
        let right = checksum(&steps);
        steps[777] ^= 1;
        assert_ne!(checksum(&steps), right);
    }
}
