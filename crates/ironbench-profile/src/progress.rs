//! The number of transactions over time.

/// Points in time with the number of transactions that were completed until then.
#[derive(Default)]
pub struct Progress(Vec<(u64, u64)>);

impl Progress {
    /// Adds a point. Points must arrive in order of time.
    pub fn note(&mut self, time: u64, completed: u64) {
        self.0.push((time, completed));
    }

    /// Returns the number of transactions between two times, as if transactions were evenly spread between two points.
    pub fn between(&self, start: u64, end: u64) -> f64 {
        (self.at(end) - self.at(start)).max(0.0)
    }

    fn at(&self, time: u64) -> f64 {
        let next = self.0.partition_point(|&(at, _)| at < time);
        match (next.checked_sub(1).map(|place| self.0[place]), self.0.get(next)) {
            (Some((from, before)), Some(&(until, after))) => {
                let part = (time - from) as f64 / (until - from).max(1) as f64;
                before as f64 + part * (after - before) as f64
            }
            (Some((_, completed)), None) | (None, Some(&(_, completed))) => completed as f64,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_evenly_spread_between_two_points() {
        let mut progress = Progress::default();
        for (time, completed) in [(100, 5), (200, 25), (300, 25)] {
            progress.note(time, completed);
        }
        assert_eq!(progress.between(100, 300), 20.0);
        assert_eq!(progress.between(150, 200), 10.0);
        assert_eq!(progress.between(0, 110), 2.0);
        assert_eq!(progress.between(250, 900), 0.0);
        assert_eq!(Progress::default().between(0, 1), 0.0);
    }
}
