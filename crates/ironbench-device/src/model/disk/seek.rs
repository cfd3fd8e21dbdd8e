//! Seek time as a function of distance.

/// The curve `a + b √d + c d` for distances `d` from 0 to 1 of the full stroke.
///
/// The curve is fitted to three values from a data sheet, following Lee and Katz, "An analytic performance model of
/// disk arrays" (SIGMETRICS 1993). The square root describes the arm while it accelerates and decelerates. The linear
/// term describes the arm at full speed. Over uniformly random pairs of tracks the mean of √d is 8/15 and the mean of d
/// is 1/3.
#[derive(Debug, Clone, Copy)]
pub struct SeekCurve {
    constant: f64,
    root: f64,
    linear: f64,
}

impl SeekCurve {
    /// Fits the curve to the seek time to the next track, the average over random pairs of tracks, and the full stroke.
    /// These times are in seconds, and the curve is in nanoseconds.
    pub fn new(track: f64, average: f64, full: f64) -> Self {
        let root = 5.0 * ((average - track) - (full - track) / 3.0);
        Self { constant: track * 1e9, root: root * 1e9, linear: (full - track - root) * 1e9 }
    }

    /// Whether the seek time never decreases with the distance. Parameters for which it decreases are impossible for a
    /// disk.
    pub fn is_monotone(&self) -> bool {
        // The slope b/(2√d) + c has its minimum at one of the two ends.
        self.root >= 0.0 && self.root / 2.0 + self.linear >= 0.0
    }

    #[inline]
    pub fn time(&self, distance: f64) -> f64 {
        self.constant + self.root * distance.sqrt() + self.linear * distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_the_three_figures_it_was_made_of() {
        let seek = SeekCurve::new(0.23e-3, 7.5e-3, 17.1e-3);
        assert!(seek.is_monotone());
        assert!((seek.time(0.0) - 0.23e6).abs() < 1.0);
        assert!((seek.time(1.0) - 17.1e6).abs() < 1.0);
        let n = 1000;
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| f64::from(i32::abs(a - b)) / f64::from(n)));
        let mean = pairs.map(|d| seek.time(d)).sum::<f64>() / f64::from(n * n);
        assert!((mean - 7.5e6).abs() < 7.5e6 * 0.002, "{mean}");
    }

    #[test]
    fn figures_no_arm_could_have_are_seen() {
        assert!(!SeekCurve::new(1e-3, 2e-3, 20e-3).is_monotone());
        assert!(!SeekCurve::new(1e-3, 19e-3, 20e-3).is_monotone());
    }
}
