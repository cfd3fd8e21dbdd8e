//! The place of a byte on the platter: its track, its angle, and how fast it passes the head.
//!
//! Zones are smoothed into a rate that decreases linearly from the outermost to the innermost track. Data sheets give
//! only the rates of these two tracks. Addresses run from outside to inside. At the end of a track, the next track
//! begins without a gap, which real disks achieve by track skew.

/// Converts byte offsets to positions and angles. A position is a fraction of the distance from the outermost track (0)
/// to the innermost (1). Angles are in revolutions.
#[derive(Debug, Clone)]
pub struct Geometry {
    outer: f64,
    inner: f64,
    surface: f64,
    /// Number of tracks, if a single head read all of them in sequence.
    tracks: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackPosition {
    /// Track, from 0 (outermost) to 1 (innermost).
    pub track: f64,
    /// Angle from 0 to 1.
    pub angle: f64,
    /// Rate in bytes per nanosecond.
    pub rate: f64,
}

impl Geometry {
    /// Creates the geometry of a disk with `surface` bytes. Rates are in bytes per second, `revolution` in nanoseconds.
    pub fn new(surface: f64, outer: f64, inner: f64, revolution: f64) -> Self {
        let (outer, inner) = (outer / 1e9, inner / 1e9);
        let mean_track = (outer + inner) / 2.0 * revolution;
        Self { outer, inner, surface, tracks: surface / mean_track }
    }

    pub fn position(&self, offset: u64) -> TrackPosition {
        let share = offset as f64 / self.surface;
        let slope = self.outer - self.inner;
        // The number of bytes up to a track is the integral of the rate over the tracks. The equation is solved here
        // for the track.
        let track = if slope <= self.outer * 1e-9 {
            share
        } else {
            let mean = (self.outer + self.inner) / 2.0;
            (self.outer - (self.outer * self.outer - 2.0 * slope * mean * share).max(0.0).sqrt()) / slope
        };
        let turns = track * self.tracks;
        TrackPosition { track, angle: turns - turns.floor(), rate: self.outer - slope * track }
    }

    /// Whether two places are on the same track, so that no seek is needed between them.
    pub fn same_track(&self, a: f64, b: f64) -> bool {
        (a - b).abs() * self.tracks < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REVOLUTION: f64 = 8_333_333.0;

    #[test]
    fn the_ends_of_the_disk_have_the_rates_of_the_data_sheet() {
        let geometry = Geometry::new(4e12, 175e6, 83e6, REVOLUTION);
        let (first, last) = (geometry.position(0), geometry.position(4_000_000_000_000));
        assert!((first.rate * 1e9 - 175e6).abs() < 1.0 && first.track == 0.0);
        assert!((last.rate * 1e9 - 83e6).abs() < 1e3 && (last.track - 1.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn bytes_that_pass_the_head_turn_the_disk_as_far(offset in 0u64..3_900_000_000_000, length in 1u64..500_000) {
            let geometry = Geometry::new(4e12, 175e6, 83e6, REVOLUTION);
            let (from, to) = (geometry.position(offset), geometry.position(offset + length));
            let turned = length as f64 / from.rate / REVOLUTION;
            let apart = (to.angle - from.angle).rem_euclid(1.0);
            let error = (apart - turned).rem_euclid(1.0);
            prop_assert!(error.min(1.0 - error) < 1e-4, "{} {}", apart, turned);
            prop_assert!(to.track >= from.track);
        }
    }
}
