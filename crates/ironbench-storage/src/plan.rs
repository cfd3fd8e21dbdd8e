//! The plan of one pass, as JSON. The module `src/ironbench/workloads/storage/passes.py` writes the JSON.

use std::os::fd::RawFd;

use ironbench_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// Maximum queue depth, more than any known profile uses.
const MAX_DEPTH: u32 = 1024;
const MAX_THREADS: u32 = 256;
const LARGEST_BLOCK: u32 = 64 << 20;
/// Alignment of I/Os. Direct I/O must be aligned to the logical block size of the device (open(2)). The page size is a
/// multiple of every logical block size in use.
pub const ALIGNMENT: usize = 4096;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Open files, used at the same time. The caller remains their owner. Each file has `file_bytes`.
    pub files: Vec<RawFd>,
    pub file_bytes: u64,
    pub block_bytes: u32,
    pub order: Order,
    /// Queue depth of each thread.
    pub depth: u32,
    /// Number of threads for each file.
    pub threads: u32,
    /// Percentage of I/Os that are reads.
    pub read_percent: u32,
    /// Percentage of written bytes that are zeros. The other bytes are random.
    pub zero_percent: u32,
    /// Sync operation after each write.
    pub sync: Sync,
    /// Whether all written data are flushed to stable storage at the end. The time for this is a part of the pass.
    pub sync_at_end: bool,
    /// Whether buffers are in pages of the ordinary size, as in most programs, and not in huge pages.
    pub small_pages: bool,
    /// Whether the file is evicted from the page cache before each scan, so that the scan reads from the device.
    pub evict: bool,
    pub until: Until,
    pub io: Io,
    pub seed: u64,
    /// CPUs on which the threads run. If there are none, they may run on any CPU.
    pub cpus: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Sequential,
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    None,
    Fsync,
    Fdatasync,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    Seconds(f64),
    /// Number of bytes per file.
    Bytes(u64),
    /// Whichever limit is reached first.
    FirstOf {
        seconds: f64,
        bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    Auto,
    IoUring,
    Threads,
}

impl Pass {
    /// Checks the plan.
    ///
    /// # Errors
    /// Input: a value is out of range.
    pub fn validate(&self) -> Result<()> {
        let block = u64::from(self.block_bytes);
        let wrong = [
            (self.files.is_empty(), "names no file"),
            (block == 0 || self.block_bytes > LARGEST_BLOCK, "a block must have 1 byte to 64 MiB"),
            (
                block > 0 && (self.file_bytes < block || !self.file_bytes.is_multiple_of(block)),
                "a file must consist of whole blocks",
            ),
            (!(1..=MAX_DEPTH).contains(&self.depth), "a thread must have 1 to 1024 I/Os in flight"),
            (!(1..=MAX_THREADS).contains(&self.threads), "a file must have 1 to 256 threads"),
            (self.read_percent > 100 || self.zero_percent > 100, "a percentage must be at most 100"),
            (
                matches!(self.until, Until::Seconds(s) | Until::FirstOf { seconds: s, .. } if !(s > 0.0 && s < 1e6)),
                "must last longer than 0 s",
            ),
            (self.sync != Sync::None && self.depth > 1, "synced writes need queue depth 1"),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, cause)) => Err(Error::input("storage pass", *cause)),
            None => Ok(()),
        }
    }

    /// Returns the number of blocks in a file.
    pub fn blocks(&self) -> u64 {
        self.file_bytes / u64::from(self.block_bytes)
    }
}
