//! Turns: a system is driven for a while, then its clients finish their transactions and rest until its next turn.
//!
//! Several systems are measured side by side so: one has its turn, the others rest, frozen by the caller. Transactions that
//! begin inside a turn's slice are measured; connections are kept. Two systems may have their turns at once, on CPUs of
//! their own.
//!
//! Clients do not begin a turn in step: their first transactions are spread evenly over the mean length of their last ones,
//! shifted by another share of it in each turn, so that they compete for CPU, locks and devices as clients do that have
//! worked for long. At the end of a slice all clients go on until every transaction that is measured has ended: the last
//! ones have as much competition as the others.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::cpu;

/// How often a thread that rests looks whether the trial is over.
const LOOK: Duration = Duration::from_nanos(50 * MILLISECOND);

/// How long transactions under way may take to end after their slice: a system that answers no more has no other end.
pub(super) const REST_PATIENCE_NS: u64 = if cfg!(test) { 300 * MILLISECOND } else { 60 * SECOND };

/// The starts of clients are spread over so much at most: longer transactions would take too much of a turn.
const LONGEST_SPREAD_NS: u64 = 2 * SECOND;

/// One turn. Its slice, which is measured, lies between two instants of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// From 1; 0: none yet.
    pub number: u64,
    pub from: u64,
    pub until: u64,
    /// The starts of clients are spread over so much.
    pub spread_ns: u64,
}

/// Before the first one.
pub const NONE: Turn = Turn { number: 0, from: 0, until: 0, spread_ns: 0 };

impl Turn {
    /// How long after the start of the turn a client begins; `rank`: how many of all `clients` come before it.
    pub fn delay_ns(&self, rank: usize, clients: usize) -> u64 {
        // Shifts by the golden ratio fill the circle evenly (D. Knuth, The Art of Computer Programming 3, 6.4).
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = (rank as f64 / clients.max(1) as f64 + self.number as f64 * GOLDEN).fract();
        (place * self.spread_ns as f64) as u64
    }
}

/// What came of a turn, all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turned {
    /// Transactions that began inside the slice and ended well,
    pub transactions: u64,
    /// and those given up.
    pub failed: u64,
    /// The time that all clients spent on these, and thinking after them.
    pub busy_ns: u64,
    /// From the start of the turn to that of its slice.
    pub start_up_ns: u64,
    /// From the end of the slice until the last client rested.
    pub drain_ns: u64,
    /// How long the last transaction of each client took, all together.
    pub last_ns: u64,
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
    /// Of the trial.
    clients: usize,
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
    /// Threads in which measured transactions of this turn may be under way.
    under_way: AtomicUsize,
}

impl Turns {
    /// Before the trial: it goes by turns.
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

    /// The slice is over and what a thread measures of it has ended.
    pub(super) fn settle(&self) {
        self.under_way.fetch_sub(1, Relaxed);
    }

    /// Whether no thread measures anything any more in this turn, whose slice is over.
    pub(super) fn is_settled(&self) -> bool {
        self.under_way.load(Relaxed) == 0
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

    /// Opens a turn while all clients rest; its slice begins after `start_up_ns`, or after a mean transaction where that is
    /// longer. Driving threads work on `cpus`; empty:
    /// where they are.
    pub fn begin(&self, start_up_ns: u64, slice_ns: u64, cpus: Vec<usize>) {
        {
            let mut state = self.state();
            let now = clock::now();
            let spread_ns = (state.turned.last_ns / state.clients.max(1) as u64).min(LONGEST_SPREAD_NS);
            let start_up_ns = start_up_ns.max(spread_ns);
            let from = now + start_up_ns;
            let number = 1 + state.turn.map_or(0, |turn| turn.number);
            state.turn = Some(Turn { number, from, until: from + slice_ns, spread_ns });
            state.cpus = cpus;
            state.resting = 0;
            state.turned = Turned { start_up_ns, ..Turned::default() };
            self.under_way.store(state.threads.unwrap_or(0), Relaxed);
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
    pub(super) fn rest(&self, last: Turn, brought: Turned, must_end: impl Fn() -> bool) -> Option<Turn> {
        let mut state = self.state();
        state.resting += 1;
        state.turned.transactions += brought.transactions;
        state.turned.failed += brought.failed;
        state.turned.busy_ns += brought.busy_ns;
        state.turned.last_ns += brought.last_ns;
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
