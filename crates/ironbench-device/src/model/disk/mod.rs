//! A rotating disk: arm, spindle, command queue, and cache.
//!
//! The components follow Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994).

mod choice;
mod destage;
mod geometry;
mod seek;

use std::collections::VecDeque;
use std::sync::Arc;

use ironbench_core::{Error, Result};
use pgbench_script::Random;

pub use choice::Choice;
pub use seek::Seek;

use self::destage::Destage;
use self::geometry::{Geometry, Place};
use super::line::{Line, PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::figures::DiskFigures;

#[derive(Debug, Clone)]
pub struct Disk {
    capacity: u64,
    mechanics: Mechanics,
    interface: Line,
    interface_byte: PerByte,
    overhead: u64,
    read_ahead: f64,
    /// Completion times of the commands in the drive, in order.
    held: VecDeque<u64>,
    queue: usize,
    /// Time at which the arm will have completed its requests so far.
    free: u64,
    /// Offset at which the last read or uncached write ended. `passed` is the time at which its last byte passed the
    /// head.
    end: u64,
    passed: f64,
    last: Op,
    destage: Option<Destage>,
    /// Time at which the last write is on the platter. This time is used for a drive without a write cache.
    written: u64,
}

/// The arm and the spindle.
#[derive(Debug, Clone)]
pub struct Mechanics {
    geometry: Geometry,
    read_seek: Seek,
    write_seek: Seek,
    choice: Arc<Choice>,
    revolution: f64,
    /// Angle of the spindle at time 0, in revolutions.
    phase: f64,
    arm: f64,
}

impl Mechanics {
    /// Moves the arm to a place, starting at `at` with `held` queued commands. Returns the seek and rotational delay in
    /// nanoseconds.
    fn position(&mut self, op: Op, place: &Place, at: u64, held: usize) -> f64 {
        let distance = (place.track - self.arm).abs();
        let seek = if op == Op::Write { &self.write_seek } else { &self.read_seek };
        let seeking = if self.geometry.one_track(place.track, self.arm) { 0.0 } else { seek.time(distance) };
        let angle = self.phase + (at as f64 + seeking) / self.revolution;
        let waiting = (place.angle - angle).rem_euclid(1.0) * self.revolution;
        self.arm = place.track;
        (seeking + waiting) * self.choice.share(held)
    }
}

impl Disk {
    /// Creates a disk of `capacity` bytes on the outer `stroke` (0 to 1) of its surface. `choice` must be computed from
    /// these parameters.
    pub fn new(figures: &DiskFigures, capacity: u64, stroke: f64, choice: Arc<Choice>, seed: u64) -> Self {
        let revolution = 60e9 / figures.rpm;
        let geometry = Geometry::new(capacity as f64 / stroke, figures.rate_outer, figures.rate_inner, revolution);
        let mechanics = Mechanics {
            geometry,
            read_seek: read_seek(figures),
            write_seek: write_seek(figures),
            choice,
            revolution,
            phase: Random::new(seed).fraction(),
            arm: 0.0,
        };
        Self {
            capacity,
            mechanics,
            interface: Line::default(),
            interface_byte: PerByte::of_rate(figures.interface_rate),
            overhead: nanoseconds(figures.overhead),
            read_ahead: figures.read_ahead,
            held: VecDeque::new(),
            queue: figures.queue as usize,
            free: 0,
            end: u64::MAX,
            passed: 0.0,
            last: Op::Flush,
            destage: figures.write_cache.then(|| Destage::new(figures.cache as u64)),
            written: 0,
        }
    }

    /// Returns the queue depth at `now`, including the new command. The depth is limited to the number of commands
    /// among which the drive chooses.
    fn holding(&mut self, now: u64) -> usize {
        while self.held.front().is_some_and(|done| *done <= now) {
            self.held.pop_front();
        }
        (self.held.len() + 1).min(self.queue)
    }

    fn read(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let place = self.mechanics.geometry.place(offset);
        let transfer = f64::from(length) / place.rate;
        let arrived = now + self.overhead;
        if offset == self.end && self.last == Op::Read {
            // Since the last read, the drive has read ahead, but not more than fits into its memory.
            let begun = self.passed.max(arrived as f64 - self.read_ahead / place.rate);
            return self.streamed(begun + transfer, arrived + self.interface_byte.of(length), place.track);
        }
        let held = self.holding(now);
        let mut begin = arrived.max(self.free);
        if let Some(destage) = &mut self.destage {
            begin = destage.finish_current(begin);
        }
        let done = begin as f64 + self.mechanics.position(Op::Read, &place, begin, held) + transfer;
        if let Some(destage) = &mut self.destage {
            destage.delay(begin, done as u64 - begin);
        }
        self.promised(done, done as u64)
    }

    /// Completes a read that follows the previous one without a gap.
    fn streamed(&mut self, passed: f64, carried: u64, track: f64) -> u64 {
        self.mechanics.arm = track;
        let done = (passed.ceil() as u64).max(carried);
        self.free = self.free.max(passed as u64);
        self.passed = passed;
        self.held.push_back(done.max(self.held.back().copied().unwrap_or(0)));
        done
    }

    fn promised(&mut self, passed: f64, at_least: u64) -> u64 {
        let done = (passed.ceil() as u64).max(at_least);
        self.passed = passed;
        self.free = done;
        self.held.push_back(done);
        done
    }

    fn write(&mut self, now: u64, offset: u64, length: u32) -> u64 {
        let arrived = self.interface.pass(now, self.interface_byte.of(length)) + self.overhead;
        if let Some(destage) = &mut self.destage {
            return destage.write(&mut self.mechanics, arrived, self.free, offset, length);
        }
        let held = self.holding(now);
        let place = self.mechanics.geometry.place(offset);
        let transfer = f64::from(length) / place.rate;
        let begin = arrived.max(self.free);
        // The write arrived before the previous one was finished and continues it, so it needs no positioning.
        let joined = offset == self.end && self.last == Op::Write && arrived <= self.free;
        let positioning = if joined { 0.0 } else { self.mechanics.position(Op::Write, &place, begin, held) };
        self.written = self.promised(begin as f64 + positioning + transfer, arrived);
        self.written
    }
}

impl Device for Disk {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        let done = match op {
            Op::Read => self.read(now, offset, length),
            Op::Write => self.write(now, offset, length),
            Op::Flush => {
                let written = self.destage.as_ref().map_or(self.written, Destage::empty_at);
                return now.max(written) + self.overhead;
            }
        };
        if op == Op::Read || self.destage.is_none() {
            self.end = offset + u64::from(length);
            self.last = op;
        }
        done
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}

pub fn read_seek(figures: &DiskFigures) -> Seek {
    Seek::new(figures.seek_track_read, figures.seek_average_read, figures.seek_full_read)
}

fn write_seek(figures: &DiskFigures) -> Seek {
    Seek::new(figures.seek_track_write, figures.seek_average_write, figures.seek_full_write)
}

/// Rejects parameters that are impossible for a disk.
pub fn checked(name: &str, figures: &DiskFigures) -> Result<()> {
    let subject = || format!("device model {name}");
    for (which, seek) in [("read", read_seek(figures)), ("write", write_seek(figures))] {
        if !seek.is_monotone() {
            return Err(Error::input(subject(), format!("the {which} seek times are impossible"))
                .hint("the average must be 33% to 73% of the way from the track-to-track to the full-stroke time"));
        }
    }
    if figures.rate_inner > figures.rate_outer {
        return Err(Error::input(subject(), "rate_inner is above rate_outer"));
    }
    Ok(())
}
