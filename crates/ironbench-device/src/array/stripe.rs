//! RAID 0 and `spread`. Consecutive chunks of the address space are stored on the members in rotation. The members may
//! differ.

use super::{Members, mean_host_cpu, submit_to_all, total_host_cpu};
use crate::device::{Device, Op};

pub struct Stripe {
    members: Members,
    chunk: u64,
    capacity: u64,
    /// Used for an I/O that covers several chunks. Contains, for each member, the offset and the number of bytes of the
    /// member's part. The memory is reused for every I/O.
    member_ranges: Vec<(u64, u32)>,
}

impl Stripe {
    /// Creates the array, which uses the same number of chunks on each member, which is the number that fits on the
    /// smallest member.
    pub fn new(members: Members, chunk: u64) -> Self {
        let least = members.iter().map(|member| member.capacity()).min().unwrap_or(0) / chunk * chunk;
        let capacity = least * members.len() as u64;
        let member_ranges = vec![(0, 0); members.len()];
        Self { members, chunk, capacity, member_ranges }
    }

    /// Returns the member of a byte, and the offset on that member.
    #[inline]
    fn locate(&self, offset: u64) -> (usize, u64) {
        let number = offset / self.chunk;
        let count = self.members.len() as u64;
        ((number % count) as usize, number / count * self.chunk + offset % self.chunk)
    }
}

impl Device for Stripe {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        if op == Op::Flush {
            return submit_to_all(&mut self.members, now, op, 0, 0);
        }
        if offset % self.chunk + u64::from(length) <= self.chunk {
            let (member, at) = self.locate(offset);
            return self.members[member].submit(now, op, at, length);
        }
        // All chunks that an I/O covers on a member are adjacent on that member. Therefore each member gets a single
        // I/O.
        self.member_ranges.fill((u64::MAX, 0));
        let end = offset + u64::from(length);
        let mut from = offset;
        while from < end {
            let to = end.min((from / self.chunk + 1) * self.chunk);
            let (member, at) = self.locate(from);
            let range = &mut self.member_ranges[member];
            *range = (range.0.min(at), range.1 + (to - from) as u32);
            from = to;
        }
        let touched = self.member_ranges.iter().zip(&mut self.members).filter(|(range, _)| range.1 > 0);
        touched.map(|((at, length), member)| member.submit(now, op, *at, *length)).max().unwrap_or(now)
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        if op == Op::Flush {
            return total_host_cpu(&self.members, op, length);
        }
        let parts = u64::from(length).div_ceil(self.chunk).clamp(1, self.members.len() as u64);
        mean_host_cpu(&self.members, op, length) * parts
    }
}
