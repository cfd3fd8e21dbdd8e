//! A blocking session of a server, used for everything outside the measured window.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    channel::Channel,
    connector::{Cancel, Connected, Connector},
    display::{late, shortened, unanswered},
    fault::Fault,
    interrupt::{self, Interrupt},
    pipe::Pipe,
    protocol::{ErrorCodes, ServerProtocol},
    rows::Rows,
};
use crate::{Error, Result};

/// Hint for a lost connection.
pub const SEE_LOG: &str = "see the server's log: the server may have crashed or been stopped";

/// Time limit for sending the last message of a session.
const TERMINATE_TIMEOUT: Duration = Duration::from_millis(100);

/// A function that is called regularly during a wait and returns whether to give up.
pub type StopCheck = Box<dyn FnMut() -> bool + Send>;

/// The result of a statement.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Rows of the last statement that returned rows.
    pub rows: Rows,
    /// Number of rows that the last statement inserted, changed, returned or copied.
    pub affected: u64,
    /// Number of warnings from all statements. Only MySQL counts them.
    pub warnings: u64,
}

/// The part of a blocking session that depends on the server's protocol.
pub trait SessionProtocol: ServerProtocol {
    /// The engine's name in messages.
    const NAME: &'static str;
    /// The engine's word for a request in messages.
    const REQUEST: &'static str = "statement";

    /// Data about a sent request that are needed to read its reply. `()` if none are needed.
    type Request;

    /// Appends the request of `sql` to the output.
    fn request(session: &mut Session<Self>, sql: &str) -> Result<Self::Request>;

    /// Handles the messages that have arrived since the last reply. Fails if a message could be mistaken for the next
    /// reply.
    fn take_unasked(_: &mut Session<Self>) -> std::result::Result<(), Fault<Self>> {
        Ok(())
    }

    /// Reads the reply to its end.
    fn collect(session: &mut Session<Self>, sql: &str, request: &Self::Request, outcome: Outcome) -> Result<Outcome>;

    /// Copies `data` as `sql` requests. Returns the number of rows copied.
    fn copy_in(session: &mut Session<Self>, sql: &str, data: &[u8]) -> Result<u64>;

    /// Appends the message that ends a session.
    fn terminate(output: &mut Vec<u8>);

    /// Returns and removes the error in which the server announced that it would close the connection.
    fn last_words(_: &mut Self::State) -> Option<Box<Self::ServerError>> {
        None
    }

    /// Returns the codes to report when the server has ended the connection with this error.
    fn codes_when_ended(error: &Self::ServerError) -> ErrorCodes<'_> {
        Self::codes(error)
    }

    /// Returns the hint to report when the server has ended the connection with this error.
    fn hint_when_ended(_: &Self::ServerError) -> &'static str {
        SEE_LOG
    }

    /// Shortens `sql` to one line without passwords.
    fn shown(sql: &str) -> String {
        shortened(sql)
    }

    fn commits(_: &Self::State) -> u64 {
        0
    }
}

pub struct Session<P: SessionProtocol> {
    pub(super) channel: Channel<P>,
    pub(super) connector: Connector<P>,
    pub(super) state: P::State,
    /// Whether the connection is unusable.
    pub(super) lost: bool,
}

impl<P: SessionProtocol> fmt::Debug for Session<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session {{ {} }}", self.connector.address())
    }
}

impl<P: SessionProtocol> Session<P> {
    /// Connects a session. `stop_check` is called while connecting, and ten times per second while a statement runs.
    /// When it returns true, connecting fails or the statement is cancelled. For errors see [`Connector::connect`].
    pub fn open(connector: &Connector<P>, stop_check: StopCheck) -> Result<Self> {
        let stop_check = interrupt::shared(stop_check);
        let Connected { stream, unread, state, counter, connector } = connector.connect_unless(Some(&stop_check))?;
        let channel = Channel::resume(Pipe::resume(stream, unread), counter);
        let mut session = Self { channel, connector, state, lost: false };
        let cancelling = session.canceller().map(Cancel::cancelling);
        session.channel.interrupt = Some(Interrupt::new(stop_check, cancelling));
        Ok(session)
    }

