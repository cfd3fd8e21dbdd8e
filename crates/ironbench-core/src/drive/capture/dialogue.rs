//! What a replay needs of a server's protocol. [`super::replayer::Replayer`] decides what is sent when, and a dialogue
//! encodes it and parses the replies.

use super::keys::{KeyWriter, Keys, Returned};
use super::tape::Statement;
use crate::measure::Tally;
use crate::wire::transport::Mailbox;

/// Progress of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    /// Everything that was sent has been answered.
    Answered,
    /// The outbox contains a further message for the same statement.
    Send,
}

/// An error that the server returned for a statement.
#[derive(Debug)]
pub struct Refusal {
    /// Code under which the error is counted.
    pub class: String,
    pub message: String,
    /// Whether another attempt may succeed, as after a deadlock.
    pub retryable: bool,
}

/// The replies to the statements that were sent together.
#[derive(Debug)]
pub struct Replies<'p> {
    pub sent: Vec<Statement<'p>>,
    /// Number of the sent statements that have completed.
    pub completed: usize,
    /// Rows that statements have returned or changed since the start.
    pub rows: u64,
    /// The first error.
    pub refusal: Option<Refusal>,
    /// The keys that the awaited statement has not returned yet.
    pub awaited_keys: Option<Returned>,
    keys: &'p Keys,
}

impl<'p> Replies<'p> {
    pub fn new(keys: &'p Keys) -> Self {
        Self { sent: Vec::new(), completed: 0, rows: 0, refusal: None, awaited_keys: None, keys }
    }

    /// Prepares for the replies to what was sent.
    pub fn expect(&mut self) {
        self.completed = 0;
        self.await_keys();
    }

    /// Notes that the awaited statement has completed.
    pub fn complete(&mut self, rows: u64) {
        self.rows += rows;
        self.completed += 1;
        self.await_keys();
    }

    pub fn refuse(&mut self, refusal: impl FnOnce() -> Refusal) {
        self.refusal.get_or_insert_with(refusal);
    }

    /// Stores the key of the next row that the awaited statement returned.
    pub fn store_key(&mut self, store: impl FnOnce(&Keys, u32)) {
        if let Some(Returned { slot, column, rows }) = self.awaited_keys.take() {
            store(self.keys, slot);
            self.awaited_keys = (rows > 1).then(|| Returned { slot: slot + 1, column, rows: rows - 1 });
        }
    }

    fn await_keys(&mut self) {
        self.awaited_keys = self.sent.get(self.completed).and_then(|statement| statement.keys()?.returned);
    }
}

/// The requests and replies of one session, in one protocol.
pub trait Dialogue<'p> {
    /// A reason why received bytes are not a reply.
    type Malformed: std::error::Error;

    /// Appends the request for a statement. If `is_last`, no further statement is sent before its reply.
    fn statement(&mut self, statement: &Statement<'p>, is_last: bool, keys: &mut KeyWriter, out: &mut Vec<u8>);

    /// Appends a request to roll back the transaction.
    fn roll_back(&mut self, out: &mut Vec<u8>);

    /// Reads the received messages. Counts commits in `tally`. `is_expected` says whether a reply is awaited.
    fn read(
        &mut self,
        mailbox: &mut Mailbox,
        is_expected: bool,
        replies: &mut Replies,
        tally: &mut Tally,
    ) -> Result<Progress, Self::Malformed>;

    /// Whether a transaction may be open after the last reply.
    fn may_be_in_transaction(&self) -> bool;

    /// Forgets the prepared statements of the session, because a statement has dropped them.
    fn discard(&mut self);

    /// Resets the state for a new session.
    fn reconnected(&mut self);

    /// Appends the message that ends the session.
    fn farewell(&self, out: &mut Vec<u8>);

    /// Returns the last message that the server sent before the connection was lost. Unread bytes are also parsed.
    fn last_words(&mut self, mailbox: &Mailbox) -> Option<String>;
}
