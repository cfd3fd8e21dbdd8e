//! What a model is made of: the figures of its data sheet, in seconds, bytes, and per second.

use std::collections::BTreeMap;

use ironbench_core::{Error, Result};
use serde::Deserialize;

/// Models by name. One device may be made of several.
#[derive(Debug, Clone, Default)]
pub struct Models(BTreeMap<String, Figures>);

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Figures {
    Free(FreeFigures),
    Memory(MemoryFigures),
    Disk(DiskFigures),
    Flash(FlashFigures),
    Volume(VolumeFigures),
    /// Shared by what is behind it: a controller or a bus. Holds no data.
    Controller(ControllerFigures),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeFigures {
    pub capacity: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryFigures {
    pub capacity: f64,
    /// Of one access.
    pub latency: f64,
    pub rate: f64,
}

/// A rotating disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskFigures {
    pub capacity: f64,
    /// Revolutions per minute.
    pub rpm: f64,
    pub seek_track_read: f64,
    pub seek_average_read: f64,
    pub seek_full_read: f64,
    pub seek_track_write: f64,
    pub seek_average_write: f64,
    pub seek_full_write: f64,
    /// Of the media, on the outermost and the innermost track.
    pub rate_outer: f64,
    pub rate_inner: f64,
    pub interface_rate: f64,
    /// Of the drive's electronics, per command.
    pub overhead: f64,
    /// Commands among which the drive chooses.
    pub queue: u32,
    /// Volatile memory: holds written data while `write_cache` is on.
    pub cache: f64,
    pub write_cache: bool,
    /// What the drive reads on by itself behind a sequential read.
    pub read_ahead: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashFigures {
    pub capacity: f64,
    /// What works side by side inside: channels, or dies where the controller interleaves them.
    pub units: u32,
    /// What one unit reads or programs in one go.
    pub page: f64,
    /// What a unit loses each time it turns from reading to programming or back.
    pub switch: f64,
    /// Of one 4 KiB read on an idle device, all in all.
    pub read_latency: f64,
    /// 4 KiB random reads per second at `read_depth`.
    pub read_iops: f64,
    pub read_depth: u32,
    /// Sequential.
    pub read_rate: f64,
    /// Of one 4 KiB write on an idle device, all in all.
    pub write_latency: f64,
    /// 4 KiB random writes per second while the buffer has room.
    pub write_iops: f64,
    /// Sequential, while the buffer has room.
    pub write_rate: f64,
    /// 4 KiB random writes per second for ever, at `rated_fill`.
    pub sustained_write_iops: f64,
    /// Sequential, for ever.
    pub sustained_write_rate: f64,
    pub interface_rate: f64,
    /// Whether reads and writes pass the interface at the same time.
    pub duplex: bool,
    /// Memory that takes writes before flash does.
    pub buffer: f64,
    /// Flash that takes writes quickly before they move on; shrinks with the capacity.
    pub quick_flash: f64,
    pub write_cache: bool,
    /// Whether the buffer survives a power cut, so that a flush need not empty it.
    pub protected: bool,
    /// Of a flush on an idle device.
    pub flush_latency: f64,
    /// Share of the flash that is kept in reserve.
    pub spare: f64,
    /// How full the device was when `sustained_write_iops` was rated; 0 to 1.
    pub rated_fill: f64,
    /// Whether it writes less where data can be compressed. The rates here are those of incompressible data.
    pub compresses: bool,
    /// Of the host's CPU, per I/O, beyond that of an ordinary driver.
    pub host_cpu: f64,
}

/// A volume in a cloud: limits that are sold, on top of a latency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeFigures {
    pub capacity: f64,
    pub iops: f64,
    pub rate: f64,
    pub read_latency: f64,
    pub write_latency: f64,
    /// An I/O of more counts as several; sequential ones of less count as one up to this.
    pub io_size: f64,
    /// Time for which unused operations and bytes are saved up.
    pub burst: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerFigures {
    pub rate: f64,
    pub iops: f64,
    /// Added to every I/O.
    pub latency: f64,
    /// Memory with a battery that takes writes.
    pub cache: f64,
    pub write_cache: bool,
}

impl Models {
    /// From JSON: name → figures with their `kind`.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let table: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(json).map_err(|error| Error::input("device models", error.to_string()))?;
        let mut models = BTreeMap::new();
        for (name, row) in table {
            let figures = serde_json::from_value(row)
                .map_err(|error| Error::input(format!("device model {name}"), error.to_string()))?;
            models.insert(name, figures);
        }
        Ok(Self(models))
    }

    pub fn get(&self, name: &str) -> Option<&Figures> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Of what holds data.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, figures)| !matches!(figures, Figures::Controller(_))).map(|(name, _)| name.as_str())
    }

    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, figures)| matches!(figures, Figures::Controller(_))).map(|(name, _)| name.as_str())
    }
}
