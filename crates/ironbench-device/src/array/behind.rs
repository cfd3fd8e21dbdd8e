//! Devices behind a controller or a bus that they share.
//!
//! The controller limits the rate of all I/Os together. I/Os reserve their slot when they arrive, so the limits do not
//! depend on what the devices do. A controller may have a battery-backed cache for writes. A write is complete when it
//! is in the cache. The write leaves the cache when the devices have written it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::device::{Device, Op};
use crate::figures::ControllerFigures;
use crate::model::line::{Line, PerByte, nanoseconds};

pub struct Behind {
    inner: Box<dyn Device>,
    byte: PerByte,
    command: u64,
    bytes: Line,
    commands: Line,
    /// Time at which the latest I/O reached the devices behind the controller.
    passed: u64,
    latency: u64,
    memory: Option<Memory>,
}

/// The write cache, which contains data that are not on the devices yet.
struct Memory {
    room: u64,
    used: u64,
    leaving: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Memory {
    /// Adds `length` bytes that leave the cache at `leaves`. Returns the time at which the cache has room for them.
    fn accept(&mut self, now: u64, leaves: u64, length: u32) -> u64 {
        self.leaving.push(Reverse((leaves, length)));
        self.used += u64::from(length);
        let mut at = now;
        while let Some(Reverse((left, bytes))) = self.leaving.peek().copied() {
            if left > now && self.used <= self.room {
                break;
            }
            at = at.max(left);
            self.used -= u64::from(bytes);
            self.leaving.pop();
        }
        at
    }
}

impl Behind {
    pub fn new(figures: &ControllerFigures, inner: Box<dyn Device>, write_cache: bool) -> Self {
        let room = figures.cache as u64;
        let memory = (write_cache && room > 0).then(|| Memory { room, used: 0, leaving: BinaryHeap::new() });
        Self {
            inner,
            byte: PerByte::of_rate(figures.rate),
            command: nanoseconds(1.0 / figures.iops),
            bytes: Line::default(),
            commands: Line::default(),
            passed: 0,
            latency: nanoseconds(figures.latency),
            memory,
        }
    }
}

impl Device for Behind {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        if op == Op::Flush {
            if self.memory.is_some() {
                return now + self.latency; // data in a battery-backed cache are durable
            }
            // A flush must not overtake the I/Os that the controller has not passed on yet.
            return self.inner.submit(now.max(self.passed), op, offset, length) + self.latency;
        }
        let takes = self.byte.of(length);
        let carried = self.bytes.pass(now, takes);
        let admitted = self.commands.pass(now, self.command).max(carried - takes);
        self.passed = self.passed.max(admitted);
        let done = self.inner.submit(self.passed, op, offset, length).max(carried);
        match &mut self.memory {
            Some(memory) if op == Op::Write => memory.accept(carried.max(admitted), done, length) + self.latency,
            _ => done + self.latency,
        }
    }

    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        self.inner.host_cpu(op, length)
    }
}
