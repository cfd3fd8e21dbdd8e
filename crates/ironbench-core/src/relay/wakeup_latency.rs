//! Decides how long a thread sleeps until something is due.
//!
//! A sleeping thread wakes late by tens of microseconds, because of timers and idle states of the processor. The
//! thread's timer is therefore set earlier, by the recent wake-up latency. The thread spins for the rest of the time.
//!
//! With many pieces in flight, the lateness of a single piece hardly matters. The thread then does not spin, and leaves
//! the CPU to client and server.

/// Assumed wake-up latency before the first measurement.
const INITIAL_LATENCY_NS: u64 = 15_000;
/// Maximum time to spin, however high the wake-up latency is.
const MAX_SPIN_NS: u64 = 60_000;
/// Number of pieces in flight at and above which the thread does not spin.
const MANY_IN_FLIGHT: usize = 8;

/// Moving average of the wake-up latency.
#[derive(Debug)]
pub struct WakeupLatency {
    mean_ns: u64,
}

impl Default for WakeupLatency {
    fn default() -> Self {
        Self { mean_ns: INITIAL_LATENCY_NS }
    }
}

impl WakeupLatency {
    /// Returns how long to sleep. `left` is the time until the next piece is due, and `waiting` is the number of pieces
    /// in flight. Returns 0 if the thread should spin.
    pub fn sleep_ns(&self, left: u64, waiting: usize) -> u64 {
        if waiting >= MANY_IN_FLIGHT { left } else { left.saturating_sub(self.mean_ns.min(MAX_SPIN_NS)) }
    }

    /// Records that the thread woke this long after its timer was due.
    pub fn record(&mut self, late_ns: u64) {
        self.mean_ns = (self.mean_ns * 7 + late_ns) / 8;
    }
}
