//! The device models, each a pure function of its parameters, its seed and its arrivals.

mod disk;
mod flash;
mod free;
pub(crate) mod line;
mod memory;
mod volume;

pub use disk::{Choice, Disk, checked as checked_disk, read_seek};
pub use flash::{Flash, Use, checked as checked_flash};
pub use free::Free;
pub use memory::Memory;
pub use volume::Volume;
