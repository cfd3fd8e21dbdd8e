//! The cores of a machine, which serve computations in order of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub(super) struct Cores {
    /// Time at which each core becomes idle.
    free: BinaryHeap<Reverse<u64>>,
}

impl Cores {
    pub fn new(count: u32) -> Self {
        Self { free: (0..count.max(1)).map(|_| Reverse(0)).collect() }
    }

    /// Returns when a thread completes `own` nanoseconds of computation, requested at `now`.
    /// `beside` is computed on the same core afterwards. Calls come in the order of `now`.
    #[inline]
    pub fn through(&mut self, now: u64, own: u64, beside: u64) -> u64 {
        if own == 0 && beside == 0 {
            return now;
        }
        let mut earliest = self.free.peek_mut().expect("there is a core");
        let done = earliest.0.max(now) + own;
        earliest.0 = done + beside;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cores_wait_for_one() {
        let mut cores = Cores::new(2);
        assert_eq!((cores.through(0, 10, 0), cores.through(0, 10, 0)), (10, 10));
        assert_eq!((cores.through(1, 5, 0), cores.through(40, 1, 0)), (15, 41));
    }

    #[test]
    fn what_is_computed_beside_delays_the_next_alone() {
        let mut cores = Cores::new(1);
        assert_eq!((cores.through(0, 10, 30), cores.through(5, 1, 0), cores.through(6, 0, 0)), (10, 41, 6));
    }
}
