//! What the event loop runs: next message; on reply.

use super::jobs::Next;
use crate::measure::Tally;
use crate::measure::clock::NEVER;
pub use crate::wire::UNASKED;
use crate::wire::transport::Mailbox;

/// What a client wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The outbox holds a message; go on with `reply` when something has come back.
    Send,
    /// The outbox holds a piece of a stream that nobody answers; go on with `shipped` when it has left.
    Ship,
    /// The reply is not complete; go on with `reply` when there is more.
    Receive,
    /// Go on with `resume` after this many nanoseconds.
    Sleep(u64),
    Ended(Ending),
    /// The connection cannot be used any more, and why.
    Broken(String),
}

/// Why a connection cannot be used whose server answered a message of which it has not read all.
pub const EARLY: &str = "the server answered before it had read the whole message";

/// A transaction is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Which of `kinds` it was.
    pub kind: usize,
    /// False: it was given up. The transaction itself has counted that in the tally, and the errors and retries too.
    pub well: bool,
    /// How often it was repeated after a serialization failure or deadlock.
    pub retries: u32,
}

/// One client's side of a dialogue with an engine. Implementors: scripts; streams of rows
/// (crates/ironbench-data).
///
/// The loop is compiled once for each pair of transport and transaction: these calls are never dynamic.
pub trait Transaction {
    /// The clients of all threads begin at this instant.
    fn start(&mut self, _origin: u64) {}

    /// Begins a new transaction. The outbox is empty.
    fn begin(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Goes on after `Step::Sleep`.
    fn resume(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Takes what it can from the inbox; the outbox has been sent.
    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step;

    /// Goes on after `Step::Ship`: the outbox may be written anew. Meanwhile `reply` may have been called, too.
    fn shipped(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.reply(mailbox, tally)
    }

    /// How many of its kind this client has to do, where the work itself says so and not the plan.
    fn share(&self) -> Option<u64> {
        None
    }

    /// The line in which this client waits for work; None: the schedule moves it.
    fn line(&self) -> Option<usize> {
        None
    }

    /// Takes what is due in its line, and `begin` then begins that.
    fn claim(&mut self, _now: u64) -> Next {
        Next::NotBefore(NEVER)
    }

    /// How many jobs are due before `instant` and have not ended, where it knows.
    fn due_until(&self, _instant: u64) -> u64 {
        0
    }

    /// Whether it wants a new connection before its next transaction.
    fn wants_reconnect(&self) -> bool {
        false
    }

    /// The engine has ended the connection while the client waited in its line. Whether it goes on without one, until
    /// it wants a new one for its next transaction.
    fn lost_waiting(&mut self) -> bool {
        false
    }

    /// The connection is lost, inside a transaction if `inside`: that one counts as failed, for this cause. Returns how
    /// it ended. None: no other client can do this one's work, so the trial has to end.
    fn abandon(&mut self, _inside: bool, _cause: &str, _tally: &mut Tally) -> Option<Ending> {
        None
    }

    /// It has got one: nothing that the engine knew of the session before holds.
    fn reconnected(&mut self) {}

    /// Writes the message by which a session ends, if the engine has one. No transaction is under way.
    fn farewell(&mut self, _mailbox: &mut Mailbox) {}

    /// The connection is lost: what the engine said of it, in the inbox or before.
    fn last_words(&mut self, _mailbox: &mut Mailbox) -> Option<String> {
        None
    }
}
