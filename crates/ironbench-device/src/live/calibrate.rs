//! Measures the I/O path overhead on this machine. The I/Os are direct and go through the block device, like those of a
//! file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ironbench_core::Error;
use ironbench_core::measure::threads::{Gate, ThreadSettings, run_with_leader};

use super::overhead_tracker::BlockStats;
use crate::Op;

/// Alignment of addresses, lengths and offsets that suits every kind of direct I/O (open(2), O_DIRECT).
const ALIGNMENT: usize = 4096;
/// Number of groups into which the measured I/Os are divided.
const GROUPS: usize = 9;
/// Number of slices into which the measurement of the rate is divided.
const SLICES: u32 = 3;

/// A block of memory with the alignment of direct I/O.
#[repr(C, align(4096))]
struct Page([u8; ALIGNMENT]);

/// A range of a block device that may be overwritten.
#[derive(Debug)]
pub struct BlockDevice {
    file: File,
    length: u64,
}

impl BlockDevice {
    pub fn open(path: &str, length: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok(Self { file, length })
    }

    /// Measures the mean time in nanoseconds of I/Os at scattered offsets, issued one after the other. The I/Os are
    /// divided into groups. The mean of a group is computed without its slowest tenth, and the result is the median of
    /// these means. Other load on the machine therefore has no effect unless it lasts for most of the time. This is a
    /// median of means: Lugosi and Mendelson, Mean estimation and regression under heavy-tailed distributions, 2019.
    pub fn mean_ns(&self, op: Op, size: usize, count: usize) -> io::Result<f64> {
        let mut latencies = self.latencies(op, size, count + count / 8)?;
        Ok(median_of_means(&mut latencies[count / 8..]))
    }

    /// Measures the mean time of 4 KiB reads like `mean_ns`. Also returns how much of this time the reads spend before
    /// and after the block device. This is a plain mean, because the kernel reports only a sum (in `stat`). The value
    /// is None if the kernel's statistics do not cover exactly these reads.
    pub fn reads_ns(&self, stat: Option<&Path>, count: usize) -> io::Result<(f64, Option<f64>)> {
        let stats = stat.map(Path::to_owned).into_iter().collect::<Vec<_>>();
        let before = BlockStats::read(&stats, Op::Read).ok();
        let mut latencies = self.latencies(Op::Read, ALIGNMENT, count)?;
        let sum_ns: f64 = latencies.iter().sum();
        let seen = before.and_then(|before| Some(BlockStats::read(&stats, Op::Read).ok()?.since(before)));
        let seen = seen.filter(|seen| seen.count == count as u64);
        let beyond_ns = seen.map(|seen| ((sum_ns - seen.took_ns() as f64) / count as f64).max(0.0));
        Ok((median_of_means(&mut latencies), beyond_ns))
    }

    fn latencies(&self, op: Op, size: usize, count: usize) -> io::Result<Vec<f64>> {
        let mut pages = pages(size);
        let one = |number| {
            let started = Instant::now();
            self.issue(op, &mut pages, number as u64)?;
            Ok(started.elapsed().as_nanos() as f64)
        };
        (0..count).map(one).collect()
    }

    /// Measures 4 KiB reads per second at this queue depth. The result is the best of `SLICES` slices, because other
    /// load only reduces the rate.
    pub fn rate(&self, depth: usize, span: Duration) -> io::Result<f64> {
        let done = AtomicU64::new(0);
        let gate = Gate::<()>::default();
        let read = |first: usize| {
            let mut pages = pages(ALIGNMENT);
            let mut number = (first as u64) << 32;
            while !gate.is_stopped() {
                self.issue(Op::Read, &mut pages, number)?;
                number += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            io::Result::Ok(())
        };
        let failed = |error: io::Error| Error::failure("calibration", error.to_string());
        let slice = || {
            let (before, started) = (done.load(Ordering::Relaxed), Instant::now());
            thread::sleep(span / SLICES);
            (done.load(Ordering::Relaxed) - before) as f64 / started.elapsed().as_secs_f64()
        };
        let read = &read;
        let readers = (0..depth).map(|first| (ThreadSettings::new("device-read"), move || read(first).map_err(failed)));
        let best = || Ok((0..SLICES).map(|_| slice()).fold(0.0, f64::max));
        run_with_leader(&gate, readers, best).map(|(best, _)| best).map_err(|error| io::Error::other(error.cause))
    }

    fn issue(&self, op: Op, pages: &mut [Page], number: u64) -> io::Result<()> {
        let bytes = bytes(pages);
        let places = (self.length / bytes.len() as u64).max(1);
        // Fibonacci hashing returns scattered offsets that differ for different numbers (Knuth, volume 3, section 6.4).
        let place = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % places;
        let offset = place * bytes.len() as u64;
        match op {
            Op::Read => self.file.read_exact_at(bytes, offset),
            Op::Write => self.file.write_all_at(bytes, offset),
            Op::Flush => self.file.sync_data(),
        }
    }
}

fn median_of_means(latencies: &mut [f64]) -> f64 {
    let mean = |group: &mut [f64]| {
        group.sort_by(f64::total_cmp);
        let counted = &group[..(group.len() * 9).div_ceil(10)];
        counted.iter().sum::<f64>() / counted.len() as f64
    };
    let mut means: Vec<_> = latencies.chunks_mut(latencies.len().div_ceil(GROUPS).max(1)).map(mean).collect();
    means.sort_by(f64::total_cmp);
    means.get(means.len() / 2).copied().unwrap_or(0.0)
}

fn pages(size: usize) -> Vec<Page> {
    (0..size / ALIGNMENT).map(|_| Page([0; ALIGNMENT])).collect()
}

fn bytes(pages: &mut [Page]) -> &mut [u8] {
    // SAFETY: pages are contiguous plain bytes without padding.
    unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), pages.len() * ALIGNMENT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_work_during_a_third_of_the_time_does_not_count() {
        let mut quiet: Vec<_> = (0..90).map(|number| f64::from(number % 10)).collect();
        assert_eq!(median_of_means(&mut quiet), 4.0); // of 0 to 8
        quiet[..30].fill(1_000.0);
        assert_eq!(median_of_means(&mut quiet), 4.0);
    }

    #[test]
    fn few_are_enough() {
        assert_eq!(median_of_means(&mut [7.0]), 7.0);
        assert_eq!(median_of_means(&mut [1.0, 2.0, 9.0]), 2.0);
    }
}
