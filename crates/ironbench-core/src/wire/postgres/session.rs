//! A blocking PostgreSQL session, used for everything outside the measured window.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    channel::Channel,
    connect::{Cancel, Connected, Connector, MOST_PARAMETERS},
    copy::CopyIn,
    fault::{Fault, server_at},
    protocol::{
        self, Commits,
        backend::{self, ServerError, tag},
        frontend,
    },
};
use crate::wire::{
    address::Address,
    interrupt::{Interrupt, wish},
    pipe::Pipe,
    rows::{Pushed, Rows, too_much},
    words::{late, shortened, subject, unanswered},
};
use crate::{Error, Result};

pub struct Session {
    pub(super) channel: Channel,
    address: Address,
    parameters: BTreeMap<String, String>,
    backend_pid: i32,
    cancel: Cancel,
    /// The reason that the server gave in a message before it closed the connection.
    last_words: Option<Box<ServerError>>,
    /// Whether the connection is unusable.
    lost: bool,
    committing: Commits,
    commits: u64,
}

/// The result of a statement.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Rows of the last statement that returned rows.
    pub rows: Rows,
    /// Number of rows that the last statement inserted, changed, returned or copied.
    pub affected: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {{ {}, backend {} }}", self.address, self.backend_pid)
    }
}

impl Session {
    /// Connects a session. For errors see [`Connector::connect`].
    pub fn open(connector: &Connector) -> Result<Self> {
        Ok(Self::new(connector.connect()?, connector.address().clone()))
    }

    /// Connects like `open` followed by `interrupt_when`, but also calls `wanted` while connecting.
    pub fn open_unless(connector: &Connector, wanted: Box<dyn FnMut() -> bool + Send>) -> Result<Self> {
        let wish = wish(wanted);
        let mut session = Self::new(connector.connect_unless(Some(&wish))?, connector.address().clone());
        session.channel.interrupt = Some(Interrupt::new(wish, Some(session.cancel.cancelling())));
        Ok(session)
    }

