//! Parameters of the models, from data sheets. The units are seconds, bytes, and numbers per second.

use std::collections::BTreeMap;

use ironbench_core::{Error, Result};
use serde::Deserialize;

/// Models by name. A device may consist of several models.
#[derive(Debug, Clone, Default)]
pub struct Models(BTreeMap<String, ModelParameters>);

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ModelParameters {
    Free(ZeroLatencyParameters),
    Memory(MemoryParameters),
    Disk(DiskParameters),
    Flash(FlashParameters),
    Volume(VolumeParameters),
    /// A controller or a bus, which stores no data and is shared by the devices behind it.
    Controller(ControllerParameters),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroLatencyParameters {
    pub capacity: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryParameters {
    pub capacity: f64,
    /// Latency of one access.
    pub latency: f64,
    pub rate: f64,
}

/// Parameters of a rotating disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskParameters {
    pub capacity: f64,
    /// Revolutions per minute.
    pub rpm: f64,
    pub seek_track_read: f64,
    pub seek_average_read: f64,
    pub seek_full_read: f64,
    pub seek_track_write: f64,
    pub seek_average_write: f64,
    pub seek_full_write: f64,
    /// Media transfer rate on the outermost track. The next field is the rate on the innermost track.
    pub rate_outer: f64,
    pub rate_inner: f64,
    pub interface_rate: f64,
    /// Time per command in the drive's electronics.
    pub overhead: f64,
    /// Number of queued commands from which the drive chooses the next one.
    pub queue: u32,
    /// Size of the volatile cache. The cache is used for writes if `write_cache` is set.
    pub cache: f64,
    pub write_cache: bool,
    /// Number of bytes that the drive reads ahead after a sequential read.
    pub read_ahead: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParameters {
    pub capacity: f64,
    /// Number of units that work in parallel. The units are channels, or dies if the controller interleaves them.
    pub units: u32,
    /// Number of bytes that a unit reads or programs at a time.
    pub page: f64,
    /// Time that a unit needs to switch between reading and programming.
    pub switch: f64,
    /// Total latency of one 4 KiB read on an idle device.
    pub read_latency: f64,
    /// 4 KiB random reads per second at queue depth `read_depth`.
    pub read_iops: f64,
    pub read_depth: u32,
    /// Sequential read rate.
    pub read_rate: f64,
    /// Total latency of one 4 KiB write on an idle device.
    pub write_latency: f64,
    /// 4 KiB random writes per second while the buffer has room.
    pub write_iops: f64,
    /// Sequential write rate while the buffer has room.
    pub write_rate: f64,
    /// Sustained 4 KiB random writes per second, at fill level `rated_fill`.
    pub sustained_write_iops: f64,
    /// Sustained sequential write rate.
    pub sustained_write_rate: f64,
    pub interface_rate: f64,
    /// Whether the interface transfers reads and writes at the same time.
    pub duplex: bool,
    /// Size of the memory that buffers writes before they are written to flash.
    pub buffer: f64,
    /// Size of the fast (SLC) flash to which data are written first. A device with a smaller capacity than this model
    /// has proportionally less of it.
    pub quick_flash: f64,
    pub write_cache: bool,
    /// Whether the buffer survives a power cut, so that a flush need not empty it.
    pub protected: bool,
    /// Latency of a flush on an idle device.
    pub flush_latency: f64,
    /// Fraction of the flash that is spare (over-provisioning).
    pub spare: f64,
    /// Fill level, 0 to 1, at which `sustained_write_iops` was rated.
    pub rated_fill: f64,
    /// Whether the device compresses data, so that it writes less. The rates in these parameters are for data that
    /// cannot be compressed.
    pub compresses: bool,
    /// Host CPU time per I/O that exceeds the CPU time of an ordinary driver.
    pub host_cpu: f64,
}

/// Parameters of a cloud volume: purchased limits, and a latency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeParameters {
    pub capacity: f64,
    pub iops: f64,
    pub rate: f64,
    pub read_latency: f64,
    pub write_latency: f64,
    /// Maximum size of an operation. A larger I/O counts as several operations. Sequential smaller I/Os are merged up
    /// to this size.
    pub io_size: f64,
    /// Unused operations and bytes accumulate for up to this time.
    pub burst: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerParameters {
    pub rate: f64,
    pub iops: f64,
    /// Latency added to every I/O.
    pub latency: f64,
    /// Size of the battery-backed write cache.
    pub cache: f64,
    pub write_cache: bool,
}

impl Models {
    /// Parses models from JSON: an object that maps the name of each model to its `kind` and its parameters.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let table: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(json).map_err(|error| Error::input("device models", error.to_string()))?;
        let mut models = BTreeMap::new();
        for (name, row) in table {
            let parameters = serde_json::from_value(row)
                .map_err(|error| Error::input(format!("device model {name}"), error.to_string()))?;
            models.insert(name, parameters);
        }
        Ok(Self(models))
    }

    pub fn get(&self, name: &str) -> Option<&ModelParameters> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the names of the models that store data.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(_, parameters)| !matches!(parameters, ModelParameters::Controller(_)))
            .map(|(name, _)| name.as_str())
    }

    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(_, parameters)| matches!(parameters, ModelParameters::Controller(_)))
            .map(|(name, _)| name.as_str())
    }
}
