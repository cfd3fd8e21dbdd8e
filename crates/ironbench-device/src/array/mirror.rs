//! RAID 1. Every member stores all data, and each read uses one of the members.

use super::{Members, mean_host_cpu, submit_to_all, total_host_cpu};
use crate::device::{Device, Op};

pub struct Mirror {
    members: Members,
    /// For each member, the time at which all its reads so far will be complete, and the offset at which its last read
    /// ended.
    states: Vec<(u64, u64)>,
    /// If several members are equally busy, the first of them from this index on is chosen.
    next_member: usize,
}

impl Mirror {
    pub fn new(members: Members) -> Self {
        let states = vec![(0, u64::MAX); members.len()];
        Self { members, states, next_member: 0 }
    }

    /// Chooses the member for a read, like Linux's md (drivers/md/raid1.c, `read_balance`). If a member's last read
    /// ended at this offset, that member is chosen, so that a sequential stream stays on one disk. Otherwise the member
    /// that is free first is chosen.
    fn choose_reader(&self, now: u64, offset: u64) -> usize {
        let streaming = self.states.iter().position(|(_, end)| *end == offset);
        let count = self.states.len();
        let rank = |index: &usize| (self.states[*index].0.max(now), (*index + count - self.next_member) % count);
        streaming.unwrap_or_else(|| (0..count).min_by_key(rank).unwrap_or(0))
    }
}

impl Device for Mirror {
    fn submit(&mut self, now: u64, op: Op, offset: u64, length: u32) -> u64 {
        if op != Op::Read {
            return submit_to_all(&mut self.members, now, op, offset, length);
        }
        let reader = self.choose_reader(now, offset);
        self.next_member = (reader + 1) % self.members.len();
        let done = self.members[reader].submit(now, op, offset, length);
        self.states[reader] = (done.max(self.states[reader].0), offset + u64::from(length));
        done
    }

    fn capacity(&self) -> u64 {
        self.members.iter().map(|member| member.capacity()).min().unwrap_or(0)
    }

    fn host_cpu(&self, op: Op, length: u32) -> u64 {
        let needed = if op == Op::Read { mean_host_cpu } else { total_host_cpu };
        needed(&self.members, op, length)
    }
}
