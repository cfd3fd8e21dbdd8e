//! Devices behind a controller or a bus that they share.
//!
//! The controller limits the rate of all I/Os together. I/Os reserve their slot when they arrive, so the limits do not
//! depend on what the devices do. A controller may have a battery-backed cache for writes. A write is complete when it
//! is in the cache. The write leaves the cache when the devices have written it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::device::{Device, Op};
use crate::model::fifo_server::{FifoServer, PerByte, nanoseconds};
use crate::parameters::ControllerParameters;

/// A device behind a controller or a bus, whose limits it shares with others.
pub struct SharedController {
    device: Box<dyn Device>,
    per_byte: PerByte,
    command_ns: u64,
    bytes: FifoServer,
    commands: FifoServer,
    /// Time at which the latest I/O reached the devices behind the controller.
    last_forwarded: u64,
    latency: u64,
    cache: Option<WriteCache>,
}

/// The write cache, which contains data that are not on the devices yet.
struct WriteCache {
    capacity: u64,
    used: u64,
    destaging: BinaryHeap<Reverse<(u64, u32)>>,
}

impl WriteCache {
    /// Adds `length` bytes that leave the cache at `leaves`. Returns the time at which the cache has room for them.
    fn accept(&mut self, now: u64, leaves: u64, length: u32) -> u64 {
        self.destaging.push(Reverse((leaves, length)));
        self.used += u64::from(length);
        let mut at = now;
        while let Some(Reverse((left, bytes))) = self.destaging.peek().copied() {
            if left > now && self.used <= self.capacity {
                break;
            }
            at = at.max(left);
            self.used -= u64::from(bytes);
            self.destaging.pop();
        }
        at
    }
}

impl SharedController {
    pub fn new(parameters: &ControllerParameters, device: Box<dyn Device>, write_cache: bool) -> Self {
        let capacity = parameters.cache as u64;
        let cache =
            (write_cache && capacity > 0).then(|| WriteCache { capacity, used: 0, destaging: BinaryHeap::new() });
        Self {
            device,
            per_byte: PerByte::from_rate(parameters.rate),
            command_ns: nanoseconds(1.0 / parameters.iops),
            bytes: FifoServer::default(),
            commands: FifoServer::default(),
            last_forwarded: 0,
            latency: nanoseconds(parameters.latency),
            cache,
        }
    }
}

impl Device for SharedController {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        if op == Op::Flush {
            if self.cache.is_some() {
                return now + self.latency; // data in a battery-backed cache are durable
            }
            // A flush must not overtake the I/Os that the controller has not passed on yet.
            return self.device.submit(now.max(self.last_forwarded), op, offset, length) + self.latency;
        }
        let takes = self.per_byte.time_for(length);
        let transferred = self.bytes.serve(now, takes);
        let admitted = self.commands.serve(now, self.command_ns).max(transferred - takes);
        self.last_forwarded = self.last_forwarded.max(admitted);
        let done = self.device.submit(self.last_forwarded, op, offset, length).max(transferred);
        match &mut self.cache {
            Some(cache) if op == Op::Write => cache.accept(transferred.max(admitted), done, length) + self.latency,
            _ => done + self.latency,
        }
    }

    fn capacity(&self) -> u64 {
        self.device.capacity()
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        self.device.host_cpu(op, length)
    }
}
