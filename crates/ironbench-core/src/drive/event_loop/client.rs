//! One of the clients that a thread drives, and what it is doing.

use crate::drive::transaction::Transaction;
use crate::wire::Cancelling;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Rests until the next turn.
    Idle,
    /// Has taken a transaction from the schedule, and waits until it is due.
    Scheduled,
    /// Has a message under way.
    Busy,
    /// Sleeps inside a transaction.
    Sleeping,
    /// Sleeps between transactions.
    Thinking,
    /// Waits in its line for work.
    Waiting,
    /// Waits for a new connection.
    Reconnecting,
    /// Has lost its connection, and asks for a new one later.
    Disconnected,
    Ended,
}

pub(super) struct Client<X> {
    pub transaction: X,
    pub state: State,
    pub line: Option<usize>,
    /// Ends on the server what it is running, where that can be.
    pub cancel: Option<Cancelling>,
    /// How many others come before it where not all are active.
    pub rank: usize,
    /// Response time counts from here,
    pub intended: u64,
    /// service time from here; how long a new connection took, too.
    pub begun: u64,
    /// When it ended because it had lost its connection.
    pub lost: Option<u64>,
    /// How long its last transaction took.
    pub took: u64,
    /// When its last transaction ended, if that is measured in turns and no other has begun since.
    pub paused: Option<u64>,
    /// Transactions it may still begin; of one that waits for work, none before there is some.
    pub left: u64,
}

impl<X: Transaction> Client<X> {
    pub fn new(transaction: X) -> Self {
        let line = transaction.line();
        Self {
            transaction,
            state: State::Idle,
            line,
            cancel: None,
            rank: 0,
            intended: 0,
            begun: 0,
            lost: None,
            took: 0,
            paused: None,
            left: 0,
        }
    }

    /// How many of its jobs are due before `instant` and not begun.
    pub fn not_begun(&self, instant: u64) -> u64 {
        self.transaction.due_until(instant).saturating_sub(u64::from(self.is_inside()))
    }
}

impl<X> Client<X> {
    /// Whether it is inside a transaction.
    pub fn is_inside(&self) -> bool {
        matches!(self.state, State::Busy | State::Sleeping)
    }

    /// Whether it has no connection, or needs none any more: what arrives for it is of an earlier one.
    #[inline]
    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Reconnecting | State::Disconnected | State::Ended)
    }
}
