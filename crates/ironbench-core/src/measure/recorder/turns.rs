//! Records a window in turns. Between turns, the window is suspended. The window then continues as if no time had
//! passed. The last turn can be discarded.
//!
//! In each turn, all clients start at about the same time, so the number of transactions that *end* inside a slice is
//! quantised. For example, with 0.75 s per transaction, a slice of one second contains one or two transactions per
//! client, never 1.33. Therefore a transaction is measured if it *starts* inside a slice, whenever it ends. Throughput
//! is clients × transactions / time that clients spent on them.
//!
//! This throughput is unbiased for the following reason. Consider a client's first transaction that starts in a slice,
//! and its first transaction that starts after the slice. Both are stopping times, so Wald's identity applies (A. Wald,
//! "On cumulative sums of random variables", Annals of Mathematical Statistics 15, 1944). The expected time between
//! their starts is the expected number of transactions times their mean duration. This holds for any distribution of
//! durations. It also holds wherever clients are in their transactions when a slice starts.

use super::{EMPTY_WINDOW, LoopRounds, Phase, Recorder, Slice, Window};
use crate::measure::Tally;
use crate::measure::buckets::Buckets;
use crate::measure::clients::ClientWork;
use crate::measure::clock::NEVER;
use crate::measure::cpu::CpuTime;
use crate::measure::tally::Counts;

/// State of the window in a trial that is driven in turns. Without turns, the window is never suspended.
pub(super) struct TurnState {
    /// Start of the window, or of its current slice.
    pub opened: u64,
    /// End of the current slice.
    pub rest: u64,
    pub next: Window,
    pub tally_at_rest: Tally,
    pub answers: Option<Vec<Buckets>>,
    /// Finished seconds of a turn that may still be discarded.
    pub pending: Vec<Slice>,
    /// Whether transactions are being measured: a slice has started, and its clients have not all started to rest.
    pub counting: bool,
    /// Whether at least one turn has been measured.
    pub took_place: bool,
    /// Time that clients spent on measured transactions and on the think time after them.
    pub busy_ns: u64,
    /// Transactions that ended since the start of the slice although they had started before it.
    excluded: Vec<Counts>,
    before: Snapshot,
}

/// The measurements before the last turn.
#[derive(Default)]
struct Snapshot {
    response: Vec<Buckets>,
    service: Vec<Buckets>,
    second: Buckets,
    second_failed: u64,
    lateness: Buckets,
    lag: Buckets,
    rounds: LoopRounds,
    answers: Option<Vec<Buckets>>,
    buckets: usize,
    sent: usize,
    carried_ns: u64,
    busy_ns: u64,
    clients: Vec<ClientWork>,
    cpu: CpuTime,
    /// Counts at the start of the slice.
    tally: Tally,
    counted: Counts,
}

impl TurnState {
    pub fn none(kinds: usize) -> Self {
        Self {
            opened: 0,
            rest: NEVER,
            next: Window { start: NEVER, end: NEVER },
            tally_at_rest: Tally::new(kinds),
            answers: None,
            pending: Vec::new(),
            counting: false,
            took_place: false,
            busy_ns: 0,
            excluded: vec![Counts::default(); kinds],
            before: Snapshot { tally: Tally::new(kinds), ..Snapshot::default() },
        }
    }

    /// Saves the counts at the start of a slice.
    pub fn mark_tally(&mut self, tally: &Tally, counted: Counts) {
        self.before.tally = tally.clone();
        self.before.counted = counted;
    }
}

