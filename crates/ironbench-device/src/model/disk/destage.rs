//! The volatile write cache of a drive, and how its contents are written to the platter.
//!
//! A write is complete when it is in the cache. The write may have to wait for room. The drive writes the cached data
//! whenever the arm is free, in an order of its choice, and merges adjacent writes. Reads take precedence, except over
//! a write in progress.

use std::collections::VecDeque;

use super::Mechanics;
use crate::device::Op;

#[derive(Debug, Clone)]
pub struct Destage {
    room: u64,
    used: u64,
    /// Cached writes, in the order in which they are written to the platter. Each has the time at which this is done,
    /// without the delay in `pushed`, and its size in bytes.
    dirty: VecDeque<(u64, u32)>,
    /// Total time by which reads have delayed writes since the start.
    pushed: u64,
    /// Time at which the cache will be empty.
    empty: u64,
    /// Duration of the last write to the platter.
    service: u64,
    end: u64,
}

impl Destage {
    pub fn new(room: u64) -> Self {
        Self { room, used: 0, dirty: VecDeque::new(), pushed: 0, empty: 0, service: 0, end: u64::MAX }
    }

    pub fn empty_at(&self) -> u64 {
        self.empty
    }

    /// Returns when the write in progress at `at` ends. A read has to wait until this time.
    pub fn finish_current(&self, at: u64) -> u64 {
        if self.empty <= at || self.service == 0 {
            return at;
        }
        at + (self.empty - at) % self.service
    }

    /// Delays the remaining writes by `takes`, because a read uses the arm at `at`.
    pub fn delay(&mut self, at: u64, takes: u64) {
        if self.empty > at {
            self.empty += takes;
            self.pushed += takes;
        }
    }

    /// Adds a write that arrives at `arrived`. Returns when it is in the cache. `free` is the time at which the arm has
    /// completed its reads.
    pub fn write(&mut self, mechanics: &mut Mechanics, arrived: u64, free: u64, offset: u64, length: u32) -> u64 {
        self.written_until(arrived);
        let place = mechanics.geometry.place(offset);
        let transfer = f64::from(length) / place.rate;
        let begin = arrived.max(self.empty).max(free);
        let joined = offset == self.end && arrived <= self.empty;
        let held = self.dirty.len() + 1;
        let positioning = if joined { 0.0 } else { mechanics.position(Op::Write, &place, begin, held) };
        self.service = ((positioning + transfer).ceil() as u64).max(1);
        self.empty = begin + self.service;
        self.end = offset + u64::from(length);
        self.dirty.push_back((self.empty - self.pushed, length));
        self.used += u64::from(length);
        self.with_room(arrived)
    }

    fn written_until(&mut self, now: u64) {
        while let Some((done, length)) = self.dirty.front().copied() {
            if done + self.pushed > now {
                break;
            }
            self.used -= u64::from(length);
            self.dirty.pop_front();
        }
    }

    /// Returns when enough cached data have been written to make room for the newest write.
    fn with_room(&mut self, arrived: u64) -> u64 {
        let mut at = arrived;
        while self.used > self.room {
            let Some((done, length)) = self.dirty.pop_front() else { break };
            self.used -= u64::from(length);
            at = at.max(done + self.pushed);
        }
        at
    }
}
