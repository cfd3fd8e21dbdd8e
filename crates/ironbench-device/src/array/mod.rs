//! Devices made of devices.

mod behind;
mod mirror;
mod parity;
mod stripe;

pub use behind::Behind;
pub use mirror::Mirror;
pub use parity::Parity;
pub use stripe::Stripe;

use crate::device::{Device, Op};

#[cfg(test)]
mod tests;

type Members = Vec<Box<dyn Device>>;

/// All members do it; done when the last is.
fn all(members: &mut Members, now: u64, op: Op, offset: u64, length: u32) -> u64 {
    members.iter_mut().map(|member| member.submit(now, op, offset, length)).max().unwrap_or(now)
}
