//! The interface of all device models. A model computes the completion time of each I/O from its arrival time.

/// The operation of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Read,
    Write,
    /// A flush. When it completes, everything written before it is on stable storage. Offset and length are ignored.
    Flush,
}

/// A device model. The same seed and the same arrivals give the same completions.
pub trait Device: Send {
    /// Returns when an I/O that arrives at `now` completes, in nanoseconds since the device was created.
    ///
    /// Calls come in order of arrival. `offset + length` is at most `capacity()`.
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64;

    /// Returns the capacity in bytes.
    fn capacity(&self) -> u64;

    /// Returns the CPU time in nanoseconds that the device's driver takes on the host for this I/O. This time is
    /// negligible for most devices.
    fn host_cpu(&self, _op: Op, _length: u32) -> u64 {
        0
    }

    /// Whether there are I/Os that complete later than they arrive.
    fn takes_time(&self) -> bool {
        true
    }
}

/// Returns the device. In debug builds, the device is wrapped to assert that its I/Os come in order of arrival.
pub fn in_order(device: Box<dyn Device>) -> Box<dyn Device> {
    if cfg!(debug_assertions) { Box::new(InOrder { device, latest: 0 }) } else { device }
}

/// Asserts that I/Os come in order of arrival, as `Device::submit` requires.
struct InOrder {
    device: Box<dyn Device>,
    latest: u64,
}

impl Device for InOrder {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        assert!(now >= self.latest, "{op:?} arrives at {now}, before an I/O submitted earlier, at {}", self.latest);
        self.latest = now;
        self.device.submit(now, op, offset, length)
    }

    fn capacity(&self) -> u64 {
        self.device.capacity()
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        self.device.host_cpu(op, length)
    }

    fn takes_time(&self) -> bool {
        self.device.takes_time()
    }
}

impl Device for Box<dyn Device> {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        (**self).submit(now, op, offset, length)
    }

    fn capacity(&self) -> u64 {
        (**self).capacity()
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        (**self).host_cpu(op, length)
    }

    fn takes_time(&self) -> bool {
        (**self).takes_time()
    }
}
