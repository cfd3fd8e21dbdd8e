//! Decides how long a thread sleeps until something is due.
//!
//! A sleeping thread wakes late by tens of microseconds, because of timers and idle states of the processor. The
//! thread's timer is therefore set earlier, by the recent wake-up latency. The thread spins for the rest of the time.
//!
//! With many pieces in flight, the lateness of a single piece hardly matters. The thread then does not spin, and leaves
//! the CPU to client and server.

/// Assumed wake-up latency before the first measurement.
const LATE_NS: u64 = 15_000;
/// Maximum time to spin, however high the wake-up latency is.
const LONGEST_SPIN_NS: u64 = 60_000;
/// Number of pieces in flight at and above which the thread does not spin.
const MANY: usize = 8;

/// Moving average of the wake-up latency.
#[derive(Debug)]
pub struct Naps {
    late_ns: u64,
}

impl Default for Naps {
    fn default() -> Self {
        Self { late_ns: LATE_NS }
    }
}

impl Naps {
    /// Returns how long to sleep. `left` is the time until the next piece is due, and `waiting` is the number of pieces
    /// in flight. Returns 0 if the thread should spin.
    pub fn length(&self, left: u64, waiting: usize) -> u64 {
        if waiting >= MANY { left } else { left.saturating_sub(self.late_ns.min(LONGEST_SPIN_NS)) }
    }

    /// Records that the thread woke this long after its timer was due.
    pub fn woke(&mut self, late_ns: u64) {
        self.late_ns = (self.late_ns * 7 + late_ns) / 8;
    }
}
