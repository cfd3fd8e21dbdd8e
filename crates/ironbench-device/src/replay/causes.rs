//! Infers which I/O each I/O waited for, from the order of arrivals and completions. A trace does not contain this.
//!
//! If one thread is active at a time, an I/O comes from the thread that the last completion woke.
//! If `k` threads are active, the oldest of them issues the next I/O, because threads take turns on the cores.
//! The k-th last completion woke that thread.
//! The number of active threads is the machine's count of runnable threads; without that count, one is assumed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Trace;

pub(super) const NONE: u32 = u32::MAX;
/// Limit for the number of active threads.
const MOST: usize = 1024;

#[derive(Debug)]
pub(super) struct Causes {
    /// By row: the I/O that it waited for; `NONE` if nothing had completed yet.
    pub of: Vec<u32>,
    /// By row: when that I/O completed, or when the trace began.
    pub since: Vec<u64>,
    /// The first I/O that waited for this one; the last entry is for I/Os that waited for nothing.
    first: Vec<u32>,
    /// The next I/O that waited for the same one.
    next: Vec<u32>,
}

impl Causes {
    /// Infers the causes. `at_work` returns the number of active threads at a moment.
    pub fn of(trace: &Trace, at_work: impl Fn(u64) -> usize) -> Self {
        let rows = trace.len();
        let start = trace.time.first().copied().unwrap_or(0);
        let mut found = Self {
            of: Vec::with_capacity(rows),
            since: Vec::with_capacity(rows),
            first: vec![NONE; rows + 1],
            next: vec![NONE; rows],
        };
        let mut running: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        // Latest completions at the front.
        let mut completed: VecDeque<(u64, u32)> = VecDeque::new();
        for row in 0..rows {
            let now = trace.time[row];
            while let Some(Reverse((done, which))) = running.peek().copied() {
                if done > now {
                    break;
                }
                completed.push_front((done, which));
                running.pop();
            }
            completed.truncate(MOST);
            let back = at_work(now).clamp(1, completed.len().max(1));
            let (since, cause) = completed.get(back - 1).copied().unwrap_or((start, NONE));
            found.of.push(cause);
            found.since.push(since);
            let place = if cause == NONE { rows } else { cause as usize };
            found.next[row] = found.first[place];
            found.first[place] = row as u32;
            running.push(Reverse((trace.completed[row], row as u32)));
        }
        found
    }

    /// Calls `each` for every I/O that waited for `row`, or for nothing.
    #[inline]
    pub fn after(&self, row: u32, mut each: impl FnMut(u32)) {
        let place = if row == NONE { self.next.len() } else { row as usize };
        let mut at = self.first[place];
        while at != NONE {
            each(at);
            at = self.next[at as usize];
        }
    }
}
