//! The zero-latency device. With it, only the cost of the emulation remains.

use crate::device::{Device, Op};

/// Completes every I/O immediately.
#[derive(Debug, Clone)]
pub struct ZeroLatency {
    capacity: u64,
}

impl ZeroLatency {
    pub fn new(capacity: u64) -> Self {
        Self { capacity }
    }
}

impl Device for ZeroLatency {
    fn submit(&mut self, now: u64, _op: Op, _offset: u64, _length: u32) -> u64 {
        now
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn takes_time(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_device_takes_no_time() {
        let mut free = ZeroLatency::new(1 << 30);
        for op in [Op::Read, Op::Write, Op::Flush] {
            assert_eq!(free.submit(7, op, 0, 4096), 7);
            assert_eq!(free.host_cpu(op, 4096), 0);
        }
        assert_eq!((free.capacity(), free.takes_time()), (1 << 30, false));
    }
}
