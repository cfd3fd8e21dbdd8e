//! Transactions that cross an edge of the window.

use super::{Phase, Recorder};
use crate::measure::Histogram;
use crate::measure::buckets::Buckets;

#[derive(Default)]
pub(super) struct WindowEdges {
    /// For closed loops: service times of transactions that started before the window and ended inside it. Response
    /// times do not include these transactions.
    pub carried: Vec<Buckets>,
    /// For closed loops: response times of transactions that started inside the window and ended while the trial
    /// drained. Service times do not include these transactions.
    pub drained: Vec<Buckets>,
    /// Waiting times of transactions that have not ended.
    pub censored: Buckets,
    /// Time that each transaction in progress at the end of the window had spent inside the window.
    pub in_flight: Buckets,
    pub longest_wait_ns: u64,
}

impl WindowEdges {
    pub fn new(kinds: usize) -> Self {
        let buckets = || (0..kinds).map(|_| Buckets::default()).collect();
        Self { carried: buckets(), drained: buckets(), ..Self::default() }
    }
}

impl Recorder<'_> {
    /// Whether the window has closed, but response times still include a transaction that was due at `intended`.
    pub(super) fn is_drained(&self, intended: u64) -> bool {
        self.phase == Phase::Closed && self.due_from > 0 && (self.due_from..self.window.end).contains(&intended)
    }

    /// Records a transaction that is in progress when the window has closed. The transaction was due at `intended` and
    /// started at `begun`.
    pub fn in_flight(&mut self, intended: u64, begun: u64) {
        if self.due_from > 0 {
            self.edges.in_flight.record(self.inside_window(begun));
            self.edges.longest_wait_ns = self.edges.longest_wait_ns.max(self.window.end.saturating_sub(intended));
        }
    }

    /// Records a transaction that was due at `due` and has not started when the window has closed.
    pub fn waits(&mut self, due: u64) {
        if self.due_from > 0 {
            self.edges.longest_wait_ns = self.edges.longest_wait_ns.max(self.window.end.saturating_sub(due));
        }
    }

    /// Records an unfinished transaction that was due at `intended` and that the thread abandons at `now`.
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
