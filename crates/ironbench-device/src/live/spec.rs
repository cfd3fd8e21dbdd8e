//! The specification of a live device. The specification is passed to the process that runs the device.

use std::path::PathBuf;

use ironbench_core::{Error, Result};
use serde::Deserialize;

use crate::{Device, Models, ZeroLatency, build, parse};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// A device expression.
    pub model: String,
    /// The models for the expression. Each name has a kind and parameters in base units.
    #[serde(default)]
    pub models: serde_json::Value,
    pub seed: u64,
    /// Partitions, in their order on the device.
    pub partitions: Vec<PartitionSpec>,
    /// Directory of the images. With None, the images are in memory.
    pub backing: Option<PathBuf>,
    /// Whether a power cut must be possible. If so, the old and the new bytes of every write are kept until it is
    /// flushed.
    pub cuttable: bool,
    /// File for the trace of I/Os, in the format that `trace_writer` describes. With None, there is no trace.
    #[serde(default)]
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionSpec {
    pub name: String,
    pub bytes: u64,
}

impl DeviceSpec {
    pub fn read(json: &[u8]) -> Result<Self> {
        let spec: Self =
            serde_json::from_slice(json).map_err(|error| Error::input("live device", error.to_string()))?;
        if spec.partitions.is_empty() || spec.partitions.iter().any(|one| one.bytes == 0 || one.bytes % 4096 != 0) {
            return Err(Error::input("live device", "a partition must consist of pages of 4096 bytes"));
        }
        Ok(spec)
    }

    pub fn capacity(&self) -> u64 {
        self.partitions.iter().map(|one| one.bytes).sum()
    }

    pub fn device(&self) -> Result<Box<dyn Device>> {
        if self.models.is_null() && self.model == "free" {
            return Ok(Box::new(ZeroLatency::new(self.capacity())));
        }
        let models = Models::from_json(self.models.to_string().as_bytes())?;
        build(&parse(&self.model)?, &models, Some(self.capacity()), self.seed)
    }
}
