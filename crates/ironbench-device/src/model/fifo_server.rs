//! A server that handles one request at a time. Other requests wait in order of arrival.

/// Converts seconds to nanoseconds. Negative values become 0.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round().max(0.0) as u64
}

/// A server with a first-in, first-out queue.
#[derive(Debug, Clone, Default)]
pub struct FifoServer {
    free_at: u64,
}

impl FifoServer {
    /// Returns when work that arrives at `now` and takes `takes` is complete.
    #[inline]
    pub fn serve(&mut self, now: u64, takes: u64) -> u64 {
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }
}

/// Nanoseconds per byte, as a fraction. For example, a byte takes 1/7 ns at 7 GB/s.
#[derive(Debug, Clone, Copy)]
pub struct PerByte(f64);

impl PerByte {
    pub fn from_rate(bytes_per_s: f64) -> Self {
        Self(1e9 / bytes_per_s)
    }

    #[inline]
    pub fn time_for(self, bytes: u32) -> u64 {
        // The time is rounded up, so that no transfer exceeds the rate.
        (self.0 * f64::from(bytes)).ceil() as u64
    }
}
