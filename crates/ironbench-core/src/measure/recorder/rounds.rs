//! Records the drive loop's own delay, which is part of every response time.

use super::{Phase, Recorder};
use crate::measure::buckets::Buckets;

/// Measurements of the drive loop's rounds. A round is the time that the loop works between two waits for the engine.
#[derive(Default, Clone)]
pub(super) struct LoopRounds {
    pub delay: Buckets,
    pub replies: Buckets,
    /// Total time that replies waited for the loop. The wait of a reply is estimated as half the duration of its round.
    pub waited_ns: u64,
}

impl LoopRounds {
    pub fn copy(&mut self, other: &Self) {
        self.delay.copy(&other.delay);
        self.replies.copy(&other.replies);
        self.waited_ns = other.waited_ns;
    }
}

impl Recorder<'_> {
    /// Records a round of the loop. The round took `ns`, and handled the `replies` replies that the preceding wait had
    /// returned.
    #[inline]
    pub fn round(&mut self, ns: u64, replies: u64) {
        if self.phase == Phase::Open && replies > 0 {
            self.rounds.delay.record(ns);
            self.rounds.replies.record(replies);
            self.rounds.waited_ns += replies * ns / 2;
        }
    }
}
