//! Turns: a system is driven for a while, then its clients finish their transactions and rest until its next turn.
//!
//! Several systems are measured side by side so: one has its turn, the others rest, frozen by the caller. Only what ends
//! inside a turn's slice is measured; connections are kept. Two systems may have their turns at once, on CPUs of their own.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::cpu;
use crate::measure::tally::Counts;

/// How often a thread that rests looks whether the trial is over.
const LOOK: Duration = Duration::from_nanos(50 * MILLISECOND);

/// How long transactions under way may take to end after their slice: a system that answers no more has no other end.
pub(super) const REST_PATIENCE_NS: u64 = if cfg!(test) { 300 * MILLISECOND } else { 60 * SECOND };

/// One turn. Its slice, which is measured, lies between two instants of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// From 1; 0: none yet.
    pub number: u64,
    pub from: u64,
    pub until: u64,
}

/// Before the first one.
pub const NONE: Turn = Turn { number: 0, from: 0, until: 0 };

/// What came of a turn, all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turned {
    /// Transactions that ended well inside the slice,
    pub transactions: u64,
    /// and those given up in it.
    pub failed: u64,
    /// From the end of the slice until the last client rested.
    pub drain_ns: u64,
}

#[derive(Debug, Default)]
struct State {
    asked: bool,
    /// None until the trial knows how many it has.
    threads: Option<usize>,
    turn: Option<Turn>,
    /// Where the driving threads work in this turn; empty: where they are.
    cpus: Vec<usize>,
    resting: usize,
    turned: Turned,
    /// When the first turn began,
    first_ns: Option<u64>,
    /// and its slice, on CLOCK_REALTIME.
    first_unix_ns: Option<u64>,
    /// Number of the last turn that is not to be measured.
    forgotten: u64,
    over: bool,
}

/// Between the caller, who opens turns, and the driving threads.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

impl Turns {
    /// Before the trial: it goes by turns.
    pub fn ask(&self) {
        self.state().asked = true;
    }

    pub fn asked(&self) -> bool {
        self.state().asked
    }

    pub(super) fn expect(&self, threads: usize) {
        self.state().threads = Some(threads);
    }

    /// The trial is over, however it ended: nobody waits for it any more.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// For a caller who stopped waiting: whether there is nothing to wait for.
    pub fn is_over(&self) -> bool {
        self.state().over
    }

    /// Opens a turn while all clients rest; `slice_ns` begins after `start_up_ns`. Driving threads work on `cpus`; empty:
    /// where they are.
    pub fn begin(&self, start_up_ns: u64, slice_ns: u64, cpus: Vec<usize>) {
        {
            let mut state = self.state();
            let now = clock::now();
            let from = now + start_up_ns;
            let number = 1 + state.turn.map_or(0, |turn| turn.number);
            state.turn = Some(Turn { number, from, until: from + slice_ns });
            state.cpus = cpus;
            state.resting = 0;
            state.turned = Turned::default();
            state.first_ns.get_or_insert(now);
            state.first_unix_ns.get_or_insert(clock::unix_now() + start_up_ns);
        }
        self.changed.notify_all();
    }

    /// While all rest: what the last turn measured is not to be measured.
    pub fn forget(&self) {
        let mut state = self.state();
        state.forgotten = state.turn.map_or(0, |turn| turn.number);
    }

    pub(super) fn is_forgotten(&self, turn: Turn) -> bool {
        turn.number > 0 && self.state().forgotten == turn.number
    }

    /// Waits until all clients are connected and rest: before the first turn, and after each. `poll` is called at least
    /// every 50 ms and says whether to go on waiting. None: the trial is over, or waiting is.
    pub fn rested(&self, poll: &mut dyn FnMut() -> bool) -> Option<Turned> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if state.threads == Some(state.resting) {
                return Some(state.turned);
            }
            let (woken, timeout) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
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

    /// A thread whose clients all rest, after the turn `last`: the next one, on its CPUs; None: the trial must end, or the
    /// kernel refuses those.
    pub(super) fn rest(&self, last: Turn, brought: Counts, must_end: impl Fn() -> bool) -> Option<Turn> {
        let mut state = self.state();
        state.resting += 1;
        state.turned.transactions += brought.transactions;
        state.turned.failed += brought.failed;
        if last.number > 0 {
            state.turned.drain_ns = state.turned.drain_ns.max(clock::now().saturating_sub(last.until));
        }
        self.changed.notify_all();
        loop {
            if must_end() {
                return None;
            }
            match state.turn {
                Some(turn) if turn.number > last.number => return cpu::bind_thread(&state.cpus).then_some(turn),
                _ => {
                    (state, _) = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// When the first turn began, and with it the work.
    pub(super) fn first_ns(&self) -> Option<u64> {
        self.state().first_ns
    }

    /// When the first slice began, on CLOCK_REALTIME.
    pub(super) fn first_unix_ns(&self) -> Option<u64> {
        self.state().first_unix_ns
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When clients rest that begin with the turn; `NEVER` where there are none.
pub(super) fn rest_at(asked: bool) -> u64 {
    if asked { 0 } else { NEVER }
}
