//! The volatile write cache of a drive, and how its contents are written to the platter.
//!
//! A write is complete when it is in the cache. The write may have to wait for room. The drive writes the cached data
//! whenever the arm is free, in an order of its choice, and merges adjacent writes. Reads take precedence, except over
//! a write in progress.

use std::collections::VecDeque;

use super::Mechanics;
use crate::device::Op;

/// The state of a write cache.
#[derive(Debug, Clone)]
pub struct WriteCache {
    capacity: u64,
    used: u64,
    /// Cached writes, in the order in which they are written to the platter. Each has the time at which this is done,
    /// without the delay in `read_delay`, and its size in bytes.
    dirty: VecDeque<(u64, u32)>,
    /// Total time by which reads have delayed writes since the start.
    read_delay: u64,
    /// Time at which the cache will be empty.
    empty_time: u64,
    /// Duration of the last write to the platter.
    last_duration: u64,
    end: u64,
}

impl WriteCache {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            used: 0,
            dirty: VecDeque::new(),
            read_delay: 0,
            empty_time: 0,
            last_duration: 0,
            end: u64::MAX,
        }
    }

    pub fn empty_at(&self) -> u64 {
        self.empty_time
    }

    /// Returns when the write in progress at `at` ends. A read has to wait until this time.
    pub fn finish_current(&self, at: u64) -> u64 {
        if self.empty_time <= at || self.last_duration == 0 {
            return at;
        }
        at + (self.empty_time - at) % self.last_duration
    }

    /// Delays the remaining writes by `takes`, because a read uses the arm at `at`.
    pub fn delay(&mut self, at: u64, takes: u64) {
        if self.empty_time > at {
            self.empty_time += takes;
            self.read_delay += takes;
        }
    }

    /// Adds a write that arrives at `arrived`. Returns when it is in the cache. `free` is the time at which the arm has
    /// completed its reads.
    pub fn write(&mut self, mechanics: &mut Mechanics, arrived: u64, free: u64, offset: u64, length: u32) -> u64 {
        self.written_until(arrived);
        let position = mechanics.geometry.position(offset);
        let transfer = f64::from(length) / position.rate;
        let begin = arrived.max(self.empty_time).max(free);
        let joined = offset == self.end && arrived <= self.empty_time;
        let held = self.dirty.len() + 1;
        let positioning = if joined { 0.0 } else { mechanics.seek_to(Op::Write, &position, begin, held) };
        self.last_duration = ((positioning + transfer).ceil() as u64).max(1);
        self.empty_time = begin + self.last_duration;
        self.end = offset + u64::from(length);
        self.dirty.push_back((self.empty_time - self.read_delay, length));
        self.used += u64::from(length);
        self.when_room(arrived)
    }

    fn written_until(&mut self, now: u64) {
        while let Some((done, length)) = self.dirty.front().copied() {
            if done + self.read_delay > now {
                break;
            }
            self.used -= u64::from(length);
            self.dirty.pop_front();
        }
    }

    /// Returns when enough cached data have been written to make room for the newest write.
    fn when_room(&mut self, arrived: u64) -> u64 {
        let mut at = arrived;
        while self.used > self.capacity {
            let Some((done, length)) = self.dirty.pop_front() else { break };
            self.used -= u64::from(length);
            at = at.max(done + self.read_delay);
        }
        at
    }
}
