//! Which I/O each waited for: what a trace does not say, from the order of its arrivals and completions.
//!
//! Where one thread at a time is at work, an I/O comes from the thread that the last completion woke. Where `k` are, the
//! oldest of them comes first, and it was woken by the k-th last completion: threads take turns on the cores. How many
//! are at work is what the machine counted as runnable. Without that count it is taken to be one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Trace;

pub(super) const NONE: u32 = u32::MAX;
/// More threads at a time are taken for so many.
const MOST: usize = 1024;

#[derive(Debug)]
pub(super) struct Causes {
    /// By row: the I/O that it came after; `NONE` where nothing had been completed yet.
    pub of: Vec<u32>,
    /// By row: when that was completed, or when the trace began.
    pub since: Vec<u64>,
    /// The first that comes after this one; the last entry is for those that come after nothing.
    first: Vec<u32>,
    /// The next that comes after the same.
    next: Vec<u32>,
}

impl Causes {
    /// `at_work`: how many threads were at a moment.
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
        // The last to be completed are at the front.
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

    /// Those that come after `row`, or after nothing.
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
