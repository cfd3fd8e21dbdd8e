//! What every model is: a function from arrivals to completions.

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Read,
    Write,
    /// Everything written before is on stable storage when it completes. Its offset and length mean nothing.
    Flush,
}

/// A device between its arrivals and its completions. The same seed and the same arrivals give the same completions.
pub trait Device: Send {
    /// When this I/O, which arrives at `now`, is done: at or after `now`, both in nanoseconds since the device was made.
    ///
    /// Calls come in the order of arrival. `offset + length` is at most `capacity()`.
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64;

    /// Bytes.
    fn capacity(&self) -> u64;

    /// Nanoseconds of the host's own CPU that the device's driver takes for this I/O; most take none worth a model.
    fn host_cpu(&self, _op: Op, _length: u32) -> u64 {
        0
    }

    /// Whether anything may be done later than it arrives.
    fn takes_time(&self) -> bool {
        true
    }
}

/// The device; in debug builds, one that asserts that its I/Os come in order of arrival.
pub fn in_order(device: Box<dyn Device>) -> Box<dyn Device> {
    if cfg!(debug_assertions) { Box::new(InOrder { device, latest: 0 }) } else { device }
}

/// Asserts the order that `Device::submit` requires.
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
