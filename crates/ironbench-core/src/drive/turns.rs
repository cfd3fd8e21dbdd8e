//! Turns. In a turn, a system is driven for a while. Then its clients finish their transactions and rest until the
//! system's next turn. Interleaved measurements use turns: while one system has its turn, the caller pauses the others.
//! Transactions that start inside a turn's slice are measured. Connections stay open between turns. Two systems may
//! have their turns at the same time, on separate CPUs.
//!
//! The clients do not all start a turn at the same instant. The starts are spread evenly over the mean duration of the
//! clients' last transactions, with a different shift in each turn. The clients thus compete for CPU, locks and devices
//! as in a steady state. At the end of a slice, all clients continue until every measured transaction has ended. The
//! last transactions thus have as much competition as the others.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::cpu;

/// How often a resting thread checks whether the trial is over.
const POLL_INTERVAL: Duration = Duration::from_nanos(50 * MILLISECOND);

/// Time limit for finishing transactions after a slice, in case a system has stopped responding.
pub(super) const REST_TIMEOUT_NS: u64 = if cfg!(test) { 300 * MILLISECOND } else { 60 * SECOND };

/// Maximum time over which the starts of clients are spread, so that long transactions do not use up the turn.
const LONGEST_SPREAD_NS: u64 = 2 * SECOND;

/// A turn. The measured slice lasts from `from` to `until` on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Number of the turn, from 1. 0 before the first turn.
    pub number: u64,
    pub from: u64,
    pub until: u64,
    /// The time over which the starts of clients are spread.
    pub spread_ns: u64,
}

/// The state before the first turn.
pub const NONE: Turn = Turn { number: 0, from: 0, until: 0, spread_ns: 0 };

impl Turn {
    /// Returns how long after the start of the turn a client starts. `rank` (from 0) is the client's rank among the
    /// `clients` clients.
    pub fn delay_ns(&self, rank: usize, clients: usize) -> u64 {
        // Multiples of the golden ratio, modulo 1, are spread evenly over [0, 1) (D. Knuth, The Art of Computer
        // Programming 3, 6.4).
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = (rank as f64 / clients.max(1) as f64 + self.number as f64 * GOLDEN).fract();
        (place * self.spread_ns as f64) as u64
    }
}

/// The result of a turn, summed over all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnTotals {
    /// Transactions that started inside the slice and succeeded.
    pub transactions: u64,
    /// Transactions that started inside the slice and failed.
    pub failed: u64,
    /// Time that all clients spent on the measured transactions and on the think time after them.
    pub busy_ns: u64,
    /// Time from the start of the turn to the start of its slice.
    pub start_up_ns: u64,
    /// Time from the end of the slice until the last client rested.
    pub drain_ns: u64,
    /// Sum of the durations of each client's last transaction.
    pub last_ns: u64,
}

#[derive(Debug, Default)]
struct State {
    asked: bool,
    /// Number of driving threads, or None until the number is known.
    threads: Option<usize>,
    turn: Option<Turn>,
    /// CPUs of the driving threads in this turn. Empty if they do not change.
    cpus: Vec<usize>,
    resting: usize,
    totals: TurnTotals,
    /// Number of clients of the trial.
    clients: usize,
    /// Start of the first turn.
    first_ns: Option<u64>,
    /// Start of the first turn's slice, on CLOCK_REALTIME.
    first_unix_ns: Option<u64>,
    /// Number of the turn whose measurements were discarded last.
    forgotten: u64,
    over: bool,
}

/// Coordinates the caller, which starts turns, and the driving threads.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    /// Number of threads that may still have measured transactions of this turn in progress.
    under_way: AtomicUsize,
}

impl Turns {
    /// Requests that the trial is driven in turns. Must be called before the trial starts.
    pub fn ask(&self) {
        self.state().asked = true;
    }

    pub fn asked(&self) -> bool {
        self.state().asked
    }

    pub(super) fn expect(&self, threads: usize, clients: usize) {
        let mut state = self.state();
        (state.threads, state.clients) = (Some(threads), clients);
    }

