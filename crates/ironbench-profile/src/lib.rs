//! Profiles of a database and its client, sampled by the kernel's performance events (perf_event_open(2)).
//!
//! Two kinds: `cpu` samples the stacks of running threads by a clock; `wait` records, at each switch of the scheduler,
//! how long a thread was off the CPU, with its stack and the stack that woke it.
//!
//! The kernel writes records to a ring per CPU. One thread reads the rings, sorts the records by time, turns addresses
//! into offsets of files (so processes may end later) and counts stacks. Function names are looked up at the end.
//! Memory is bounded everywhere: limits merge frames into their callers, and times into wider buckets.

mod access;
mod collect;
mod event;
mod processes;
mod profile;
mod profiler;
mod record;
mod ring;
mod space;
mod stacks;
mod symbols;
mod timeline;
mod tracefs;
mod unwind;
mod waits;

pub use access::available;
pub use processes::Role;
pub use profile::{Line, Profile};
pub use profiler::{Kind, Profiler};
pub use waits::Reason;