    /// Makes statements also fail if the server is silent for `silence` and then does not answer a new connection. Such
    /// a server hangs, or its machine is gone without closing the connection.
    pub fn give_up_when_frozen(&mut self, silence: Duration, connector: &Connector) {
        let connector = connector.clone();
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.watch(silence, Arc::new(move || connector.answers()));
        }
    }

    pub fn new(connected: Connected, address: Address) -> Self {
        let Connected { stream, unread, parameters, backend_pid, cancel } = connected;
        let channel = Channel::new(Pipe::resume(stream, unread));
        let parameters = parameters.into_iter().collect();
        let (committing, commits) = (Commits::default(), 0);
        Self { channel, address, parameters, backend_pid, cancel, last_words: None, lost: false, committing, commits }
    }

    /// Returns a parameter that the server reports, e.g. `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    pub fn backend_pid(&self) -> i32 {
        self.backend_pid
    }

    /// Sets the deadline of statements, or removes it. A statement that exceeds the deadline loses the connection.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.channel.deadline = deadline;
    }

    pub fn is_tls(&self) -> bool {
        self.channel.tls.is_some()
    }

    /// Returns how many transactions the server has committed for this session, without the one at its start.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Returns an object that can cancel this session's statement from any thread.
    pub fn canceller(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Calls `wanted` ten times per second while a statement runs. When `wanted` returns true, the statement is
    /// cancelled.
    pub fn interrupt_when(&mut self, wanted: Box<dyn FnMut() -> bool + Send>) {
        self.channel.interrupt = Some(Interrupt::new(wish(wanted), Some(self.cancel.cancelling())));
    }

    /// Runs one or more statements. Returns the rows of the last one that returned rows.
    ///
    /// # Errors
    /// Failure: a statement was rejected, with the server's SQLSTATE, and the session stays usable.
    /// If the connection was lost, the session becomes unusable.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        Ok(self.run(sql)?.rows)
    }

    /// Runs statements as `query` does, and also returns the number of affected rows.
    pub fn run(&mut self, sql: &str) -> Result<Outcome> {
        self.begin(sql)?;
        self.collect(sql)
    }

    /// Runs statements as `query` does, but only counts the rows. Each row is dropped when it is read, so no memory has
    /// to be freed after the last one.
    pub fn count(&mut self, sql: &str) -> Result<u64> {
        self.begin(sql)?;
        Ok(self.take(sql, Outcome { rows: Rows::counted(0), affected: 0 })?.rows.len() as u64)
    }

    /// Starts a `COPY … FROM STDIN`. The caller pushes the data into the returned object.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>> {
        CopyIn::begin(self, sql)
    }

    /// Sends `sql`.
    pub(super) fn begin(&mut self, sql: &str) -> Result<()> {
        if self.lost {
            return Err(Error::failure(server_at(&self.address), "the connection is closed"));
        }
        if frontend::has_zero_byte(sql) {
            return Err(Error::failure(subject(sql), "SQL must not contain a zero byte"));
        }
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.rearm();
        }
        self.take_unasked().map_err(|fault| self.lose(fault, sql))?;
        frontend::query(&mut self.channel.output, sql);
        let Err(error) = self.channel.flush() else {
            return Ok(());
        };
        // If the server has ended the session, its explanation can still be read.
        Err(self.collect(sql).err().unwrap_or_else(|| self.lose(error.into(), sql)))
    }

    /// Handles messages sent since the last reply: notices, and the error that ends the session.
    fn take_unasked(&mut self) -> std::result::Result<(), Fault> {
        self.channel.read_arrived()?;
        while self.channel.peek()?.is_some() && protocol::is_unasked_allowed(self.channel.unread()) {
            if let Step::Refused(error) = self.step(&mut Outcome::default())? {
                self.last_words = Some(error);
                return Err(Fault::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        if protocol::is_unasked_allowed(self.channel.unread()) {
            Ok(())
        } else {
            Err(protocol::Malformed::Unasked.into())
        }
    }

    /// Reads the server's reply up to ReadyForQuery.
    pub(super) fn collect(&mut self, sql: &str) -> Result<Outcome> {
        self.take(sql, Outcome::default())
    }

    fn take(&mut self, sql: &str, mut outcome: Outcome) -> Result<Outcome> {
        let mut refusal = None;
        loop {
            match self.step(&mut outcome) {
                Ok(Step::More) => {}
                Ok(Step::Refused(error)) => drop(refusal.get_or_insert(error)),
                Ok(Step::WantsCopyData) => {
                    frontend::copy_fail(&mut self.channel.output, "COPY FROM STDIN is possible only through copy_in");
                    self.channel.flush().map_err(|error| self.lose(error.into(), sql))?;
                }
                Ok(Step::Done) => return refusal.map_or(Ok(outcome), |error| Err(refused(&error, sql))),
                // When a server ends a session, its last message is an error without ReadyForQuery.
                Err(fault) => {
                    self.last_words = refusal.or(self.last_words.take());
                    return Err(self.lose(fault, sql));
                }
            }
        }
    }

    /// Handles one message.
    pub(super) fn step(&mut self, outcome: &mut Outcome) -> std::result::Result<Step, Fault> {
        let message = self.channel.next(protocol::Rows::Keep)?;
        match message.tag {
            tag::DATA_ROW => match outcome.rows.push(backend::data_row(message.body)?)? {
                Pushed::Taken => {}
                Pushed::Misfit => return Err(protocol::Malformed::Nonsense.into()),
                Pushed::TooMuch => return Err(too_much().into()),
            },
            tag::ROW_DESCRIPTION => outcome.rows = outcome.rows.following(backend::column_names(message.body)?),
            tag::COMMAND_COMPLETE => {
                outcome.affected = backend::affected_rows(message.body);
                self.commits += self.committing.completed(message.body);
            }
            tag::EMPTY_QUERY_RESPONSE => self.committing.completed_empty(),
            tag::COPY_IN_RESPONSE => return Ok(Step::WantsCopyData),
            tag::READY_FOR_QUERY => {
                self.commits += self.committing.ready(backend::ready_for_query(message.body)?);
                return Ok(Step::Done);
            }
            tag::ERROR_RESPONSE => {
                self.committing.failed();
                return Ok(Step::Refused(Box::new(backend::server_error(message.body))));
            }
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(message.body)?;
                if self.parameters.contains_key(name) || self.parameters.len() < MOST_PARAMETERS {
                    self.parameters.insert(name.to_owned(), value.to_owned());
                }
            }
            tag::NOTICE_RESPONSE if backend::sqlstate(message.body).starts_with("57P") => {
                self.last_words = Some(Box::new(backend::server_error(message.body)));
            }
            _ => {}
        }
        Ok(Step::More)
    }

    /// Handles the messages that arrive while data are being sent. Returns true if the server has rejected the
    /// statement and expects no more data.
    pub(super) fn objects(&mut self) -> std::result::Result<bool, Fault> {
        self.channel.read_arrived()?;
        while let Some(tag) = self.channel.peek()? {
            if tag == tag::ERROR_RESPONSE {
                return Ok(true);
            }
            self.step(&mut Outcome::default())?;
        }
        Ok(false)
    }

    /// Words the error of a lost connection, and marks the session as unusable.
    pub(super) fn lose(&mut self, fault: Fault, sql: &str) -> Error {
        self.lost = true;
        let server = server_at(&self.address);
        let statement = shortened(sql);
        let mut sqlstate = String::new();
        let cause = match (fault, &self.last_words) {
            (fault, _) if fault.is_interrupt() => {
                format!("the cancelled statement did not end in time: {statement}")
            }
            (Fault::Io(error), None) if error.kind() == std::io::ErrorKind::TimedOut && self.channel.is_late() => {
                late(&statement)
            }
            (Fault::Io(error), None) if error.kind() == std::io::ErrorKind::TimedOut => unanswered(&statement),
            (Fault::Io(_), Some(words)) => {
                sqlstate.clone_from(&words.sqlstate);
                format!("the server ended the connection: {words}; statement: {statement}")
            }
            (Fault::Io(_), None) => format!("the server closed the connection during: {statement}"),
            (Fault::Tls(error), _) => format!("TLS error ({error}) during: {statement}"),
            (fault, _) => format!("{} during: {statement}", fault.into_io()),
        };
        Error { sqlstate, ..Error::failure(server, cause) }
            .hint("see the server's log: the server may have crashed or been stopped")
    }
}

pub(super) enum Step {
    More,
    Refused(Box<ServerError>),
    WantsCopyData,
    Done,
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.lost {
            frontend::terminate(&mut self.channel.output);
            self.channel.interrupt = None;
            self.channel.deadline = Some(std::time::Instant::now() + std::time::Duration::from_millis(100));
            let _ = self.channel.flush();
        }
    }
}

