//! A rotating disk: arm, spindle, command queue, and cache.
//!
//! The components follow Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994).

mod geometry;
mod queue_gain;
mod seek;
mod write_cache;

use std::collections::VecDeque;
use std::sync::Arc;

use ironbench_core::{Error, Result};
use pgbench_script::Random;

pub use queue_gain::QueueGain;
pub use seek::SeekCurve;

use self::geometry::{Geometry, TrackPosition};
use self::write_cache::WriteCache;
use super::fifo_server::{FifoServer, PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::parameters::DiskParameters;

/// A rotating disk.
#[derive(Debug, Clone)]
pub struct Disk {
    capacity: u64,
    mechanics: Mechanics,
    interface: FifoServer,
    interface_byte: PerByte,
    overhead: u64,
    read_ahead: f64,
    /// Completion times of the commands in the drive, in order.
    in_drive: VecDeque<u64>,
    queue: usize,
    /// Time at which the arm will have completed its requests so far.
    arm_free_at: u64,
    /// Offset at which the last read or uncached write ended. `end_passed_at` is the time at which its last byte passed
    /// the head.
    end: u64,
    end_passed_at: f64,
    last: Op,
    cache: Option<WriteCache>,
    /// Time at which the last write is on the platter. This time is used for a drive without a write cache.
    last_write_done: u64,
}

/// The arm and the spindle.
#[derive(Debug, Clone)]
pub struct Mechanics {
    geometry: Geometry,
    read_seek: SeekCurve,
    write_seek: SeekCurve,
    gain: Arc<QueueGain>,
    revolution: f64,
    /// Angle of the spindle at time 0, in revolutions.
    phase: f64,
    arm: f64,
}

impl Mechanics {
    /// Moves the arm to a place, starting at `at` with `depth` queued commands. Returns the seek and rotational delay
    /// in nanoseconds.
    fn seek_to(&mut self, op: Op, position: &TrackPosition, at: u64, depth: usize) -> f64 {
        let distance = (position.track - self.arm).abs();
        let seek = if op == Op::Write { &self.write_seek } else { &self.read_seek };
        let seeking = if self.geometry.same_track(position.track, self.arm) { 0.0 } else { seek.time(distance) };
        let angle = self.phase + (at as f64 + seeking) / self.revolution;
        let waiting = (position.angle - angle).rem_euclid(1.0) * self.revolution;
        self.arm = position.track;
        (seeking + waiting) * self.gain.fraction(depth)
    }
}

impl Disk {
    /// Creates a disk of `capacity` bytes on the outer `stroke` (0 to 1) of its surface. `gain` must be computed from
    /// these parameters.
    pub fn new(parameters: &DiskParameters, capacity: u64, stroke: f64, gain: Arc<QueueGain>, seed: u64) -> Self {
        let revolution = 60e9 / parameters.rpm;
        let geometry =
            Geometry::new(capacity as f64 / stroke, parameters.rate_outer, parameters.rate_inner, revolution);
        let mechanics = Mechanics {
            geometry,
            read_seek: read_seek(parameters),
            write_seek: write_seek(parameters),
            gain,
            revolution,
            phase: Random::new(seed).fraction(),
            arm: 0.0,
        };
        Self {
            capacity,
            mechanics,
            interface: FifoServer::default(),
            interface_byte: PerByte::from_rate(parameters.interface_rate),
            overhead: nanoseconds(parameters.overhead),
            read_ahead: parameters.read_ahead,
            in_drive: VecDeque::new(),
            queue: parameters.queue as usize,
            arm_free_at: 0,
            end: u64::MAX,
            end_passed_at: 0.0,
            last: Op::Flush,
            cache: parameters.write_cache.then(|| WriteCache::new(parameters.cache as u64)),
            last_write_done: 0,
        }
    }

    /// Returns the queue depth at `now`, including the new command. The depth is limited to the number of commands
    /// among which the drive chooses.
    fn queue_depth(&mut self, now: u64) -> usize {
        while self.in_drive.front().is_some_and(|done| *done <= now) {
            self.in_drive.pop_front();
        }
        (self.in_drive.len() + 1).min(self.queue)
    }

    fn read(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let position = self.mechanics.geometry.position(offset);
        let transfer = f64::from(length) / position.rate;
        let arrived = now + self.overhead;
        if offset == self.end && self.last == Op::Read {
            // Since the last read, the drive has read ahead, but not more than fits into its memory.
            let begun = self.end_passed_at.max(arrived as f64 - self.read_ahead / position.rate);
            return self.read_sequentially(
                begun + transfer,
                arrived + self.interface_byte.time_for(length),
                position.track,
            );
        }
        let depth = self.queue_depth(now);
        let mut begin = arrived.max(self.arm_free_at);
        if let Some(cache) = &mut self.cache {
            begin = cache.finish_current(begin);
        }
        let done = begin as f64 + self.mechanics.seek_to(Op::Read, &position, begin, depth) + transfer;
        if let Some(cache) = &mut self.cache {
            cache.delay(begin, done as u64 - begin);
        }
        self.finish(done, done as u64)
    }

    /// Completes a read that follows the previous one without a gap.
    fn read_sequentially(&mut self, end_passed_at: f64, carried: u64, track: f64) -> u64 {
        self.mechanics.arm = track;
        let done = (end_passed_at.ceil() as u64).max(carried);
        self.arm_free_at = self.arm_free_at.max(end_passed_at as u64);
        self.end_passed_at = end_passed_at;
        self.in_drive.push_back(done.max(self.in_drive.back().copied().unwrap_or(0)));
        done
    }

    /// Records the end of a command that used the arm. Returns its completion time.
    fn finish(&mut self, end_passed_at: f64, at_least: u64) -> u64 {
        let done = (end_passed_at.ceil() as u64).max(at_least);
        self.end_passed_at = end_passed_at;
        self.arm_free_at = done;
        self.in_drive.push_back(done);
        done
    }

    fn write(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let arrived = self.interface.serve(now, self.interface_byte.time_for(length)) + self.overhead;
        if let Some(cache) = &mut self.cache {
            return cache.write(&mut self.mechanics, arrived, self.arm_free_at, offset, length);
        }
        let depth = self.queue_depth(now);
        let position = self.mechanics.geometry.position(offset);
        let transfer = f64::from(length) / position.rate;
        let begin = arrived.max(self.arm_free_at);
        // The write arrived before the previous one was finished and continues it, so it needs no positioning.
        let joined = offset == self.end && self.last == Op::Write && arrived <= self.arm_free_at;
        let positioning = if joined { 0.0 } else { self.mechanics.seek_to(Op::Write, &position, begin, depth) };
        self.last_write_done = self.finish(begin as f64 + positioning + transfer, arrived);
        self.last_write_done
    }
}

impl Device for Disk {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        let done = match op {
            Op::Read => self.read(now, offset, length),
            Op::Write => self.write(now, offset, length),
            Op::Flush => {
                let last_write_done = self.cache.as_ref().map_or(self.last_write_done, WriteCache::empty_at);
                return now.max(last_write_done) + self.overhead;
            }
        };
        if op == Op::Read || self.cache.is_none() {
            self.end = offset + u64::from(length);
            self.last = op;
        }
        done
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}

pub fn read_seek(parameters: &DiskParameters) -> SeekCurve {
    SeekCurve::new(parameters.seek_track_read, parameters.seek_average_read, parameters.seek_full_read)
}

fn write_seek(parameters: &DiskParameters) -> SeekCurve {
    SeekCurve::new(parameters.seek_track_write, parameters.seek_average_write, parameters.seek_full_write)
}

/// Rejects parameters that are impossible for a disk.
pub fn checked(name: &str, parameters: &DiskParameters) -> Result<()> {
    let subject = || format!("device model {name}");
    for (which, seek) in [("read", read_seek(parameters)), ("write", write_seek(parameters))] {
        if !seek.is_monotone() {
            return Err(Error::input(subject(), format!("the {which} seek times are impossible"))
                .hint("the average must be 33% to 73% of the way from the track-to-track to the full-stroke time"));
        }
    }
    if parameters.rate_inner > parameters.rate_outer {
        return Err(Error::input(subject(), "rate_inner is above rate_outer"));
    }
    Ok(())
}
