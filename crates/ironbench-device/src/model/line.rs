//! One thing at a time: what arrives while it is at work waits for its turn.

/// Nanoseconds of something that lasts `seconds`, at least `least`.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round().max(0.0) as u64
}

/// A server with a queue in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Line {
    free: u64,
}

impl Line {
    /// When the work that arrives at `now` and takes so long is done.
    #[inline]
    pub fn pass(&mut self, now: u64, takes: u64) -> u64 {
        self.free = self.free.max(now) + takes;
        self.free
    }
}

/// Time per byte, in nanoseconds with a fraction: at 7 GB/s a byte takes a seventh of one.
#[derive(Debug, Clone, Copy)]
pub struct PerByte(f64);

impl PerByte {
    pub fn of_rate(bytes_per_s: f64) -> Self {
        Self(1e9 / bytes_per_s)
    }

    #[inline]
    pub fn of(self, bytes: u32) -> u64 {
        // Rounded up: no byte is ever faster than the rate.
        (self.0 * f64::from(bytes)).ceil() as u64
    }
}
