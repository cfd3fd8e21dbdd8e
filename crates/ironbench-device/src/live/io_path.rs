//! The I/O path overhead: the time that every answer takes in addition to the time of the model.

use serde::Serialize;

use crate::Op;

/// With this many other I/Os in flight, waiting for them may double the overhead. This value gave the best results on
/// two cores. With a smaller value, fewer answers are delayed at the same time and each of them leaves separately,
/// which takes more CPU time.
const IN_FLIGHT_THAT_DOUBLE_OVERHEAD: u64 = 8;

/// I/O path overhead in nanoseconds. The overhead consists of a constant for each I/O and a time for each byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct IoPath {
    pub each_ns: f64,
    pub byte_ns: f64,
}

impl IoPath {
    /// Derives the overhead from the mean times of a small and a large I/O.
    pub fn fit(small: (usize, f64), large: (usize, f64)) -> Self {
        let byte_ns = ((large.1 - small.1) / (large.0 - small.0) as f64).max(0.0);
        Self { each_ns: (small.1 - byte_ns * small.0 as f64).max(0.0), byte_ns }
    }

    fn of(self, length: u32) -> u64 {
        (self.each_ns + self.byte_ns * f64::from(length)) as u64
    }
}

/// Additional delay of an answer after an idle period. In this period, the processor of the waiting client goes to
/// sleep. On a virtual machine, the host may give the processor to others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WakeupDelay {
    /// Idle times in nanoseconds, in ascending order. Idle means that there is no request and no answer.
    pub after_ns: [u64; Self::POINTS],
    /// Additional delay in nanoseconds after each of these idle times.
    pub more_ns: [f64; Self::POINTS],
}

impl WakeupDelay {
    pub const POINTS: usize = 5;

    /// Returns the delay after an idle time. The delay is interpolated linearly between the measured points, and
    /// constant before the first and after the last.
    pub fn after(&self, idle_ns: u64) -> u64 {
        let next = self.after_ns.partition_point(|&point| point <= idle_ns);
        if next == 0 || next == Self::POINTS {
            return self.more_ns[next.saturating_sub(1)] as u64;
        }
        let ((from, to), (less, more)) =
            ((self.after_ns[next - 1], self.after_ns[next]), (self.more_ns[next - 1], self.more_ns[next]));
        (less + (more - less) * (idle_ns - from) as f64 / (to - from) as f64) as u64
    }
}

/// The overheads that were measured when the device was mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Overhead {
    pub read: IoPath,
    pub write: IoPath,
    pub flush: IoPath,
    /// Additional delay of an answer after an idle period.
    pub waking: WakeupDelay,
    /// Usual lateness of delayed answers. The overheads above include it.
    pub late_ns: u64,
    /// The part of a read's overhead that is spent before and after the block device. The value is None if the kernel
    /// keeps no statistics of the block device.
    pub beyond: Option<WakeupDelay>,
}

impl Overhead {
    pub const NONE: Self = {
        const AT_ONCE: IoPath = IoPath { each_ns: 0.0, byte_ns: 0.0 };
        const AWAKE: WakeupDelay =
            WakeupDelay { after_ns: [0; WakeupDelay::POINTS], more_ns: [0.0; WakeupDelay::POINTS] };
        Self { read: AT_ONCE, write: AT_ONCE, flush: AT_ONCE, waking: AWAKE, late_ns: 0, beyond: None }
    };

    pub fn of(&self, op: Op, length: u32) -> u64 {
        match op {
            Op::Read => self.read.of(length),
            Op::Write => self.write.of(length),
            Op::Flush => self.flush.of(0),
        }
    }

    /// Returns the maximum plausible increase of the overhead since mount, in nanoseconds. The maximum is the sum of
    /// three times: the overhead itself, waking up, and waiting for other I/Os. If the measured increase is larger, the
    /// load exceeds the capacity of the path, and the excess is not overhead.
    pub fn max_increase(&self, op: Op, takes_ns: u64, others: u64) -> i64 {
        let each_ns = self.of(op, 0);
        (each_ns + each_ns * others / IN_FLIGHT_THAT_DOUBLE_OVERHEAD + self.waking.after(takes_ns)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waking_lies_between_those_that_were_measured() {
        let waking = WakeupDelay { after_ns: [10, 20, 40, 80, 160], more_ns: [0.0, 100.0, 200.0, 200.0, 600.0] };
        let found: Vec<_> = [0, 10, 15, 30, 60, 120, 160, 1_000].into_iter().map(|idle| waking.after(idle)).collect();
        assert_eq!(found, [0, 0, 50, 150, 200, 400, 600, 600]);
        assert_eq!(WakeupDelay::default().after(5_000), 0);
    }

    #[test]
    fn a_way_goes_through_both_measurements() {
        let way = IoPath::fit((4096, 25_000.0), (262_144, 60_000.0));
        for (length, expected) in [(4096u32, 25_000), (262_144, 60_000)] {
            assert!(way.of(length).abs_diff(expected) <= 1);
        }
        assert_eq!(IoPath::fit((4096, 25_000.0), (262_144, 20_000.0)).byte_ns, 0.0);
    }
}
