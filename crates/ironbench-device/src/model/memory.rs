//! Memory, with a latency and a rate that all accesses share.

use super::line::{Line, PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::figures::MemoryFigures;

#[derive(Debug, Clone)]
pub struct Memory {
    capacity: u64,
    latency: u64,
    rate: PerByte,
    bus: Line,
}

impl Memory {
    pub fn new(figures: &MemoryFigures, capacity: u64) -> Self {
        let latency = nanoseconds(figures.latency);
        Self { capacity, latency, rate: PerByte::of_rate(figures.rate), bus: Line::default() }
    }
}

impl Device for Memory {
    fn submit(&mut self, now: u64, op: Op, _offset: u64, length: u32) -> u64 {
        match op {
            Op::Flush => now,
            Op::Read | Op::Write => self.bus.pass(now, self.rate.of(length)) + self.latency,
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
