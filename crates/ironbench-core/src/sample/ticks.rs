//! Sampling times of a source. The times are absolute, at multiples of the period from the start of the window.

/// Sampling times in nanoseconds since the start of the window, negative before it.
#[derive(Debug, Clone)]
pub struct Ticks {
    period_ns: i64,
    next: i64,
}

impl Ticks {
    /// Starts with the first tick at or after `now_ns`.
    pub fn starting(period_ns: i64, now_ns: i64) -> Self {
        assert!(period_ns > 0, "a period is positive");
        Self { period_ns, next: -(-now_ns).div_euclid(period_ns) }
    }

    pub fn due_ns(&self) -> i64 {
        self.next.saturating_mul(self.period_ns)
    }

    /// Serves the latest tick that has passed at `now_ns`. Returns its number, and how many earlier ticks were missed.
    ///
    /// Missed ticks are not sampled later. A burst of samples would contain no information about the missed time.
    pub fn serve(&mut self, now_ns: i64) -> (i64, u64) {
        let tick = now_ns.div_euclid(self.period_ns).max(self.next);
        let missed = tick - self.next;
        self.next = tick + 1;
        (tick, missed.unsigned_abs())
    }

    /// Doubles the period. Every second tick keeps its time, including tick 0.
    pub fn double(&mut self) {
        self.period_ns = self.period_ns.saturating_mul(2);
        self.next = self.next.div_euclid(2) + self.next.rem_euclid(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tick_zero_is_the_start_of_the_window_whenever_sampling_began() {
        for (began, expected) in
            [(-2_500, vec![-2_000, -1_000, 0, 1_000]), (0, vec![0, 1_000]), (1, vec![1_000, 2_000])]
        {
            let mut ticks = Ticks::starting(1_000, began);
            let times: Vec<i64> = expected
                .iter()
                .map(|_| {
                    let due = ticks.due_ns();
                    ticks.serve(due);
                    due
                })
                .collect();
            assert_eq!(times, expected);
        }
    }

    #[test]
    fn ticks_that_passed_unserved_are_counted() {
        let mut ticks = Ticks::starting(10, 0);
        assert_eq!(ticks.serve(3), (0, 0));
        assert_eq!(ticks.serve(47), (4, 3));
        assert_eq!(ticks.due_ns(), 50);
    }

    proptest! {
        #[test]
        fn served_and_missed_ticks_together_are_all_ticks(
            period in 1_i64..1_000, began in -5_000_i64..5_000, costs in prop::collection::vec(0_i64..5_000, 1..50)
        ) {
            let mut ticks = Ticks::starting(period, began);
            let first = ticks.due_ns() / period;
            prop_assert!(ticks.due_ns() >= began && ticks.due_ns() < began + period);
            let (mut now, mut served, mut missed) = (began, 0, 0);
            let mut last = 0;
            for cost in costs {
                now = now.max(ticks.due_ns());
                let (tick, late) = ticks.serve(now);
                prop_assert!(tick * period <= now && now < (tick + 1) * period);
                served += 1;
                missed += late as i64;
                last = tick;
                now += cost;
            }
            prop_assert_eq!(served + missed, last - first + 1);
        }

        #[test]
        fn doubling_never_goes_back_in_time_and_keeps_the_even_ticks(period in 1_i64..1_000, now in -50_000_i64..50_000) {
            let mut ticks = Ticks::starting(period, now);
            let due = ticks.due_ns();
            ticks.double();
            prop_assert!(ticks.due_ns() >= due && ticks.due_ns() <= due + period);
            prop_assert_eq!(ticks.due_ns() % (2 * period), 0);
        }
    }
}
