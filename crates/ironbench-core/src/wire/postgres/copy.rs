//! `COPY … FROM STDIN`, with the data pushed by the caller.

use super::{
    connect::{Fault, Postgres},
    protocol::{Malformed, backend::tag, frontend},
};
use crate::wire::session::{Outcome, Session, SessionProtocol};
use crate::{Error, Result};

/// Approximate size of the CopyData messages. With larger messages, the data no longer fit into the second-level cache.
/// With smaller messages, the cost of system calls and messages is not negligible.
const FRAME: usize = 64 * 1024;

/// A COPY in progress. If it is dropped before [`CopyIn::finish`], the server rolls the COPY back.
#[derive(Debug)]
pub struct CopyIn<'a> {
    session: &'a mut Session<Postgres>,
    sql: String,
    /// A CopyData message whose length is not known yet.
    frame: Vec<u8>,
    open: bool,
}

impl<'a> CopyIn<'a> {
    /// Starts a `COPY … FROM STDIN`.
    pub fn begin(session: &'a mut Session<Postgres>, sql: &str) -> Result<Self> {
        session.begin(sql)?;
        loop {
            // The tag is checked first. `collect` must read any reply other than CopyInResponse completely.
            match session.channel.wait_peek() {
                Err(fault) => return Err(session.lose(fault, sql)),
                Ok(tag::COPY_IN_RESPONSE) => break,
                Ok(tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS) => {
                    // Only one message is consumed, because the next one may be the CopyInResponse.
                    session.step(&mut Outcome::default()).map_err(|fault| session.lose(fault, sql))?;
                }
                Ok(_) => {
                    Postgres::collect(session, sql, &(), Outcome::default())?;
                    return Err(Error::failure("copy_in", "the statement is not COPY … FROM STDIN"));
                }
            }
        }
        if let Err(fault) = session.channel.next() {
            return Err(session.lose(fault, sql));
        }
        let mut frame = Vec::with_capacity(FRAME + frontend::copy_data_head(0).len());
        frame.extend_from_slice(&frontend::copy_data_head(0));
        Ok(Self { session, sql: sql.to_owned(), frame, open: true })
    }

    /// Sends `data` in the format that the statement requested. Calls may split rows anywhere.
    ///
    /// # Errors
    /// Failure: the server rejected rows sent earlier, or the connection was lost. The COPY has then ended.
    pub fn send(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let room = FRAME.saturating_sub(self.frame.len());
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

    /// Ends the COPY. Returns the number of rows copied.
    pub fn finish(mut self) -> Result<u64> {
        self.send_without_reply()?;
        self.open = false;
        frontend::copy_done(&mut self.session.channel.output);
        let sent = self.session.channel.flush();
        // A server that rejected the data may have closed the connection. The server's error is returned instead of the
        // broken pipe.
        match self.collect() {
            Ok(outcome) => sent.map(|()| outcome.affected).map_err(|error| self.session.lose(error.into(), &self.sql)),
            Err(error) => Err(error),
        }
    }

    fn collect(&mut self) -> Result<Outcome> {
        Postgres::collect(self.session, &self.sql, &(), Outcome::default())
    }

    fn send_without_reply(&mut self) -> Result<()> {
        const HEAD: usize = 5;
        if !self.open {
            return Err(Error::failure("copy_in", "the COPY has ended"));
        }
        let length = self.frame.len() - HEAD;
        if length == 0 {
            return Ok(());
        }
        self.frame[..HEAD].copy_from_slice(&frontend::copy_data_head(length));
        let sent = self.session.channel.write_all(&self.frame);
        self.frame.truncate(HEAD);
        let objection = self.session.objects();
        if matches!((&sent, &objection), (Ok(()), Ok(false))) {
            return Ok(());
        }
        self.open = false;
        match objection {
            Ok(false) | Ok(true) => Err(match self.collect() {
                Err(error) => error,
                Ok(_) => self.session.lose(Fault::Malformed(Malformed::Invalid), &self.sql),
            }),
            Err(fault) => Err(self.session.lose(fault, &self.sql)),
        }
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if self.open {
            frontend::copy_fail(&mut self.session.channel.output, "stopped by the client");
            // Errors are ignored here, because the session's next statement reports them.
            let _ = self.session.channel.flush();
            let _ = self.collect();
        }
    }
}
