//! A blocking MySQL session, used for everything outside the measured window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    channel::Channel,
    connect::{Cancel, Connected, Connector},
    copy::CopyIn,
    fault::{Fault, server_at},
    protocol::{
        self, Malformed,
        backend::{self, Answer, Column, Done, ServerError, head},
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
    version: String,
    connection_id: u32,
    cancel: Cancel,
    /// Whether the connection is unusable.
    lost: bool,
}

/// The result of a statement.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Rows of the last statement that returned rows.
    pub rows: Rows,
    /// Number of rows that the last statement inserted, changed (or found unchanged) or deleted.
    pub affected: u64,
    /// Number of warnings from all statements.
    pub warnings: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {{ {}, connection {} }}", self.address, self.connection_id)
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
        let Connected { stream, unread, version, connection_id, cancel, .. } = connected;
        let channel = Channel::new(Pipe::resume(stream, unread));
        Self { channel, address, version, connection_id, cancel, lost: false }
    }

    /// Returns the server's version from its greeting, such as `10.11.6-MariaDB` or `8.4.2`.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// Sets the deadline of statements, or removes it. A statement that exceeds the deadline loses the connection.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.channel.deadline = deadline;
    }

    pub fn is_tls(&self) -> bool {
        self.channel.tls.is_some()
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
    /// Failure: a statement was rejected, with the server's number and SQLSTATE.
    /// Earlier statements took effect and the session stays usable.
    /// If the connection was lost, the session becomes unusable.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        Ok(self.run(sql)?.rows)
    }

    /// Runs statements as `query` does, and also returns the number of affected rows.
    pub fn run(&mut self, sql: &str) -> Result<Outcome> {
        self.begin(sql)?;
        self.collect(sql, Outcome::default())
    }

    /// Runs a statement in any character set as `run` does, because a dump may contain binary literals.
    ///
    /// # Errors
    /// The errors of `query`.
    pub fn run_bytes(&mut self, sql: &[u8]) -> Result<Outcome> {
        let words = String::from_utf8_lossy(sql);
        self.send(&words, |out| frontend::query_with(out, |out| out.extend_from_slice(sql)))?;
        self.collect(&words, Outcome::default())
    }

    /// Runs statements as `query` does, but only counts the rows. Each row is dropped when it is read, so no memory has
    /// to be freed after the last one.
    pub fn count(&mut self, sql: &str) -> Result<u64> {
        self.begin(sql)?;
        Ok(self.collect(sql, Outcome { rows: Rows::counted(0), ..Outcome::default() })?.rows.len() as u64)
    }

    /// Starts a `LOAD DATA LOCAL INFILE '…' INTO TABLE …`. The caller pushes the data into the returned object, and the
    /// file name is ignored.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>> {
        CopyIn::begin(self, sql)
    }

    /// Sends `sql`.
    pub(super) fn begin(&mut self, sql: &str) -> Result<()> {
        self.send(sql, |out| frontend::query(out, sql))
    }

    fn send(&mut self, sql: &str, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.lost {
            return Err(Error::failure(server_at(&self.address), "the connection is closed"));
        }
        if let Some(interrupt) = self.channel.interrupt.as_mut() {
            interrupt.rearm();
        }
        self.refuse_unasked(sql)?;
        write(&mut self.channel.output);
        let Err(error) = self.channel.flush() else {
            return Ok(());
        };
        // If the server has ended the session, its explanation can still be read.
        let said = self.collect(sql, Outcome::default()).err();
        self.lost = true;
        Err(said.unwrap_or_else(|| self.lose(error.into(), sql)))
    }

    /// Checks that nothing has arrived since the last reply, except the error with which the server ends the session.
    fn refuse_unasked(&mut self, sql: &str) -> Result<()> {
        // If the server has closed the connection by now, sending detects that.
        self.channel.receive_any().map_err(|broken| self.lose(broken.into(), sql))?;
        if self.channel.unread().is_empty() {
            return Ok(());
        }
        if !protocol::is_unasked_allowed(self.channel.unread()) {
            return Err(self.lose(Malformed::Unasked.into(), sql));
        }
        let fault = self.answer(&mut Outcome::default()).err().unwrap_or(Malformed::Unasked.into());
        Err(self.lose(fault, sql))
    }

    /// Reads the server's reply to its end.
    pub(super) fn collect(&mut self, sql: &str, mut outcome: Outcome) -> Result<Outcome> {
        let mut refused_data = false;
        loop {
            match self.answer(&mut outcome) {
                Ok(Some(Answer::LocalInfile)) => {
                    // The server requested a file, and the client does not send one just because of that.
                    refused_data = true;
                    self.channel.answer(b"").map_err(|fault| self.lose(fault, sql))?;
                }
                Ok(Some(_)) => {}
                Ok(None) if refused_data => {
                    return Err(Error::failure(subject(sql), "LOAD DATA LOCAL is possible only through copy_in"));
                }
                Ok(None) => return Ok(outcome),
                Err(fault) => return Err(self.failed(fault, sql)),
            }
        }
    }

    /// Words the error of a rejected statement or a lost connection.
    pub(super) fn failed(&mut self, fault: Fault, sql: &str) -> Error {
        match fault {
            Fault::Server(error) if !ends_session(&error) => refused(&error, sql),
            fault => self.lose(fault, sql),
        }
    }

    /// Reads the reply to one statement, or the request for data. Returns `None` after the last statement.
    pub(super) fn answer(&mut self, outcome: &mut Outcome) -> std::result::Result<Option<Answer>, Fault> {
        let body = self.channel.next(protocol::Rows::Keep)?;
        let answer = Answer::read(body, false)?;
        let done = match answer {
            Answer::LocalInfile => return Ok(Some(answer)),
            Answer::Error => return Err(Fault::Server(Box::new(backend::server_error(body)))),
            Answer::Done(done) => done,
            Answer::Rows(columns, _) => self.rows(columns, outcome)?,
        };
        outcome.affected = done.affected;
        outcome.warnings += u64::from(done.warnings);
        Ok(done.has_more().then_some(answer))
    }

    fn rows(&mut self, columns: usize, outcome: &mut Outcome) -> std::result::Result<Done, Fault> {
        let names = (0..columns).map(|_| Ok(Column::read(self.channel.next(protocol::Rows::Keep)?)?.name));
        let names = names.collect::<std::result::Result<Vec<_>, Fault>>()?;
        outcome.rows = outcome.rows.following(names);
        loop {
            let body = self.channel.next(protocol::Rows::Keep)?;
            match body.first() {
                Some(&head::END) => return Ok(Done::read(body)?),
                Some(&head::ERROR) => return Err(Fault::Server(Box::new(backend::server_error(body)))),
                _ => match outcome.rows.push(backend::text_row(body))? {
                    Pushed::Taken => {}
                    Pushed::Misfit => return Err(Malformed::Nonsense.into()),
                    Pushed::TooMuch => return Err(too_much().into()),
                },
            }
        }
    }

    /// Words the error of a lost connection, and marks the session as unusable.
    pub(super) fn lose(&mut self, fault: Fault, sql: &str) -> Error {
        self.lost = true;
        let server = server_at(&self.address);
        let statement = shortened(sql);
        let (mut sqlstate, mut number) = (String::new(), 0);
        let cause = match fault {
            fault if fault.is_interrupt() => format!("the cancelled statement did not end in time: {statement}"),
            Fault::Server(error) => {
                (sqlstate, number) = (error.sqlstate.clone(), error.number);
                format!("the server ended the connection: {error}; statement: {statement}")
            }
            Fault::Io(error) if error.kind() == std::io::ErrorKind::TimedOut && self.channel.is_late() => {
                late(&statement)
            }
            Fault::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => unanswered(&statement),
            Fault::Io(_) => format!("the server closed the connection during: {statement}"),
            Fault::Tls(error) => format!("TLS error ({error}) during: {statement}"),
            fault => format!("{} during: {statement}", fault.into_io()),
        };
        let hint = match number {
            1153 => "raise max_allowed_packet on the server, or send less data at a time",
            _ => "see the server's log: the server may have crashed or been stopped",
        };
        Error { sqlstate, number, ..Error::failure(server, cause) }.hint(hint)
    }

    /// Closes the socket, so that the server rolls back the running statement.
    pub(super) fn abandon(&mut self) {
        self.lost = true;
        let _ = rustix::net::shutdown(&self.channel.fd, rustix::net::Shutdown::Both);
    }
}

/// Whether the server closes the connection after this error.
/// The server is shutting down (1053), the packet was too large (1153) or out of order (1156),
/// or the connection was killed (1927) or idle for too long (4031).
fn ends_session(error: &ServerError) -> bool {
    matches!(error.number, 1053 | 1153 | 1156 | 1927 | 4031)
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.lost {
            frontend::quit(&mut self.channel.output);
            self.channel.interrupt = None;
            self.channel.deadline = Some(std::time::Instant::now() + std::time::Duration::from_millis(100));
            let _ = self.channel.flush();
        }
    }
}

fn refused(error: &ServerError, sql: &str) -> Error {
    let hint = match error.number {
        1148 | 3948 | 4166 => "allow the server to accept data from clients (SET GLOBAL local_infile = ON)",
        14 | 1021 | 1114 => "free some space on the server's disk",
        _ => "",
    };
    Error {
        sqlstate: error.sqlstate.clone(),
        number: error.number,
        ..Error::failure(subject(sql), error.to_string()).hint(hint)
    }
}
