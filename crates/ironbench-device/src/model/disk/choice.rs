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

use super::seek::Seek;

/// Queue depth beyond which the gain no longer grows.
const DEEPEST: usize = 256;
const ROUNDS: usize = 3_000;

/// Mean positioning time at each queue depth, as a fraction of the mean positioning time at depth 1.
#[derive(Debug, Clone)]
pub struct Choice {
    shares: Vec<f64>,
}

impl Choice {
    /// Computes the fractions. `revolution` is in nanoseconds. The same parameters always give the same result.
    pub fn new(seek: &Seek, revolution: f64) -> Self {
        let depths: Vec<usize> = (0..).map(|power| 1 << power).take_while(|depth| *depth <= DEEPEST).collect();
        let means: Vec<f64> = depths.iter().map(|depth| mean_positioning(seek, revolution, *depth)).collect();
        let share = |depth: usize| {
            let power = (depth as f64).log2();
            let below = (power.floor() as usize).min(means.len() - 2);
            let part = power - below as f64;
            (means[below] * (1.0 - part) + means[below + 1] * part) / means[0]
        };
        Self { shares: (1..=DEEPEST).map(share).collect() }
    }

    /// Returns the fraction at a queue depth of `held`, which includes the current command.
    #[inline]
    pub fn share(&self, held: usize) -> f64 {
        self.shares[held.clamp(1, DEEPEST) - 1]
    }
}

/// Simulates a drive that always has `depth` queued commands at random places, and executes the one that it can reach
/// first. Returns the mean positioning time.
fn mean_positioning(seek: &Seek, revolution: f64, depth: usize) -> f64 {
    let mut random = Random::new(depth as u64);
    let mut held: Vec<(f64, f64)> = (0..depth).map(|_| (random.fraction(), random.fraction())).collect();
    let (mut arm, mut angle, mut total) = (0.5, 0.0, 0.0);
    // At larger depths, each round takes longer to compute, and the mean converges faster.
    let rounds = (ROUNDS * 16 / depth).clamp(400, ROUNDS);
    let settled = rounds / 10 + depth.min(rounds / 2);
    for round in 0..rounds + settled {
        let reach = |place: &(f64, f64)| {
            let seeking = seek.time(f64::abs(place.0 - arm));
            let waiting = (place.1 - angle - seeking / revolution).rem_euclid(1.0) * revolution;
            seeking + waiting
        };
        let times = held.iter().map(reach).enumerate();
        let (nearest, time) = times.min_by(|a, b| a.1.total_cmp(&b.1)).expect("at least one command is held");
        (arm, angle) = held[nearest];
        held[nearest] = (random.fraction(), random.fraction());
        total += if round >= settled { time } else { 0.0 };
    }
    total / rounds as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_to_choose_from_never_takes_longer_and_a_lone_command_gains_nothing() {
        let choice = Choice::new(&Seek::new(0.23e-3, 7.5e-3, 17.1e-3), 8.333e6);
        assert!((choice.share(1) - 1.0).abs() < 1e-12);
        let shares: Vec<f64> = (1..=300).map(|held| choice.share(held)).collect();
        assert!(shares.windows(2).all(|pair| pair[1] <= pair[0]), "{shares:?}");
        assert!(shares[31] > 0.2 && shares[31] < 0.6, "{}", shares[31]);
    }

    #[test]
    fn a_lone_command_waits_a_mean_seek_and_half_a_turn() {
        let mean = mean_positioning(&Seek::new(0.23e-3, 7.5e-3, 17.1e-3), 8.333e6, 1);
        let book = 7.5e6 + 8.333e6 / 2.0;
        assert!((mean - book).abs() < book * 0.03, "{mean} {book}");
    }
}
