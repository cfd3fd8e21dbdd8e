//! From the figures of a data sheet to what happens inside.

use ironbench_core::{Error, Result};

use crate::figures::FlashFigures;

/// The block size of random figures on data sheets.
pub const BLOCK: f64 = 4096.0;

/// Many times the dies of the largest devices, and little memory: each unit has a state of its own.
const MOST_UNITS: u32 = 1 << 16;

/// Seconds for which a random read of 4 KiB occupies one of `units`, so that with `depth` reads outstanding `iops` are done.
///
/// The reads of a closed loop fall on units at random, so some units have a queue while others idle, and the units must be
/// faster than `iops / units`. Solved from approximate mean value analysis of a closed network of servers with constant
/// service times (Reiser, "A queueing network analysis of computer communication networks with window flow control",
/// IEEE Trans. Comm. 27(8), 1979, with Schweitzer's estimate of the queue an arrival finds).
pub fn read_occupancy(iops: f64, depth: f64, units: f64, latency: f64) -> f64 {
    let each = iops / units;
    let longest = (1.0 / each).min(latency);
    // How much longer a read of this occupancy takes than it may; grows with the occupancy.
    let excess = |occupancy: f64| {
        let allowed = depth / iops - latency + occupancy;
        let found = (depth - 1.0) / depth;
        let busy = each * occupancy;
        occupancy * (1.0 + found * (each * allowed - busy)) + found * busy * occupancy / 2.0 - allowed
    };
    let (mut low, mut high) = (0.0, longest);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Seconds of a random read of 4 KiB, in two places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reads {
    /// One after another through the controller.
    pub command: f64,
    /// Side by side in the units.
    pub occupancy: f64,
}

/// What limits random reads: units that collide, where the figures can be explained by that, else the controller. Units that
/// were the limit of a slow device would need longer for a read than the whole read takes on an idle device.
pub fn reads(figures: &FlashFigures) -> Reads {
    let (iops, units) = (figures.read_iops, f64::from(figures.units));
    let occupancy = read_occupancy(iops, f64::from(figures.read_depth), units, figures.read_latency);
    if occupancy < figures.read_latency * 0.99 {
        return Reads { command: 0.0, occupancy };
    }
    Reads { command: 1.0 / iops, occupancy: figures.read_latency - 1.0 / iops }
}

/// Flash writes per host write, when random writes go on for ever on a device filled to `fill` with a share `spare`
/// of its flash in reserve.
///
/// For uniformly random writes and cleaning in order of age, the share `u` of a block that is still valid when it is cleaned
/// solves `(1 - u) / -ln u = used` (Menon, "A performance comparison of RAID-5 and log-structured arrays", HPDC 1995;
/// Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012), and each write then costs `1 / (1 - u)`.
pub fn amplification(fill: f64, spare: f64) -> f64 {
    let used = (fill * (1.0 - spare)).clamp(0.0, 0.999);
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..60 {
        let valid = (low + high) / 2.0;
        if (1.0 - valid) / -valid.ln() < used { low = valid } else { high = valid }
    }
    1.0 / (1.0 - low)
}

/// Refuses figures that contradict each other.
pub fn checked(name: &str, figures: &FlashFigures) -> Result<()> {
    let fault = |cause: String| Err(Error::input(format!("device model {name}"), cause));
    let least = f64::from(figures.read_depth) / figures.read_iops;
    if figures.units == 0 || figures.read_depth == 0 {
        return fault("units and read_depth must be at least 1".into());
    }
    if figures.units > MOST_UNITS {
        return fault(format!("{} units are more than any device has: at most {MOST_UNITS}", figures.units));
    }
    if least < figures.read_latency {
        return fault(format!(
            "{:.0} reads/s at depth {} would take {:.1} us each, less than read_latency",
            figures.read_iops,
            figures.read_depth,
            least * 1e6
        ));
    }
    if figures.read_latency < 1.0 / figures.read_iops * 0.999 && figures.read_depth > 1 {
        return fault("its reads take less time than they would one after another".into());
    }
    if figures.sustained_write_iops > figures.write_iops || figures.sustained_write_rate > figures.write_rate {
        return fault("it writes faster for ever than while its buffer has room".into());
    }
    if figures.read_rate > figures.interface_rate || figures.write_rate > figures.interface_rate {
        return fault("it is faster than its interface".into());
    }
    if !(0.0..1.0).contains(&figures.spare) || !(0.0..=1.0).contains(&figures.rated_fill) {
        return fault("spare and rated_fill are shares from 0 to 1".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_without_reserve_writes_far_more_than_an_empty_one() {
        assert!(amplification(0.01, 0.1) < 1.001);
        // u = 0.807 solves (1 - u) / -ln u = 0.9.
        let tenth = amplification(1.0, 0.1);
        assert!((tenth - 1.0 / (1.0 - 0.807)).abs() < 0.05, "{tenth}");
        let amplified: Vec<f64> = (1..=100).map(|fill| amplification(f64::from(fill) / 100.0, 0.07)).collect();
        assert!(amplified.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn units_are_faster_than_their_share_of_the_rate_because_reads_collide() {
        let occupancy = read_occupancy(35_000.0, 32.0, 10.0, 75e-6);
        assert!(occupancy < 10.0 / 35_000.0);
        let alone = read_occupancy(35_000.0, 1e6, 10.0, 75e-6);
        assert!(alone <= 75e-6);
    }
}
