//! Statements of a blocking MySQL session.

use super::{
    connect::{Fault, Mysql},
    copy::CopyIn,
    protocol::{
        self, Malformed,
        backend::{self, Answer, Column, Done, ServerError, head},
        frontend,
    },
};
use crate::wire::{
    display::subject,
    rows::{Pushed, too_much},
    session::{Outcome, SEE_LOG, Session, SessionProtocol},
};
use crate::{Error, Result};

impl SessionProtocol for Mysql {
    const NAME: &'static str = "MySQL";

    type Request = ();

    fn request(session: &mut Session<Self>, sql: &str) -> Result<()> {
        frontend::query(&mut session.channel.output, sql);
        Ok(())
    }

    /// Accepts only the error with which the server ends the session.
    fn take_unasked(session: &mut Session<Self>) -> std::result::Result<(), Fault> {
        // A closed connection is no error here, because sending the next request detects it.
        session.channel.receive_any()?;
        if session.channel.unread().is_empty() {
            return Ok(());
        }
        if !protocol::is_unexpected_allowed(session.channel.unread()) {
            return Err(Malformed::Unexpected.into());
        }
        Err(session.answer(&mut Outcome::default()).err().unwrap_or(Malformed::Unexpected.into()))
    }

    fn collect(session: &mut Session<Self>, sql: &str, (): &(), mut outcome: Outcome) -> Result<Outcome> {
        let mut refused_data = false;
        loop {
            match session.answer(&mut outcome) {
                Ok(Some(Answer::LocalInfile)) => {
                    // The server requested a file. The client never sends a file at a server's request, so it sends
                    // empty data.
                    refused_data = true;
                    session.channel.answer(b"").map_err(|fault| session.lose(fault, sql))?;
                }
                Ok(Some(_)) => {}
                Ok(None) if refused_data => {
                    return Err(Error::failure(subject(sql), "LOAD DATA LOCAL is possible only through copy_in"));
                }
                Ok(None) => return Ok(outcome),
                Err(fault) => return Err(session.failed(fault, sql)),
            }
        }
    }

    fn copy_in(session: &mut Session<Self>, sql: &str, data: &[u8]) -> Result<u64> {
        let mut copy = CopyIn::begin(session, sql)?;
        copy.send(data)?;
        copy.finish()
    }

    fn terminate(output: &mut Vec<u8>) {
        frontend::quit(output);
    }

    fn hint_when_ended(error: &ServerError) -> &'static str {
        match error.number {
            1153 => "raise max_allowed_packet on the server, or send less data at a time",
            _ => SEE_LOG,
        }
    }
}

impl Session<Mysql> {
    /// Returns the server's version from its greeting, such as `10.11.6-MariaDB` or `8.4.2`.
    pub fn version(&self) -> &str {
        &self.state.version
    }

    pub fn connection_id(&self) -> u32 {
        self.state.connection_id
    }

    /// Runs a statement as `run` does. The statement may be in any character set, because a dump may contain binary
    /// literals.
    ///
    /// # Errors
    /// The errors of `query`.
    pub fn run_bytes(&mut self, sql: &[u8]) -> Result<Outcome> {
        let words = String::from_utf8_lossy(sql);
        self.send(&words, |session| {
            frontend::query_with(&mut session.channel.output, |out| out.extend_from_slice(sql));
            Ok(())
        })?;
        Mysql::collect(self, &words, &(), Outcome::default())
    }

    /// Returns the error for a rejected statement or a lost connection.
    pub(super) fn failed(&mut self, fault: Fault, sql: &str) -> Error {
        match fault {
            Fault::Server(error) if !error.ends_session() => refused(&error, sql),
            fault => self.lose(fault, sql),
        }
    }

    /// Reads the reply to one statement, or a request for data. Returns `None` after the last statement.
    pub(super) fn answer(&mut self, outcome: &mut Outcome) -> std::result::Result<Option<Answer>, Fault> {
        let body = self.channel.next()?;
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
        let names = (0..columns).map(|_| Ok(Column::read(self.channel.next()?)?.name));
        let names = names.collect::<std::result::Result<Vec<_>, Fault>>()?;
        outcome.rows = outcome.rows.following(names);
        loop {
            let body = self.channel.next()?;
            match body.first() {
                Some(&head::END) => return Ok(Done::read(body)?),
                Some(&head::ERROR) => return Err(Fault::Server(Box::new(backend::server_error(body)))),
                _ => match outcome.rows.push(backend::text_row(body))? {
                    Pushed::Taken => {}
                    Pushed::Misfit => return Err(Malformed::Invalid.into()),
                    Pushed::TooMuch => return Err(too_much().into()),
                },
            }
        }
    }

    /// Closes the socket, so that the server rolls back the running statement.
    pub(super) fn abandon(&mut self) {
        self.lost = true;
        let _ = rustix::net::shutdown(&self.channel.fd, rustix::net::Shutdown::Both);
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
