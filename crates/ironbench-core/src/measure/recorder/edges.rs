//! Transactions that cross an edge of the window.

use super::{Phase, Recorder};
use crate::measure::Histogram;
use crate::measure::buckets::Buckets;

#[derive(Default)]
pub(super) struct Edges {
    /// Closed loop: began before the window and ended inside. Service times alone cover them.
    pub carried: Vec<Buckets>,
    /// Closed loop: began inside the window and ended while the trial drained. Response times alone cover them.
    pub drained: Vec<Buckets>,
    /// Times waited by transactions that have not ended.
    pub censored: Buckets,
    /// Time inside the window of transactions under way when it closed.
    pub in_flight: Buckets,
    pub longest_wait_ns: u64,
}

impl Edges {
    pub fn new(kinds: usize) -> Self {
        let buckets = || (0..kinds).map(|_| Buckets::default()).collect();
        Self { carried: buckets(), drained: buckets(), ..Self::default() }
    }
}

impl Recorder<'_> {
    /// Whether response times cover what was due at `intended`, though the window has closed.
    pub(super) fn is_drained(&self, intended: u64) -> bool {
        self.phase == Phase::Closed && self.due_from > 0 && (self.due_from..self.window.end).contains(&intended)
    }

    /// The window has closed, and a transaction due at `intended` and sent at `begun` is under way.
    pub fn in_flight(&mut self, intended: u64, begun: u64) {
        if self.due_from > 0 {
            self.edges.in_flight.record(self.inside_window(begun));
            self.edges.longest_wait_ns = self.edges.longest_wait_ns.max(self.window.end.saturating_sub(intended));
        }
    }

    /// The window has closed, and so many transactions that were due inside and follow no schedule were not begun. When
    /// they were due is not kept: they enter with the length of the window, so that they count as the slowest.
    pub fn never_begun(&mut self, count: u64) {
        if self.due_from > 0 {
            self.edges.censored.record_n(self.window.end - self.window.start, count);
        }
    }

    /// The thread gives up at `now`, and what was due at `intended` has not ended.
    pub fn censored(&mut self, intended: u64, now: u64) {
        if self.phase == Phase::Closed && self.due_from > 0 && intended < self.window.end {
            self.edges.censored.record(now - intended);
        }
    }
}

pub(super) fn merge_each(histograms: &mut [Histogram], more: &mut [Buckets]) {
    for (histogram, buckets) in histograms.iter_mut().zip(more) {
        histogram.merge(&buckets.take());
    }
}