fn refused(error: &ServerError, sql: &str) -> Error {
    let place = match excerpt(sql, error.position) {
        Some(excerpt) => format!(", at character {}: {excerpt}", error.position),
        None => String::new(),
    };
    Error { sqlstate: error.sqlstate.clone(), ..Error::failure(subject(sql), format!("{error}{place}")) }
        .hint(error.hint.clone())
}

/// Returns a short part of the statement from `position` on (in characters, from 1).
fn excerpt(sql: &str, position: usize) -> Option<String> {
    let start = sql.char_indices().nth(position.checked_sub(1)?)?.0;
    Some(shortened(&sql[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_where_the_server_points_at() {
        assert_eq!(excerpt("select é frm t", 10).as_deref(), Some("frm t"));
        assert_eq!(excerpt("select 1", 0), None);
        assert_eq!(excerpt("select 1", 99), None);
    }

    #[test]
    fn a_refusal_names_statement_cause_place_and_way_out() {
        let body = b"VERROR\0C42P01\0Mrelation \"t\" does not exist\0Hmake it\0P15\0\0";
        let error = refused(&backend::server_error(body), "select * from t");
        assert_eq!(
            error.to_string(),
            "statement select * from t: relation \"t\" does not exist (SQLSTATE 42P01), at character 15: t"
        );
        assert_eq!(error.hint, "make it");
        assert_eq!(error.sqlstate, "42P01");
    }
}
