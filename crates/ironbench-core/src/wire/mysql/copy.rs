//! `LOAD DATA LOCAL`, with the data pushed by the caller.

use super::{
    connect::{Fault, Mysql},
    protocol::{Malformed, backend::Answer, framing::HEAD, frontend},
};
use crate::wire::display::subject;
use crate::wire::session::{Outcome, Session, SessionProtocol};
use crate::{Error, Result};

/// Approximate size of the packets. With larger packets, the data no longer fit into the second-level cache. With
/// smaller packets, the cost of system calls and packets is not negligible.
const FRAME: usize = 64 * 1024;

/// A LOAD DATA in progress. If it is dropped before [`CopyIn::finish`], the connection is closed. Otherwise the server
/// would not roll the load back.
#[derive(Debug)]
pub struct CopyIn<'a> {
    session: &'a mut Session<Mysql>,
    sql: String,
    /// A packet whose length is not known yet.
    frame: Vec<u8>,
    open: bool,
}

impl<'a> CopyIn<'a> {
    /// Starts a `LOAD DATA LOCAL INFILE '…' INTO TABLE …`. The file name is ignored.
    pub fn begin(session: &'a mut Session<Mysql>, sql: &str) -> Result<Self> {
        session.begin(sql)?;
        match session.answer(&mut Outcome::default()) {
            Ok(Some(Answer::LocalInfile)) => {}
            Ok(None) => return Err(Error::failure("copy_in", "the statement is not LOAD DATA LOCAL")),
            Ok(Some(_)) => {
                Mysql::collect(session, sql, &(), Outcome::default())?;
                return Err(Error::failure("copy_in", "the statement is not LOAD DATA LOCAL"));
            }
            Err(fault) => return Err(session.failed(fault, sql)),
        }
        let mut frame = Vec::with_capacity(FRAME + HEAD);
        frame.extend_from_slice(&[0; HEAD]);
        Ok(Self { session, sql: sql.to_owned(), frame, open: true })
    }

    /// Sends `data` in the format that the statement requested. Calls may split rows anywhere.
    ///
    /// # Errors
    /// Failure: the connection was lost, which ends the load.
    pub fn send(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let room = (FRAME + HEAD).saturating_sub(self.frame.len());
            if data.len() < room {
                self.frame.extend_from_slice(data);
                return Ok(());
            }
            let (now, later) = data.split_at(room);
            self.frame.extend_from_slice(now);
            data = later;
            self.send_without_reply()?;
        }
        Ok(())
    }

    /// Ends the load. Returns the number of rows loaded.
    ///
    /// # Errors
    /// Failure: the load failed, or the server warned. With LOCAL, a warning means that the server truncated values
    /// that do not fit, or skipped rows that it cannot store. Loaded rows stay unless a surrounding transaction is
    /// rolled back.
    pub fn finish(mut self) -> Result<u64> {
        self.send_without_reply()?;
        self.open = false;
        let outcome = match self.session.channel.answer(b"") {
            Ok(()) => Mysql::collect(self.session, &self.sql, &(), Outcome::default())?,
            Err(fault) => return Err(self.over(fault)),
        };
        if outcome.warnings > 0 {
            return Err(self.warned(outcome.warnings));
        }
        Ok(outcome.affected)
    }

    #[cold]
    fn warned(&mut self, warnings: u64) -> Error {
        let first = self.session.query("SHOW WARNINGS LIMIT 1");
        let first = first.ok().and_then(|rows| rows.get(0, 2).map(|text| format!("; the first: {text}")));
        let cause = format!("the server issued {warnings} warnings about the data{}", first.unwrap_or_default());
        Error::failure(subject(&self.sql), cause).hint("rows may be missing or changed: do not use the loaded data")
    }

    fn send_without_reply(&mut self) -> Result<()> {
        if !self.open {
            return Err(Error::failure("copy_in", "the load has ended"));
        }
        let length = self.frame.len() - HEAD;
        if length == 0 {
            return Ok(());
        }
        let channel = &mut self.session.channel;
        self.frame[..HEAD].copy_from_slice(&frontend::head(length, channel.counter));
        channel.counter = channel.counter.wrapping_add(1);
        let sent = channel.write_all(&self.frame);
        self.frame.truncate(HEAD);
        sent.map_err(|error| self.over(error.into()))
    }

    /// Returns the error for a load that ended early, with the server's explanation if it sent one.
    #[cold]
    fn over(&mut self, fault: Fault) -> Error {
        self.open = false;
        match self.session.answer(&mut Outcome::default()) {
            Err(said @ Fault::Server(_)) => self.session.lose(said, &self.sql),
            Ok(_) => self.session.lose(Malformed::Invalid.into(), &self.sql),
            Err(_) => self.session.lose(fault, &self.sql),
        }
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if self.open {
            self.session.abandon();
        }
    }
}
