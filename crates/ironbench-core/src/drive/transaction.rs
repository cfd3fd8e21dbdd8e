//! The interface between the event loop and transactions.
//! A transaction writes its next message and continues on the reply.

use super::jobs::Next;
use crate::measure::Tally;
use crate::measure::clock::NEVER;
pub use crate::wire::UNEXPECTED;
use crate::wire::transport::Mailbox;

/// The next step of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The outbox contains a message. Call `reply` when data has arrived.
    Send,
    /// The outbox contains a piece of a stream, which has no reply. Call `message_sent` when it has been sent.
    SendWithoutReply,
    /// The reply is incomplete. Call `reply` when more data has arrived.
    Receive,
    /// Call `resume` after this many nanoseconds.
    Sleep(u64),
    Ended(Ending),
    /// The connection is unusable, for this cause.
    Broken(String),
}

/// Cause of a failed transaction: the server replied to a message before it had read the whole message.
pub const EARLY: &str = "the server answered before it had read the whole request";

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Index of the kind of transaction in `kinds`.
    pub kind: usize,
    /// Whether the transaction succeeded. If it failed, its failure, errors and retries are already counted in the
    /// tally.
    pub well: bool,
    /// Number of retries after serialization failures and deadlocks.
    pub retries: u32,
}

/// The client's side of the dialogue with an engine. Scripts implement this trait, and so do streams of rows
/// (crates/ironbench-data).
///
/// The loop is compiled separately for each combination of transport and transaction. Calls of this trait are therefore
/// never dynamic.
pub trait Transaction {
    /// Prepares the client before its first transaction. The clients of all threads start at `_origin`.
    fn start(&mut self, _origin: u64) {}

    /// Starts a new transaction. The outbox is empty.
    fn begin(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Continues after `Step::Sleep`.
    fn resume(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Handles the complete messages in the inbox. Called only after the outbox has been sent.
    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Continues after `Step::SendWithoutReply`. The outbox can be filled again. `reply` may have been called in between.
    fn message_sent(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.reply(mailbox, tally)
    }

    /// Returns how many transactions this client runs. Returns None if the plan determines the number.
    fn share(&self) -> Option<u64> {
        None
    }

    /// Returns the queue in which this client waits for jobs. Returns None if the client follows the schedule.
    fn job_queue(&self) -> Option<usize> {
        None
    }

    /// Takes the next job of the client's queue, if one is due. `begin` then starts the job.
    fn claim(&mut self, _now: u64) -> Next {
        Next::NotBefore(NEVER)
    }

    /// Returns how long the client rests before its next job. Used only if the source of jobs paces its clients.
    fn rest_ns(&mut self) -> u64 {
        0
    }

    /// Returns the due times of the client's transactions that have not started, in ascending order. Returns none if
    /// the client has no recorded schedule.
    fn not_started(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(std::iter::empty())
    }

    /// Whether the client wants a new connection before its next transaction.
    fn wants_reconnect(&self) -> bool {
        false
    }

    /// Handles a connection that the engine closed while the client waited for a job. Returns true if the client can
    /// continue. It then opens a new connection for its next transaction.
    fn lost_waiting(&mut self) -> bool {
        false
    }

    /// Handles the loss of the connection. If `_inside`, a transaction is in progress. The transaction then counts as
    /// failed, and `_cause` is the reason. Returns how the transaction ended. Returns None if the trial has to end,
    /// because no other client can do this client's work.
    fn abandon(&mut self, _inside: bool, _cause: &str, _tally: &mut Tally) -> Option<Ending> {
        None
    }

    /// Prepares the client for a new connection, for which the engine has no session state.
    fn reconnected(&mut self) {}

    /// Writes the message that ends a session between two transactions, if the protocol has such a message.
    fn farewell(&mut self, _mailbox: &mut Mailbox) {}

    /// Returns the last message that the engine sent before the connection was lost. The message is in the inbox or was
    /// received earlier.
    fn last_words(&mut self, _mailbox: &mut Mailbox) -> Option<String> {
        None
    }
}
