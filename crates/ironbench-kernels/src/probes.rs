//! Memory measurements for one thread: bandwidth of long copies and sums, and latency of dependent reads.
//!
//! The operations copy (c = a) and triad (a = b + s·c) are the same as in STREAM. Source: McCalpin, "Memory Bandwidth
//! and Machine Balance in Current High Performance Computers", 1995. As in STREAM, only bytes that the program itself
//! reads and writes count.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ironbench_core::Result;

use crate::region::{Huge, Region};

/// Size of the arrays for bandwidth. The size is at least four times the last-level cache of common processors, so that
/// nothing stays in the cache.
pub const BANDWIDTH_BYTES: usize = 384 << 20;
pub const LATENCY_BYTES: usize = 256 << 20;
const LINE_WORDS: usize = 8;
/// The clock is read once for this many reads.
const CHASED: usize = 1 << 16;

/// Bytes per second of copy and of triad. As in STREAM, the best of several passes counts.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct Bandwidth {
    pub copy: f64,
    pub triad: f64,
}

/// Measures bandwidth for about `time`, with three arrays of `bytes` in total.
pub fn bandwidth(bytes: usize, huge: Huge, time: Duration) -> Result<Bandwidth> {
    let count = bytes / 3 / 8;
    let mut arrays = [Region::new(count * 8, huge)?, Region::new(count * 8, huge)?, Region::new(count * 8, huge)?];
    let [a, b, c] = &mut arrays;
    let (a, b, c) = (doubles(a), doubles(b), doubles(c));
    a.fill(1.0);
    b.fill(2.0);
    c.fill(0.0);
    let mut found = Bandwidth::default();
    let began = Instant::now();
    while began.elapsed() < time || found.triad == 0.0 {
        found.copy = found.copy.max(passed(16 * count, || copy(c, a)));
        found.triad = found.triad.max(passed(24 * count, || triad(a, b, c, black_box(3.0))));
    }
    black_box(&arrays);
    Ok(found)
}

fn passed(bytes: usize, pass: impl FnOnce()) -> f64 {
    let began = Instant::now();
    pass();
    bytes as f64 / began.elapsed().as_secs_f64()
}

#[inline(never)]
fn copy(to: &mut [f64], from: &[f64]) {
    to.copy_from_slice(from);
}

#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64], scalar: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + scalar * c;
    }
}

/// Returns the words of a region as doubles. Every bit pattern is a valid double.
fn doubles(region: &mut Region) -> &mut [f64] {
    let words = region.words_mut();
    // SAFETY: both types have the same size and alignment, and the region is exclusively borrowed.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) }
}

/// Measures the time of a dependent read in seconds. The reads follow a random cycle through all cache lines. Each read
/// returns the address of the next one.
pub fn latency(bytes: usize, huge: Huge, seed: u64, time: Duration) -> Result<f64> {
    let mut region = Region::new(bytes, huge)?;
    cycle(region.words_mut(), seed);
    let words = region.words();
    let mut at = chase(words, 0, words.len() / LINE_WORDS / 4);
    let (began, mut reads) = (Instant::now(), 0);
    while began.elapsed() < time {
        at = chase(words, at, CHASED);
        reads += CHASED;
    }
    black_box(at);
    Ok(began.elapsed().as_secs_f64() / reads as f64)
}

#[inline(never)]
fn chase(words: &[u64], mut at: usize, reads: usize) -> usize {
    for _ in 0..reads {
        at = words[at] as usize;
    }
    at
}

/// Creates a random cycle through the first words of all cache lines. Prefetchers cannot predict the next line. Source:
/// Sattolo, "An algorithm to generate a random cyclic permutation", 1986.
fn cycle(words: &mut [u64], seed: u64) {
    let lines = words.len() / LINE_WORDS;
    for line in 0..lines {
        words[line * LINE_WORDS] = (line * LINE_WORDS) as u64;
    }
    let mut state = seed | 1;
    for line in (1..lines).rev() {
        // xorshift64 (Marsaglia, 2003) is good enough for a shuffle.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words.swap(line * LINE_WORDS, (state % line as u64) as usize * LINE_WORDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chase_visits_every_line_once_before_it_comes_back() {
        let mut words = vec![0; 1000 * LINE_WORDS];
        cycle(&mut words, 9);
        let mut seen = vec![false; 1000];
        let mut at = 0;
        for _ in 0..1000 {
            assert!(!seen[at / LINE_WORDS]);
            seen[at / LINE_WORDS] = true;
            at = words[at] as usize;
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn triad_and_copy_compute_what_they_say() {
        let (mut a, b, c) = (vec![0.0; 100], vec![2.0; 100], vec![5.0; 100]);
        triad(&mut a, &b, &c, 3.0);
        assert!(a.iter().all(|&one| one == 17.0));
        copy(&mut a, &c);
        assert_eq!(a, c);
    }

    #[test]
    fn probes_give_finite_figures_above_zero() {
        let found = bandwidth(3 << 20, Huge::Default, Duration::from_millis(5)).unwrap();
        assert!(found.copy > 0.0 && found.triad > 0.0 && found.triad.is_finite());
        let read = latency(1 << 20, Huge::Default, 5, Duration::from_millis(5)).unwrap();
        assert!(read > 0.0 && read < 1e-3);
    }
}
