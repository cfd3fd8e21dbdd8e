//! A volume in a cloud: two token buckets, one of operations and one of bytes, on top of a latency.
//!
//! What counts as an operation is as Amazon documents it for its SSD volumes (EBS user guide, "I/O characteristics and
//! monitoring"): at most `io_size` bytes; a larger I/O counts as several, small sequential ones count together as one.

use super::line::{PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::figures::VolumeFigures;

#[derive(Debug, Clone)]
pub struct Volume {
    capacity: u64,
    operations: Bucket,
    bytes: Bucket,
    /// Nanoseconds per operation.
    operation: f64,
    byte: PerByte,
    io_size: u64,
    read_latency: u64,
    write_latency: u64,
    run: Run,
    latest: u64,
}

/// Sequential I/Os that count as one so far.
#[derive(Debug, Clone, Default)]
struct Run {
    op: Option<Op>,
    end: u64,
    bytes: u64,
}

/// A token bucket by its theoretical arrival time (the generic cell rate algorithm, ITU-T I.371, annex A).
#[derive(Debug, Clone, Default)]
struct Bucket {
    /// When the bucket would be full again, in nanoseconds with a fraction.
    full: f64,
    burst: f64,
}

impl Bucket {
    fn pass(&mut self, now: u64, cost: f64) -> u64 {
        self.full = self.full.max(now as f64) + cost;
        (self.full - self.burst).max(now as f64).ceil() as u64
    }
}

impl Volume {
    pub fn new(figures: &VolumeFigures, capacity: u64) -> Self {
        let bucket = Bucket { full: 0.0, burst: figures.burst * 1e9 };
        Self {
            capacity,
            operations: bucket.clone(),
            bytes: bucket,
            operation: 1e9 / figures.iops,
            byte: PerByte::of_rate(figures.rate),
            io_size: figures.io_size as u64,
            read_latency: nanoseconds(figures.read_latency),
            write_latency: nanoseconds(figures.write_latency),
            run: Run::default(),
            latest: 0,
        }
    }

    /// How many operations this I/O counts as; 0 when it joins the sequential ones before it.
    fn counted(&mut self, op: Op, offset: u64, length: u64) -> u64 {
        let sequential = self.run.op == Some(op) && self.run.end == offset;
        let before = if sequential { self.run.bytes } else { 0 };
        let after = before + length;
        let count = after.div_ceil(self.io_size) - before.div_ceil(self.io_size);
        self.run = Run { op: Some(op), end: offset + length, bytes: after };
        count
    }
}

impl Device for Volume {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        let latency = match op {
            // What was acknowledged is stored: a flush waits for that and has nothing to write.
            Op::Flush => return self.latest.max(now) + self.write_latency,
            Op::Read => self.read_latency,
            Op::Write => self.write_latency,
        };
        let count = self.counted(op, offset, u64::from(length));
        let admitted = self.operations.pass(now, count as f64 * self.operation);
        let carried = self.bytes.pass(now, self.byte.of(length) as f64);
        let done = admitted.max(carried) + latency;
        if op == Op::Write {
            self.latest = self.latest.max(done);
        }
        done
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(burst: f64) -> Volume {
        let figures = VolumeFigures {
            capacity: 1e12,
            iops: 3000.0,
            rate: 125.0 * 1024.0 * 1024.0,
            read_latency: 0.0,
            write_latency: 0.0,
            io_size: 262_144.0,
            burst,
        };
        Volume::new(&figures, 1 << 40)
    }

    fn last(volume: &mut Volume, count: u64, length: u32, step: u64) -> f64 {
        (0..count).map(|i| volume.submit(0, Op::Read, i * step, length)).max().unwrap() as f64 / 1e9
    }

    #[test]
    fn random_operations_come_at_the_rate_that_was_bought() {
        assert!((last(&mut volume(0.0), 3000, 8192, 1 << 20) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn large_operations_come_at_the_bytes_that_were_bought() {
        assert!((last(&mut volume(0.0), 500, 262_144, 1 << 20) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn an_idle_bucket_saves_up_no_more_than_its_burst() {
        let mut volume = volume(0.1);
        let passed = (0..1000).filter(|i| volume.submit(10_000_000_000, Op::Read, i << 20, 512) == 10_000_000_000);
        assert!((299..=301).contains(&passed.count()));
    }

    #[test]
    fn small_sequential_operations_count_as_one() {
        let mut volume = volume(0.0);
        let count: u64 = (0..64).map(|i| volume.counted(Op::Read, i * 32_768, 32_768)).sum();
        assert_eq!(count, 8);
        assert_eq!(volume.counted(Op::Write, 64 * 32_768, 1 << 20), 4);
        assert_eq!(volume.counted(Op::Read, 0, 512), 1);
    }
}