impl Recorder<'_> {
    /// Sets the window of the next turn. The previous turn can no longer be discarded.
    pub fn turn(&mut self, from: u64, until: u64) {
        self.send_seconds();
        self.save();
        if self.phase == Phase::WarmUp {
            (self.window.start, self.turns.rest) = (from, until);
        } else {
            self.turns.next = Window { start: from, end: until };
        }
        self.boundary = self.boundary.min(from);
    }

    /// Ends a turn, when all clients rest. Returns what the turn measured and the time that clients spent on it.
    pub fn end_turn(&mut self) -> (Counts, u64) {
        self.stop_counting();
        let excluded = self.turns.excluded.iter().fold(Counts::default(), |sum, kind| sum.plus(*kind));
        let ended = self.turns.tally_at_rest.total().since(self.turns.before.tally.total());
        (ended.since(excluded), self.turns.busy_ns - self.turns.before.busy_ns)
    }

    /// Whether a transaction that started at `begun` is measured in the current slice. Returns false if all clients of
    /// the slice have started to rest.
    pub fn measures_in_turn(&self, begun: u64) -> bool {
        self.turns.counting && self.measures(begun)
    }

    /// Adds the time between a measured transaction and the client's next one. Timers may be late, so this time can be
    /// longer than the declared think time.
    pub fn add_think_time(&mut self, ns: u64) {
        self.turns.busy_ns += ns;
    }

    /// Ends measuring until the next slice.
    pub(super) fn stop_counting(&mut self) {
        if !self.turns.counting {
            return;
        }
        self.turns.counting = false;
        self.begins = EMPTY_WINDOW;
        self.turns.answers = self.tally.pause_reply_times();
        self.turns.tally_at_rest = self.tally.clone();
    }

    /// Starts a slice. From now on, only transactions that start in this slice are measured.
    pub(super) fn start_slice(&mut self) {
        (self.turns.counting, self.turns.took_place) = (true, true);
        self.begins = Window { start: self.turns.opened, end: self.turns.rest };
    }

    /// Excludes a transaction from the measured counts. The tally has counted it, but it did not start in the slice.
    #[cold]
    pub(super) fn exclude(&mut self, kind: usize, well: bool) {
        let one = Counts { transactions: u64::from(well), failed: u64::from(!well), ..Counts::default() };
        self.turns.excluded[kind] = self.turns.excluded[kind].plus(one);
        self.counted = self.counted.plus(one);
    }

    /// Discards what was measured in the last turn, and the time of that turn. The turn's transactions then count like
    /// warm-up transactions. Called while the window is suspended.
    pub fn discard_turn(&mut self) {
        if self.phase != Phase::Resting {
            return;
        }
        let before = &self.turns.before;
        copy_all(&mut self.response, &before.response);
        copy_all(&mut self.service, &before.service);
        self.second.copy(&before.second);
        self.lateness.copy(&before.lateness);
        self.lag.copy(&before.lag);
        self.rounds.copy(&before.rounds);
        self.second_failed = before.second_failed;
        self.timeline.truncate(before.buckets);
        (self.sent, self.carried_ns, self.cpu, self.counted) =
            (before.sent, before.carried_ns, before.cpu, before.counted);
        self.turns.busy_ns = before.busy_ns;
        self.clients.clone_from(&before.clients);
        self.turns.excluded.fill(Counts::default());
        self.turns.answers = before.answers.clone().or_else(|| Some(Vec::new()));
        self.turns.tally_at_rest = before.tally.clone();
        self.turns.rest = self.turns.opened;
        self.turns.pending.clear();
    }

    fn save(&mut self) {
        let before = &mut self.turns.before;
        copy_all(&mut before.response, &self.response);
        copy_all(&mut before.service, &self.service);
        before.second.copy(&self.second);
        before.lateness.copy(&self.lateness);
        before.lag.copy(&self.lag);
        before.rounds.copy(&self.rounds);
        before.second_failed = self.second_failed;
        before.buckets = self.timeline.len();
        (before.sent, before.carried_ns, before.cpu) = (self.sent, self.carried_ns, self.cpu);
        before.busy_ns = self.turns.busy_ns;
        before.clients.clone_from(&self.clients);
        before.answers = self.turns.answers.clone();
    }

    /// Ends the slice. Transactions that started in it may still be unfinished.
    pub(super) fn end_slice(&mut self) {
        self.phase = Phase::Resting;
        self.cpu = self.cpu.plus(CpuTime::of_thread().since(self.cpu_at_start));
        self.turns.next = Window { start: NEVER, end: NEVER };
        self.boundary = NEVER;
    }

    /// Continues the window at the start of the next turn, as if no time had passed since the end of the last slice.
    pub(super) fn resume_window(&mut self) {
        self.phase = Phase::Open;
        self.subtract_rest();
        let Window { start, end } = self.turns.next;
        let rested = start - self.turns.rest;
        self.window.start += rested;
        self.window.end = self.window.end.saturating_add(rested);
        (self.turns.opened, self.turns.rest) = (start, end);
        self.turns.mark_tally(&self.tally, self.counted);
        self.tally.resume_reply_times(self.turns.answers.take());
        self.start_slice();
        self.cpu_at_start = CpuTime::of_thread();
        self.boundary = self.next_boundary();
    }

    /// Excludes the transactions that ended after the last slice from the measured counts.
    pub(super) fn subtract_rest(&mut self) {
        let meanwhile = self.tally.since(&self.turns.tally_at_rest);
        self.counted = self.counted.plus(meanwhile.total());
        self.at_start.merge(&meanwhile);
        self.subtract_excluded();
    }

    /// Excludes the transactions that did not start in the slice from the measured counts.
    pub(super) fn subtract_excluded(&mut self) {
        for (kind, excluded) in self.at_start.kinds.iter_mut().zip(&mut self.turns.excluded) {
            *kind = kind.plus(std::mem::take(excluded));
        }
    }
}

fn copy_all(to: &mut Vec<Buckets>, from: &[Buckets]) {
    to.resize_with(from.len(), Buckets::default);
    for (one, other) in to.iter_mut().zip(from) {
        one.copy(other);
    }
}
