//! A client of a driving thread, and its state.

use crate::drive::transaction::Transaction;
use crate::wire::Cancelling;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The client rests until the next turn.
    Idle,
    /// The client waits for the scheduled start of its next transaction.
    Scheduled,
    /// The client waits for a reply.
    Busy,
    /// The client sleeps inside a transaction.
    Sleeping,
    /// The client sleeps between two transactions (think time).
    Thinking,
    /// The client waits in its queue for a job.
    Waiting,
    /// The client waits for a new connection.
    Reconnecting,
    /// The client has lost its connection and requests a new one later.
    Disconnected,
    Ended,
}

pub(super) struct Client<X> {
    pub transaction: X,
    pub state: State,
    pub job_queue: Option<usize>,
    /// Cancels the client's running statement on the server. The value is None if the protocol has no cancel request.
    pub cancel: Option<Cancelling>,
    /// If a curve limits the number of active clients, clients become active in the order of their ranks (from 0).
    pub rank: usize,
    /// Instant from which the response time counts.
    pub intended: u64,
    /// Start of the service time, or of the wait for a new connection.
    pub begun: u64,
    /// Time at which the client ended because it lost its connection.
    pub lost: Option<u64>,
    /// Duration of the last transaction.
    pub last_duration: u64,
    /// Time at which the last transaction ended. The value is None if the turn does not measure that transaction, or if
    /// the next transaction has started.
    pub paused: Option<u64>,
    /// Number of transactions that the client may still start. The number is 0 while the client waits for a job.
    pub transactions_left: u64,
}

impl<X: Transaction> Client<X> {
    pub fn new(transaction: X) -> Self {
        let line = transaction.job_queue();
        Self {
            transaction,
            state: State::Idle,
            job_queue: line,
            cancel: None,
            rank: 0,
            intended: 0,
            begun: 0,
            lost: None,
            last_duration: 0,
            paused: None,
            transactions_left: 0,
        }
    }

    /// Returns the due times of the client's recorded transactions that are due before `instant` and have not started.
    pub fn not_started_before(&self, instant: u64) -> impl Iterator<Item = u64> {
        self.transaction.not_started().take_while(move |due| *due < instant)
    }

    /// Whether the client has a recorded transaction that is due before `instant` and has not started.
    pub fn has_due(&self, instant: u64) -> bool {
        self.not_started_before(instant).next().is_some()
    }
}

impl<X> Client<X> {
    /// Whether the client is inside a transaction.
    pub fn is_in_transaction(&self) -> bool {
        matches!(self.state, State::Busy | State::Sleeping)
    }

    /// Whether the client has ended or has no connection. Bytes that arrive for such a client belong to an earlier
    /// connection.
    #[inline]
    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Reconnecting | State::Disconnected | State::Ended)
    }
}