    /// Called by a thread when the slice is over and all transactions that the thread measures have ended.
    pub(super) fn settle(&self) {
        self.under_way.fetch_sub(1, Relaxed);
    }

    /// Whether every measured transaction of this turn has ended in every thread.
    pub(super) fn is_settled(&self) -> bool {
        self.under_way.load(Relaxed) == 0
    }

    /// Called when the trial is over, for whatever reason. Wakes all waiting callers.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Whether the trial is over. Callers check this when a wait has ended without a result.
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// Starts a turn while all clients rest. The slice starts after `start_up_ns`, or after the mean duration of a
    /// transaction if that is longer. Driving threads are pinned to `cpus`. If the list is empty, they stay where they
    /// are.
    pub fn begin(&self, start_up_ns: u64, slice_ns: u64, cpus: Vec<usize>) {
        {
            let mut state = self.state();
            let now = clock::now();
            let spread_ns = (state.totals.last_ns / state.clients.max(1) as u64).min(LONGEST_SPREAD_NS);
            let start_up_ns = start_up_ns.max(spread_ns);
            let from = now + start_up_ns;
            let number = 1 + state.turn.map_or(0, |turn| turn.number);
            state.turn = Some(Turn { number, from, until: from + slice_ns, spread_ns });
            state.cpus = cpus;
            state.resting = 0;
            state.totals = TurnTotals { start_up_ns, ..TurnTotals::default() };
            self.under_way.store(state.threads.unwrap_or(0), Relaxed);
            state.first_ns.get_or_insert(now);
            state.first_unix_ns.get_or_insert(clock::unix_now() + start_up_ns);
        }
        self.changed.notify_all();
    }

    /// Discards the measurements of the last turn, while all clients rest.
    pub fn forget(&self) {
        let mut state = self.state();
        state.forgotten = state.turn.map_or(0, |turn| turn.number);
    }

    pub(super) fn is_forgotten(&self, turn: Turn) -> bool {
        turn.number > 0 && self.state().forgotten == turn.number
    }

    /// Waits until all clients are connected and rest. Clients rest before the first turn and after each turn. Returns
    /// the result of the last turn. Returns None if the trial is over or `poll` ended the wait. `poll` is called at
    /// least every 50 ms and returns whether to continue waiting.
    pub fn rested(&self, poll: &mut dyn FnMut() -> bool) -> Option<TurnTotals> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if state.threads == Some(state.resting) {
                return Some(state.totals);
            }
            let (woken, timeout) =
                self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() {
                drop(state);
                if !poll() {
                    return None;
                }
                state = self.state();
            }
        }
    }

    /// Called by a thread whose clients all rest. Waits until the turn after `last`, pins the thread to the CPUs of
    /// that turn, and returns the turn. `brought` contains what this thread measured in `last`. Returns None if the
    /// trial must end or the kernel refuses the CPUs.
    pub(super) fn rest(&self, last: Turn, brought: TurnTotals, must_end: impl Fn() -> bool) -> Option<Turn> {
        let mut state = self.state();
        state.resting += 1;
        state.totals.transactions += brought.transactions;
        state.totals.failed += brought.failed;
        state.totals.busy_ns += brought.busy_ns;
        state.totals.last_ns += brought.last_ns;
        if last.number > 0 {
            state.totals.drain_ns = state.totals.drain_ns.max(clock::now().saturating_sub(last.until));
        }
        self.changed.notify_all();
        loop {
            if must_end() {
                return None;
            }
            match state.turn {
                Some(turn) if turn.number > last.number => return cpu::pin_thread(&state.cpus).then_some(turn),
                _ => {
                    (state, _) =
                        self.changed.wait_timeout(state, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Returns the start of the first turn.
    pub(super) fn first_ns(&self) -> Option<u64> {
        self.state().first_ns
    }

    /// Returns the start of the first slice, on CLOCK_REALTIME.
    pub(super) fn first_unix_ns(&self) -> Option<u64> {
        self.state().first_unix_ns
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time from which clients rest before the first turn: 0 in a trial with turns, otherwise `NEVER`.
pub(super) fn rest_at(asked: bool) -> u64 {
    if asked { 0 } else { NEVER }
}
