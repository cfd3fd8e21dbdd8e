//! Statements of a blocking PostgreSQL session.

use super::{
    connect::{Fault, Postgres, PostgresState},
    copy::CopyIn,
    protocol::{
        self, Malformed,
        backend::{self, ServerError, tag},
        frontend,
    },
};
use crate::wire::{
    channel::Channel,
    display::{shortened, subject},
    fault::Broken,
    rows::{Pushed, too_much},
    session::{Outcome, Session, SessionProtocol},
};
use crate::{Error, Result};

impl SessionProtocol for Postgres {
    const NAME: &'static str = "PostgreSQL";

    type Request = ();

    fn request(session: &mut Session<Self>, sql: &str) -> Result<()> {
        if frontend::has_zero_byte(sql) {
            return Err(Error::failure(subject(sql), "SQL must not contain a zero byte"));
        }
        frontend::query(&mut session.channel.output, sql);
        Ok(())
    }

    /// Handles messages that a server may send at any time, such as notices. Returns an error if the server has ended
    /// the session.
    fn take_unasked(session: &mut Session<Self>) -> std::result::Result<(), Fault> {
        session.channel.read_arrived()?;
        while session.channel.peek()?.is_some() && protocol::is_unexpected_allowed(session.channel.unread()) {
            if let Step::Refused(error) = session.step(&mut Outcome::default())? {
                session.state.last_words = Some(error);
                return Err(Fault::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        if protocol::is_unexpected_allowed(session.channel.unread()) {
            Ok(())
        } else {
            Err(Malformed::Unexpected.into())
        }
    }

    /// Reads the server's reply up to ReadyForQuery.
    fn collect(session: &mut Session<Self>, sql: &str, (): &(), mut outcome: Outcome) -> Result<Outcome> {
        let mut refusal = None;
        loop {
            match session.step(&mut outcome) {
                Ok(Step::More) => {}
                Ok(Step::Refused(error)) => drop(refusal.get_or_insert(error)),
                Ok(Step::WantsCopyData) => {
                    let words = "COPY FROM STDIN is possible only through copy_in";
                    frontend::copy_fail(&mut session.channel.output, words);
                    session.channel.flush().map_err(|error| session.lose(error.into(), sql))?;
                }
                Ok(Step::Done) => return refusal.map_or(Ok(outcome), |error| Err(refused(&error, sql))),
                // A server that ends a session sends an error without ReadyForQuery as its last message.
                Err(fault) => {
                    session.state.last_words = refusal.or(session.state.last_words.take());
                    return Err(session.lose(fault, sql));
                }
            }
        }
    }

    fn copy_in(session: &mut Session<Self>, sql: &str, data: &[u8]) -> Result<u64> {
        let mut copy = CopyIn::begin(session, sql)?;
        copy.send(data)?;
        copy.finish()
    }

    fn terminate(output: &mut Vec<u8>) {
        frontend::terminate(output);
    }

    fn last_words(state: &mut PostgresState) -> Option<Box<ServerError>> {
        state.last_words.take()
    }

    fn commits(state: &PostgresState) -> u64 {
        state.commits
    }
}

impl Session<Postgres> {
    /// Returns a parameter that the server reports, e.g. `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.state.parameters.get(name).map(String::as_str)
    }

    pub fn backend_pid(&self) -> i32 {
        self.state.backend_pid
    }

    /// Handles one message.
    pub(super) fn step(&mut self, outcome: &mut Outcome) -> std::result::Result<Step, Fault> {
        let message = self.channel.next()?;
        match message.tag {
            tag::DATA_ROW => match outcome.rows.push(backend::data_row(message.body)?)? {
                Pushed::Taken => {}
                Pushed::Misfit => return Err(Malformed::Invalid.into()),
                Pushed::TooMuch => return Err(too_much().into()),
            },
            tag::ROW_DESCRIPTION => outcome.rows = outcome.rows.following(backend::column_names(message.body)?),
            tag::COMMAND_COMPLETE => {
                outcome.affected = backend::affected_rows(message.body);
                self.state.commits += self.state.committing.completed(message.body);
            }
            tag::EMPTY_QUERY_RESPONSE => self.state.committing.completed_empty(),
            tag::COPY_IN_RESPONSE => return Ok(Step::WantsCopyData),
            tag::READY_FOR_QUERY => {
                self.state.commits += self.state.committing.ready(backend::ready_for_query(message.body)?);
                return Ok(Step::Done);
            }
            tag::ERROR_RESPONSE => {
                self.state.committing.failed();
                return Ok(Step::Refused(Box::new(backend::server_error(message.body))));
            }
            tag::PARAMETER_STATUS => self.state.keep_parameter(message.body)?,
            tag::NOTICE_RESPONSE if backend::sqlstate(message.body).starts_with("57P") => {
                self.state.last_words = Some(Box::new(backend::server_error(message.body)));
            }
            _ => {}
        }
        Ok(Step::More)
    }

    /// Handles the messages that arrive while data are being sent. Returns true if the server has rejected the
    /// statement and expects no more data.
    pub(super) fn objects(&mut self) -> std::result::Result<bool, Fault> {
        self.channel.read_arrived()?;
        while let Some(message) = self.channel.peek()? {
            if message.tag == tag::ERROR_RESPONSE {
                return Ok(true);
            }
            self.step(&mut Outcome::default())?;
        }
        Ok(false)
    }
}

pub(super) enum Step {
    More,
    Refused(Box<ServerError>),
    WantsCopyData,
    Done,
}

impl Channel<Postgres> {
    /// Reads the bytes that have arrived, without waiting. The function reads only once, because a server may send
    /// faster than the client reads. A closed connection is an error only if no complete message is left.
    fn read_arrived(&mut self) -> std::result::Result<(), Fault> {
        let closed = self.receive_any()? == Some(0);
        if closed && self.peek()?.is_none() {
            return Err(Broken::Io(std::io::ErrorKind::UnexpectedEof.into()).into());
        }
        Ok(())
    }

    /// Waits until the next message is complete and returns its tag, without consuming it.
    pub(super) fn wait_peek(&mut self) -> std::result::Result<u8, Fault> {
        loop {
            match self.peek()? {
                Some(message) => return Ok(message.tag),
                None => self.more()?,
            }
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
