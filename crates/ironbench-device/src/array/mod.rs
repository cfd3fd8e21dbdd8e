//! Devices composed of other devices.

mod controller;
mod mirror;
mod parity;
mod stripe;

pub use controller::SharedController;
pub use mirror::Mirror;
pub use parity::Parity;
pub use stripe::Stripe;

use crate::device::{Device, Op};

#[cfg(test)]
mod tests;

type Members = Vec<Box<dyn Device>>;

/// Returns the mean host CPU time over the members, for an I/O that goes to one of them.
fn mean_host_cpu(members: &Members, op: Op, length: u32) -> u64 {
    total_host_cpu(members, op, length) / members.len().max(1) as u64
}

/// Returns the sum of the host CPU time over the members, for an I/O that goes to all of them.
fn total_host_cpu(members: &Members, op: Op, length: u32) -> u64 {
    members.iter().map(|member| member.host_cpu(op, length)).sum()
}

/// Submits an I/O to all members. Returns when the last has completed it.
fn submit_to_all(members: &mut Members, now: u64, op: Op, offset: u64, length: u32) -> u64 {
    members.iter_mut().map(|member| member.submit(now, op, offset, length)).max().unwrap_or(now)
}