    /// Makes statements also fail if the server hangs or its machine is gone without closing the connection. This is
    /// assumed if the server sends nothing for `silence` and then does not answer a new connection.
    pub fn give_up_when_frozen(&mut self, silence: Duration) {
        let connector = self.connector.clone();
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.detect_hang(silence, Arc::new(move || connector.answers()));
        }
    }

    /// Sets the deadline of statements, or removes it. A statement that exceeds the deadline loses the connection.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.channel.deadline = deadline;
    }

    pub fn is_tls(&self) -> bool {
        self.channel.tls.is_some()
    }

    /// Returns an object that can cancel this session's statement from any thread. Returns None if the protocol has no
    /// such request.
    pub fn canceller(&self) -> Option<Cancel<P>> {
        self.connector.canceller(&self.state, self.is_tls())
    }

    /// Returns how many transactions the server has committed for this session. The transaction at the start of the
    /// session is not counted. Returns 0 if the protocol does not show commits.
    pub fn commits(&self) -> u64 {
        P::commits(&self.state)
    }

    /// Runs one or more statements. Returns the rows of the last one that returned rows.
    ///
    /// # Errors
    /// Input: the statement is malformed. Failure: a statement was rejected, or the connection was lost. The error for
    /// a rejected statement contains the server's SQLSTATE and number. Earlier statements have taken effect, and the
    /// session stays usable. After a lost connection, the session is unusable.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        Ok(self.run(sql)?.rows)
    }

    /// Runs statements as `query` does, and also returns the number of affected rows.
    pub fn run(&mut self, sql: &str) -> Result<Outcome> {
        let request = self.begin(sql)?;
        P::collect(self, sql, &request, Outcome::default())
    }

    /// Runs statements as `query` does, but only counts the rows. Each row is dropped when it is read. Otherwise
    /// freeing all rows at the end would take additional time.
    pub fn count(&mut self, sql: &str) -> Result<u64> {
        let request = self.begin(sql)?;
        let outcome = P::collect(self, sql, &request, Outcome { rows: Rows::counted(0), ..Outcome::default() })?;
        Ok(outcome.rows.len() as u64)
    }

    /// Copies `data` with the statement `sql`. Returns the number of rows copied.
    pub fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64> {
        P::copy_in(self, sql, data)
    }

    /// Sends `sql`.
    pub(super) fn begin(&mut self, sql: &str) -> Result<P::Request> {
        self.send(sql, |session| P::request(session, sql))
    }

    /// Sends the request that `write` appends to the output. `sql` is its text in messages.
    pub(super) fn send(
        &mut self,
        sql: &str,
        write: impl FnOnce(&mut Self) -> Result<P::Request>,
    ) -> Result<P::Request> {
        if self.lost {
            return Err(Error::failure(self.connector.server(), "the connection is closed"));
        }
        let request = write(self)?;
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.rearm();
        }
        P::take_unasked(self).map_err(|fault| self.lose(fault, sql))?;
        let Err(error) = self.channel.flush() else {
            return Ok(request);
        };
        // If the server has ended the session, its explanation can still be read. This is not tried if the wait cannot
        // be cancelled, because it could last forever.
        let explanation = self.canceller().and_then(|_| P::collect(self, sql, &request, Outcome::default()).err());
        self.lost = true;
        Err(explanation.unwrap_or_else(|| self.lose(error.into(), sql)))
    }

    /// Returns the error for a lost connection, and marks the session as unusable.
    pub(super) fn lose(&mut self, fault: Fault<P>, sql: &str) -> Error {
        use std::io::ErrorKind::TimedOut;
        self.lost = true;
        let statement = P::shown(sql);
        let fault = match P::last_words(&mut self.state) {
            Some(words) if matches!(fault, Fault::Io(_)) && !fault.is_interrupt() => Fault::Server(words),
            _ => fault,
        };
        let mut lost = Error::failure(self.connector.server(), "").hint(SEE_LOG);
        lost.cause = match fault {
            fault if fault.is_interrupt() => match self.canceller() {
                Some(_) => format!("the cancelled statement did not end in time: {statement}"),
                None => format!("interrupted during: {statement}"),
            },
            Fault::Server(error) => {
                let ErrorCodes { sqlstate, number } = P::codes_when_ended(&error);
                (lost.sqlstate, lost.number) = (sqlstate.to_owned(), number);
                lost.hint = P::hint_when_ended(&error).to_owned();
                format!("the server ended the connection: {error}; {}: {statement}", P::REQUEST)
            }
            Fault::Io(error) if error.kind() == TimedOut && self.channel.is_late() => late(&statement),
            Fault::Io(error) if error.kind() == TimedOut => unanswered(&statement),
            Fault::Io(_) => format!("the server closed the connection during: {statement}"),
            Fault::Tls(error) => format!("TLS error ({error}) during: {statement}"),
            fault => format!("{} during: {statement}", fault.into_io()),
        };
        lost
    }
}

impl<P: SessionProtocol> Drop for Session<P> {
    fn drop(&mut self) {
        if !self.lost {
            P::terminate(&mut self.channel.output);
            self.channel.interrupt = None;
            self.channel.deadline = Some(Instant::now() + TERMINATE_TIMEOUT);
            let _ = self.channel.flush();
        }
    }
}
