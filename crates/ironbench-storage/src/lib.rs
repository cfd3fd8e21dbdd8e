//! Measures storage without a database. One pass reads or writes files, sequentially or randomly, at a given queue
//! depth.
//!
//! The caller creates, sizes, fills and removes the files. This crate only reads and writes their blocks.

mod blocking;
mod buffer;
mod plan;
mod record;
mod sequence;
#[cfg(test)]
mod tests;
mod threads;
mod uring;

pub use plan::{Io, Order, Pass, Sync, Until};
pub use record::{Outcome, Summary};
pub use threads::{Progress, run};

#[cfg(test)]
pub(crate) mod testing {
    use super::{Io, Order, Pass, Sync, Until};

    /// Returns a pass of random 4 KiB reads in a file of 1 MiB.
    pub fn pass() -> Pass {
        Pass {
            files: vec![0],
            file_bytes: 1 << 20,
            block_bytes: 4096,
            order: Order::Random,
            depth: 4,
            threads: 1,
            read_percent: 100,
            zero_percent: 0,
            sync: Sync::None,
            sync_at_end: false,
            small_pages: false,
            evict: false,
            until: Until::Seconds(0.05),
            io: Io::Auto,
            seed: 1,
            cpus: Vec::new(),
        }
    }
}
