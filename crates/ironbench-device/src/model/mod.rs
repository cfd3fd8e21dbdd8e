//! The device models, each a pure function of its parameters, its seed and its arrivals.

mod disk;
pub(crate) mod fifo_server;
mod flash;
mod memory;
mod volume;
mod zero_latency;

pub use disk::{Disk, QueueGain, checked as checked_disk, read_seek};
pub use flash::{Flash, Usage, checked as checked_flash};
pub use memory::Memory;
pub use volume::Volume;
pub use zero_latency::ZeroLatency;
