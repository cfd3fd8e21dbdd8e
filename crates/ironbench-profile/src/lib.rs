//! Profiles of a database and its client, sampled by the kernel's performance events (perf_event_open(2)).
//!
//! There are two kinds of profile. `cpu` samples the stacks of running threads at a fixed rate. `wait` records how long
//! each thread was off the CPU, the stack at which it waited, and the stack that woke it. `wait` uses the scheduler's
//! switches for this. If there are many switches, they are recorded only in a part of the time.
//!
//! The kernel writes records to one ring buffer per CPU. One thread reads the ring buffers, sorts the records by time,
//! converts addresses to offsets in files (so that the processes may end before the profile does), and counts stacks.
//! Function names are looked up at the end. All memory is limited. At a limit, frames are merged into their callers,
//! and samples into longer time buckets.

mod access;
mod collect;
mod event;
mod processes;
mod profile;
mod profiler;
mod progress;
mod record;
mod ring;
mod space;
mod stacks;
mod symbols;
mod timeline;
mod traced;
mod tracefs;
mod unwind;
mod waits;

pub use access::available;
pub use processes::Role;
pub use profile::{Line, Profile};
pub use profiler::{Kind, Profiler};
pub use waits::Reason;
