//! The Mandelbrot set. For each point, the result is the number of steps of z → z² + c until |z| > 2, or a limit.
//!
//! Rows alternate between floating-point and fixed-point arithmetic. Adjacent rows need about the same number of steps,
//! and a step has the same operations in both. About half of the work is therefore floating-point and half integer.

#[cfg(test)]
mod tests;

use crate::complex::{Complex, Fixed, Number};

/// Left edge of the picture in the complex plane. The next constants are the right, lower and upper edge.
const LEFT: f64 = -2.0;
const RIGHT: f64 = 1.0;
const LOWER: f64 = -1.0;
const UPPER: f64 = 1.0;
const ESCAPED: f64 = 4.0;
/// Number of points computed in parallel. The points are in two vectors of four 64-bit numbers, so that the processor
/// can work on one vector while it waits for the other.
const LANES: usize = 8;
/// Number of steps between two checks whether a point of the group is still within the circle.
const STRIDE: u32 = 8;
/// Number of steps between two checks whether the work is over. These steps take about 10 ms if no point leaves early.
const MAX_STEPS: usize = 1 << 22;
/// Number of arithmetic operations of one step: 3 multiplications (the squares are shared), 5 additions, 1 comparison.
pub const OPERATIONS_PER_STEP: u64 = 9;

/// A way of computing the points of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// A single point at a time.
    Scalar,
    /// Several points in parallel, which the compiler puts into vector registers.
    Vector,
}

/// Size of the picture, and the maximum number of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub width: usize,
    pub height: usize,
    pub limit: u32,
}

/// Numbers of steps by kind of arithmetic.
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

/// Fills `steps` like `draw`, but stops when the work is over. Returns whether the picture is complete.
pub fn draw_unless(view: View, variant: Variant, steps: &mut [u32], over: &dyn Fn() -> bool) -> bool {
    assert_eq!(steps.len(), view.width * view.height);
    let mut looks = Looks::new(view.limit, over);
    match variant {
        Variant::Scalar => scalar(view, steps, &mut looks),
        Variant::Vector => vector(view, steps, &mut looks),
    }
}

/// Checks whether the work is over. In an ordinary picture, there is a check every few rows, so the checks cost little.
/// If a point may take a million steps, there is a check every few points.
struct Looks<'a> {
    over: &'a dyn Fn() -> bool,
    /// Number of points between two checks.
    apart: usize,
    left: usize,
}

impl<'a> Looks<'a> {
    fn new(limit: u32, over: &'a dyn Fn() -> bool) -> Self {
        let groups = MAX_STEPS / limit.max(1) as usize / LANES;
        Self { over, apart: groups.max(1) * LANES, left: 0 }
    }

    /// Returns whether the work is over. Must be called before each group of `points` points is computed. `points` must
    /// not exceed `apart`.
    fn ends(&mut self, points: usize) -> bool {
        if let Some(left) = self.left.checked_sub(points) {
            self.left = left;
            return false;
        }
        self.left = self.apart - points;
        (self.over)()
    }
}

/// Returns the instruction set that the vector variant uses on this processor.
pub fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "avx2";
    }
    "baseline"
}

/// Computes a checksum with FNV-1a. Each of eight hashes covers every eighth point, and the checksum is the hash of
/// these eight. The eight are computed in parallel, so that they take only 1% of the time of a picture. Source of the
/// 64-bit offset basis and prime: Fowler, Noll, Vo.
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

/// Sums the steps of the floating-point rows and of the fixed-point rows.
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

/// Computes the points of a row from column `first` on.
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
        // SAFETY: the processor has these instructions.
        return unsafe { vector_avx2(view, steps, looks) };
    }
    vector_rows(view, steps, looks)
}

/// Allows only integer and AVX2 instructions, and no fused ones, so that every variant gives exactly the same picture.
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

/// Computes the points of a row from column `first` on.
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

/// Counts the steps of several points in parallel, like `escape` for one point. Points that have left the circle wait
/// for the others.
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
