//! Memory, with a latency and a rate that all accesses share.

use super::fifo_server::{FifoServer, PerByte, nanoseconds};
use crate::device::{Device, Op};
use crate::parameters::MemoryParameters;

#[derive(Debug, Clone)]
pub struct Memory {
    capacity: u64,
    latency: u64,
    rate: PerByte,
    bus: FifoServer,
}

impl Memory {
    pub fn new(parameters: &MemoryParameters, capacity: u64) -> Self {
        let latency = nanoseconds(parameters.latency);
        Self { capacity, latency, rate: PerByte::from_rate(parameters.rate), bus: FifoServer::default() }
    }
}

impl Device for Memory {
    fn submit(&mut self, now: u64, op: Op, _offset: u64, length: u32) -> u64 {
        match op {
            Op::Flush => now,
            Op::Read | Op::Write => self.bus.serve(now, self.rate.time_for(length)) + self.latency,
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }
}
