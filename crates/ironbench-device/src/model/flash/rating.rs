//! Derives the internal parameters of a model from the figures of a data sheet.

use ironbench_core::{Error, Result};

use crate::parameters::FlashParameters;

/// Block size of random I/O in data sheets.
pub const BLOCK: f64 = 4096.0;

/// Maximum number of units. This is many times the number of dies of the largest devices, and a unit takes little
/// memory.
const MAX_UNITS: u32 = 1 << 16;

/// Returns how many seconds a random 4 KiB read occupies one of `units`, so that `depth` outstanding reads give `iops`.
///
/// The outstanding reads hit units at random, so some units have a queue while others are idle. Therefore each unit
/// must be faster than `iops / units`. The result comes from approximate mean value analysis of a closed network of
/// servers with constant service times. Sources: Reiser, "A queueing network analysis of computer communication
/// networks with window flow control", IEEE Trans. Comm. 27(8), 1979; Schweitzer's estimate of the queue that an
/// arrival finds.
pub fn read_occupancy(iops: f64, depth: f64, units: f64, latency: f64) -> f64 {
    let each = iops / units;
    let longest = (1.0 / each).min(latency);
    // The result is the time by which a read with this occupancy takes too long. This time grows with the occupancy.
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

/// Time of a random 4 KiB read in seconds, in the controller and in a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadTimes {
    /// Time in the controller, which serves one read at a time.
    pub command: f64,
    /// Time in one of the parallel units.
    pub occupancy: f64,
}

/// Determines the bottleneck of random reads. Usually it is the collision of reads in units. On a slow device, this
/// would require a time in a unit that exceeds the latency of a whole read on an idle device. In this case, the
/// controller is the bottleneck.
pub fn read_times(parameters: &FlashParameters) -> ReadTimes {
    let (iops, units) = (parameters.read_iops, f64::from(parameters.units));
    let occupancy = read_occupancy(iops, f64::from(parameters.read_depth), units, parameters.read_latency);
    if occupancy < parameters.read_latency * 0.99 {
        return ReadTimes { command: 0.0, occupancy };
    }
    ReadTimes { command: 1.0 / iops, occupancy: parameters.read_latency - 1.0 / iops }
}

/// Returns the write amplification, which is the number of flash writes per host write, for sustained random writes.
/// `fill` is the fill level of the device, and `spare` is the over-provisioned fraction of its flash.
///
/// Writes are uniformly random, and blocks are cleaned in order of age.
/// The fraction `u` of a block that is still valid when it is cleaned solves `(1 - u) / -ln u = used`.
/// A write then costs `1 / (1 - u)`.
/// Sources: Menon, "A performance comparison of RAID-5 and log-structured arrays", HPDC 1995;
/// Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.
pub fn amplification(fill: f64, spare: f64) -> f64 {
    let usage = (fill * (1.0 - spare)).clamp(0.0, 0.999);
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..60 {
        let valid = (low + high) / 2.0;
        if (1.0 - valid) / -valid.ln() < usage { low = valid } else { high = valid }
    }
    1.0 / (1.0 - low)
}

/// Rejects parameters that contradict each other.
pub fn checked(name: &str, parameters: &FlashParameters) -> Result<()> {
    let fault = |cause: String| Err(Error::input(format!("device model {name}"), cause));
    let least = f64::from(parameters.read_depth) / parameters.read_iops;
    if parameters.units == 0 || parameters.read_depth == 0 {
        return fault("units and read_depth must be at least 1".into());
    }
    if parameters.units > MAX_UNITS {
        return fault(format!("{} units exceed the maximum of {MAX_UNITS}", parameters.units));
    }
    if least < parameters.read_latency {
        return fault(format!(
            "{:.0} reads/s at depth {} would take {:.1} us each, less than read_latency",
            parameters.read_iops,
            parameters.read_depth,
            least * 1e6
        ));
    }
    if parameters.read_latency < 1.0 / parameters.read_iops * 0.999 && parameters.read_depth > 1 {
        return fault("reads are faster than the latency of a single read allows".into());
    }
    if parameters.sustained_write_iops > parameters.write_iops
        || parameters.sustained_write_rate > parameters.write_rate
    {
        return fault("the sustained write rate exceeds the rate into an empty buffer".into());
    }
    if parameters.read_rate > parameters.interface_rate || parameters.write_rate > parameters.interface_rate {
        return fault("a rate exceeds the rate of the interface".into());
    }
    if !(0.0..1.0).contains(&parameters.spare) || !(0.0..=1.0).contains(&parameters.rated_fill) {
        return fault("spare and rated_fill must be between 0 and 1".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_without_reserve_writes_far_more_than_an_empty_one() {
        assert!(amplification(0.01, 0.1) < 1.001);
        // The value u = 0.807 solves (1 - u) / -ln u = 0.9.
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
