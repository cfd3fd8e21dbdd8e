//! Models what a drive gains by choosing among its queued commands.
//!
//! If several commands are queued, the drive executes the one that it can reach first (shortest positioning time
//! first). Source: Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position", HPL-CSP-91-7, 1991.
//! The model computes the completion time of a command when it arrives. The model cannot reorder commands, because it
//! does not know the later ones. Therefore the model keeps the order of arrival, and shortens seeks and rotational
//! delays by the mean gain at the current queue depth. This module computes the gain by simulating a drive with the
//! same geometry that chooses among random commands. Throughput and mean times match those of a drive that reorders
//! commands. Such a drive passes over some commands repeatedly. The long tail of latencies that results is not
//! modelled.

use pgbench_script::Random;

use super::seek::SeekCurve;

/// Queue depth beyond which the gain no longer grows.
const MAX_DEPTH: usize = 256;
const ROUNDS: usize = 3_000;

/// Mean positioning time at each queue depth, as a fraction of the mean positioning time at depth 1.
#[derive(Debug, Clone)]
pub struct QueueGain {
    fractions: Vec<f64>,
}

impl QueueGain {
    /// Computes the fractions. `revolution` is in nanoseconds. The same parameters always give the same result.
    pub fn new(seek: &SeekCurve, revolution: f64) -> Self {
        let depths: Vec<usize> = (0..).map(|power| 1 << power).take_while(|depth| *depth <= MAX_DEPTH).collect();
        let means: Vec<f64> = depths.iter().map(|depth| mean_positioning(seek, revolution, *depth)).collect();
        let share = |depth: usize| {
            let power = (depth as f64).log2();
            let below = (power.floor() as usize).min(means.len() - 2);
            let part = power - below as f64;
            (means[below] * (1.0 - part) + means[below + 1] * part) / means[0]
        };
        Self { fractions: (1..=MAX_DEPTH).map(share).collect() }
    }

    /// Returns the fraction at a queue depth of `depth`, which includes the current command.
    #[inline]
    pub fn fraction(&self, depth: usize) -> f64 {
        self.fractions[depth.clamp(1, MAX_DEPTH) - 1]
    }
}

/// Simulates a drive that always has `depth` queued commands at random places, and executes the one that it can reach
/// first. Returns the mean positioning time.
fn mean_positioning(seek: &SeekCurve, revolution: f64, depth: usize) -> f64 {
    let mut random = Random::new(depth as u64);
    let mut queued: Vec<(f64, f64)> = (0..depth).map(|_| (random.fraction(), random.fraction())).collect();
    let (mut arm, mut angle, mut total) = (0.5, 0.0, 0.0);
    // At larger depths, each round takes longer to compute, and the mean converges faster.
    let rounds = (ROUNDS * 16 / depth).clamp(400, ROUNDS);
    let settled = rounds / 10 + depth.min(rounds / 2);
    for round in 0..rounds + settled {
        let reach = |position: &(f64, f64)| {
            let seeking = seek.time(f64::abs(position.0 - arm));
            let waiting = (position.1 - angle - seeking / revolution).rem_euclid(1.0) * revolution;
            seeking + waiting
        };
        let times = queued.iter().map(reach).enumerate();
        let (nearest, time) = times.min_by(|a, b| a.1.total_cmp(&b.1)).expect("at least one command is held");
        (arm, angle) = queued[nearest];
        queued[nearest] = (random.fraction(), random.fraction());
        total += if round >= settled { time } else { 0.0 };
    }
    total / rounds as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_to_choose_from_never_takes_longer_and_a_lone_command_gains_nothing() {
        let gain = QueueGain::new(&SeekCurve::new(0.23e-3, 7.5e-3, 17.1e-3), 8.333e6);
        assert!((gain.fraction(1) - 1.0).abs() < 1e-12);
        let fractions: Vec<f64> = (1..=300).map(|depth| gain.fraction(depth)).collect();
        assert!(fractions.windows(2).all(|pair| pair[1] <= pair[0]), "{fractions:?}");
        assert!(fractions[31] > 0.2 && fractions[31] < 0.6, "{}", fractions[31]);
    }

    #[test]
    fn a_lone_command_waits_a_mean_seek_and_half_a_turn() {
        let mean = mean_positioning(&SeekCurve::new(0.23e-3, 7.5e-3, 17.1e-3), 8.333e6, 1);
        let book = 7.5e6 + 8.333e6 / 2.0;
        assert!((mean - book).abs() < book * 0.03, "{mean} {book}");
    }
}
