//! A cloud volume, which has a token bucket for operations, a token bucket for bytes, and a latency.
//!
//! An operation has at most `io_size` bytes. A larger I/O counts as several operations. Small I/Os that are physically
//! sequential are merged into one operation. Source: Amazon EBS user guide, "I/O characteristics and monitoring"
//! (docs.aws.amazon.com/ebs/latest/userguide/ebs-io-characteristics.html). I/Os of 32 KiB or more are merged "before
//! processing". Source: AWS knowledge center, "How does Amazon EBS calculate the optimal I/O size"
//! (repost.aws/knowledge-center/ebs-calculate-optimal-io-size). The user guide of 2020 says that "each I/O operation
//! under 32 KiB counts as 1 operation". Therefore an I/O is merged with the previous one only while that one is in
//! flight. Writes that wait for each other, such as WAL appends, are never merged.

use super::fifo_server::{PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::parameters::VolumeParameters;

/// Minimum size in bytes of I/Os that are merged.
const MIN_MERGED_SIZE: u64 = 32 << 10;

/// A cloud volume.
#[derive(Debug, Clone)]
pub struct Volume {
    capacity: u64,
    operations: TokenBucket,
    bytes: TokenBucket,
    /// Nanoseconds per operation.
    operation: f64,
    byte: PerByte,
    io_size: u64,
    read_latency: u64,
    write_latency: u64,
    run: SequentialRun,
    latest: u64,
}

/// The sequential I/Os merged so far.
#[derive(Debug, Clone, Default)]
struct SequentialRun {
    op: Option<Op>,
    end: u64,
    bytes: u64,
    /// Completion time of the latest of the merged I/Os.
    done: u64,
}

/// A token bucket, described by its theoretical arrival time (the generic cell rate algorithm, ITU-T I.371, annex A).
#[derive(Debug, Clone, Default)]
struct TokenBucket {
    /// Time at which the bucket would be full again, in nanoseconds. The time is a float to keep fractions.
    full: f64,
    burst: f64,
}

impl TokenBucket {
    /// Takes tokens for this cost, and returns when they are available.
    fn take(&mut self, now: u64, cost: f64) -> u64 {
        self.full = self.full.max(now as f64) + cost;
        (self.full - self.burst).max(now as f64).ceil() as u64
    }
}

impl Volume {
    pub fn new(parameters: &VolumeParameters, capacity: u64) -> Self {
        let bucket = TokenBucket { full: 0.0, burst: parameters.burst * 1e9 };
        Self {
            capacity,
            operations: bucket.clone(),
            bytes: bucket,
            operation: 1e9 / parameters.iops,
            byte: PerByte::from_rate(parameters.rate),
            io_size: parameters.io_size as u64,
            read_latency: nanoseconds(parameters.read_latency),
            write_latency: nanoseconds(parameters.write_latency),
            run: SequentialRun::default(),
            latest: 0,
        }
    }

    /// Returns how many operations this I/O counts as. Returns 0 if it is merged into the previous ones.
    fn operation_count(&mut self, now: u64, op: Op, offset: u64, length: u64) -> u64 {
        let sequential = self.run.op == Some(op) && self.run.end == offset;
        let merged = sequential && now < self.run.done && length >= MIN_MERGED_SIZE;
        let before = if merged { self.run.bytes } else { 0 };
        let after = before + length;
        let count = after.div_ceil(self.io_size) - before.div_ceil(self.io_size);
        let op = (length >= MIN_MERGED_SIZE).then_some(op);
        self.run = SequentialRun { op, end: offset + length, bytes: after, done: self.run.done };
        count
    }
}

impl Device for Volume {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        let latency = match op {
            // Completed writes are durable, so a flush only waits for the writes in flight.
            Op::Flush => return self.latest.max(now) + self.write_latency,
            Op::Read => self.read_latency,
            Op::Write => self.write_latency,
        };
        let count = self.operation_count(now, op, offset, u64::from(length));
        let admitted = self.operations.take(now, count as f64 * self.operation);
        let carried = self.bytes.take(now, self.byte.time_for(length) as f64);
        let done = admitted.max(carried) + latency;
        self.run.done = done;
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
        let parameters = VolumeParameters {
            capacity: 1e12,
            iops: 3000.0,
            rate: 125.0 * 1024.0 * 1024.0,
            read_latency: 0.0,
            write_latency: 0.0,
            io_size: 262_144.0,
            burst,
        };
        Volume::new(&parameters, 1 << 40)
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

    /// Returns how many operations sequential I/Os of this size count as. `next` gets the time at which the previous
    /// I/O completed, and returns the time at which the next one arrives.
    fn operations(count: u64, length: u32, next: impl Fn(u64) -> u64) -> u64 {
        let mut volume = Volume { read_latency: 1_000_000, write_latency: 1_000_000, ..volume(1e9) };
        let (mut now, mut taken) = (0, 0.0);
        for number in 0..count {
            let before = volume.operations.full.max(now as f64);
            let done = volume.submit(now, Op::Write, number * u64::from(length), length);
            taken += volume.operations.full - before;
            now = next(done);
        }
        (taken / volume.operation).round() as u64
    }

    #[test]
    fn sequential_operations_are_merged_while_they_are_in_flight() {
        assert_eq!(operations(64, 32 << 10, |_| 0), 8);
        assert_eq!(operations(4, 1 << 20, |_| 0), 16);
    }

    #[test]
    fn appends_that_wait_for_each_other_count_one_by_one() {
        assert_eq!(operations(64, 32 << 10, |done| done), 64);
        assert_eq!(operations(64, 8 << 10, |done| done + 1_000_000_000), 64);
    }

    #[test]
    fn operations_under_32_kib_count_one_by_one() {
        assert_eq!(operations(64, 8 << 10, |_| 0), 64);
    }
}
