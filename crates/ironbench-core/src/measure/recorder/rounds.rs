//! Records the drive loop's own delay, which is part of every response time.

use super::{Phase, Recorder};
use crate::measure::buckets::Buckets;

/// Times that the loop worked between two waits for the engine, and numbers of replies that it handled.
#[derive(Default, Clone)]
pub(super) struct Rounds {
    pub delay: Buckets,
    pub replies: Buckets,
    /// Total time that replies waited for the loop. For each reply, it is estimated as half the duration of its round.
    pub waited_ns: u64,
}

impl Rounds {
    pub fn copy(&mut self, other: &Self) {
        self.delay.copy(&other.delay);
        self.replies.copy(&other.replies);
        self.waited_ns = other.waited_ns;
    }
}

impl Recorder<'_> {
    /// Records that the loop worked for `ns` between two waits for the engine. The first of these waits had returned
    /// `replies` replies.
    #[inline]
    pub fn round(&mut self, ns: u64, replies: u64) {
        if self.phase == Phase::Open && replies > 0 {
            self.rounds.delay.record(ns);
            self.rounds.replies.record(replies);
            self.rounds.waited_ns += replies * ns / 2;
        }
    }
}
