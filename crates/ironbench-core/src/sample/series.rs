//! The samples of one source, limited to a number of bytes.

use super::SourceSamples;

/// Memory of a sample in addition to its bytes: time, tick, and the vector's header.
const OVERHEAD_BYTES: usize = std::mem::size_of::<Sample>();

/// Samples of one source in order of time, and counts of what is missing.
#[derive(Debug)]
pub struct Series {
    pub name: String,
    pub dropped: u64,
    pub missed: u64,
    samples: Vec<Sample>,
    bytes: usize,
    keep_bytes: usize,
}

#[derive(Debug)]
struct Sample {
    t_ns: i64,
    /// Number of the tick, in units of the current period. The value is None if the sample must not be dropped: it is a
    /// mark, or the sample at the start of the window.
    tick: Option<i64>,
    raw: Vec<u8>,
}

impl Series {
    pub fn new(name: &str, keep_bytes: usize) -> Self {
        Self { name: name.to_owned(), dropped: 0, missed: 0, samples: Vec::new(), bytes: 0, keep_bytes }
    }

    /// Adds a sample. If the memory limit is reached, drops every second sample and returns true. The caller must then
    /// double the period.
    ///
    /// The sample at the start of the window (tick 0) and marks (`tick` is None) are never dropped.
    pub fn push(&mut self, t_ns: i64, tick: Option<i64>, raw: &[u8]) -> bool {
        self.bytes += raw.len() + OVERHEAD_BYTES;
        self.samples.push(Sample { t_ns, tick: tick.filter(|&tick| tick != 0), raw: raw.to_vec() });
        let full = self.bytes > self.keep_bytes;
        if full {
            self.thin();
        }
        full
    }

    /// Drops the samples of odd ticks. The remaining samples are at the ticks of the doubled period.
    fn thin(&mut self) {
        let before = self.samples.len();
        self.samples.retain(|sample| sample.tick.is_none_or(|tick| tick % 2 == 0));
        self.dropped += (before - self.samples.len()) as u64;
        for sample in &mut self.samples {
            sample.tick = sample.tick.map(|tick| tick / 2);
        }
        self.bytes = self.samples.iter().map(|sample| sample.raw.len() + OVERHEAD_BYTES).sum();
    }

    pub fn into_samples(self) -> SourceSamples {
        let samples = self.samples.into_iter().map(|sample| (sample.t_ns as f64 / 1e9, sample.raw));
        (self.name, samples.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn thinning_keeps_an_even_grid_and_the_marks_within_the_cap(
            cap in 2_000_usize..20_000, size in 0_usize..200, ticks in 1_i64..2_000, mark_every in 500_i64..700
        ) {
            let mut series = Series::new("s", cap);
            let (mut step, mut pushed, mut marks) = (1_i64, 0_u64, 0_usize);
            for t in 0..ticks {
                if t % mark_every == mark_every - 1 {
                    step *= if series.push(t, None, &vec![0; size]) { 2 } else { 1 };
                    pushed += 1;
                    marks += 1;
                }
                if t % step == 0 {
                    step *= if series.push(t, Some(t / step), &vec![0; size]) { 2 } else { 1 };
                    pushed += 1;
                }
                prop_assert!(series.bytes <= cap + 6 * (size + OVERHEAD_BYTES));
            }
            prop_assert_eq!(series.samples.len() as u64 + series.dropped, pushed);
            let kept_marks = series.samples.iter().filter(|s| s.tick.is_none()).count();
            prop_assert_eq!(kept_marks, marks + 1, "tick 0 counts as a mark");
            let on_grid = series.samples.iter().filter_map(|s| s.tick.map(|tick| (s.t_ns, tick)));
            for (t, tick) in on_grid {
                prop_assert_eq!(t, tick * step);
            }
        }
    }
}
