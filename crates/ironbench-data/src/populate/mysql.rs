//! Populates a table on MySQL and MariaDB, with single-row or multi-row INSERTs or a stream.
//!
//! Statements send binary values, and a stream sends text. Autocommit commits a single INSERT or stream. Several
//! statements are enclosed in BEGIN and COMMIT.

use std::convert::Infallible;
use std::ops::Range;

use ironbench_core::drive::{Ending, Step, Transaction};
use ironbench_core::measure::Tally;
use ironbench_core::wire::mysql::protocol::backend::{Answer, Prepared, head, server_error};
use ironbench_core::wire::mysql::protocol::binary::kind;
use ironbench_core::wire::mysql::protocol::{Framer, Malformed, Rows, frontend};
use ironbench_core::wire::transport::Mailbox;

use super::{ClientShare, Method, Populate};
use crate::row::{CopyText, Sink, civil};
use crate::wide::{self, WideTable};

/// Approximate size of the pieces in which a stream is sent.
const PIECE: u64 = 64 * 1024;

/// The SQL of a population, the same for all clients.
pub struct Statements {
    /// Number of rows of one INSERT. The last INSERT of a commit may have fewer.
    full: u64,
    load: String,
    wide: WideTable,
    method: Method,
}

impl Statements {
    pub fn of(populate: &Populate) -> Self {
        let Populate { table, method, commit, batch } = populate;
        let columns = table.columns().join(", ");
        Self {
            full: if *method == Method::Batch { *batch.min(commit) } else { 1 },
            load: format!("LOAD DATA LOCAL INFILE '' INTO TABLE {} CHARACTER SET utf8mb4 ({columns})", wide::TABLE),
            wide: table.clone(),
            method: *method,
        }
    }

    /// Returns the maximum number of statements that a connection prepares.
    pub fn prepared(&self) -> usize {
        match self.method {
            Method::Rows => 1,
            Method::Batch => 3,
            Method::Copy => 0,
        }
    }

    /// Returns the INSERT statement. The statement does not name an identity column, because the engine generates its
    /// values.
    fn insert(&self, rows: u64) -> String {
        let columns = self.wide.columns();
        let row = format!("({})", vec!["?"; columns.len()].join(", "));
        let rows = vec![row; rows as usize].join(", ");
        format!("INSERT INTO {} ({}) VALUES {rows}", wide::TABLE, columns.join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    Begin,
    /// An INSERT of this many rows is being prepared.
    Prepare(u64),
    /// The server describes the parameters of a prepared INSERT. The fields are the number of rows, the statement ID,
    /// and the number of descriptions that have not arrived yet.
    Describe(u64, u32, u16),
    Insert,
    Commit,
    /// LOAD DATA was requested and is not accepted yet.
    AskToLoad,
    Load,
    EndLoad,
}

/// An INSERT that this connection has prepared.
struct Insert {
    rows: u64,
    statement: u32,
    /// Whether the server has received the types of the parameters.
    types_sent: bool,
}

pub struct Populator<'p> {
    share: ClientShare<'p>,
    statements: &'p Statements,
    /// Rows of the current commit that remain to be sent.
    rows: Range<u64>,
    awaiting: Awaiting,
    /// Whether the commit has several statements.
    block: bool,
    prepared: Vec<Insert>,
    framer: Framer,
    /// Sequence number of the next packet of a stream.
    sequence: u8,
    payload: Vec<u8>,
}

enum ServerReply {
    Nothing,
    Answered,
    MayLoad,
    Refused(u16, String),
}

impl<'p> Populator<'p> {
    pub fn new(share: ClientShare<'p>, statements: &'p Statements) -> Self {
        Self {
            share,
            statements,
            rows: 0..0,
            awaiting: Awaiting::Insert,
            block: false,
            prepared: Vec::new(),
            framer: Framer::new(),
            sequence: 0,
            payload: Vec::new(),
        }
    }

    /// Appends the next INSERT to the outbox. If it is not prepared yet, appends the request to prepare it instead.
    fn insert(&mut self, out: &mut Vec<u8>) -> Step {
        let rows = (self.rows.end - self.rows.start).min(self.statements.full);
        let Some(insert) = self.prepared.iter_mut().find(|insert| insert.rows == rows) else {
            frontend::prepare(out, &self.statements.insert(rows));
            self.awaiting = Awaiting::Prepare(rows);
            return Step::Send;
        };
        let (wide, payload) = (&self.statements.wide, &mut self.payload);
        let taken = self.rows.start..self.rows.start + rows;
        self.rows.start = taken.end;
        frontend::execute(out, insert.statement, |out| {
            let columns = wide.columns().len();
            out.resize(out.len() + (rows as usize * columns).div_ceil(8), 0);
            out.push(u8::from(!insert.types_sent));
            if !insert.types_sent {
                let kinds = [kind::LONGLONG, kind::LONGLONG, kind::LONG, kind::DATETIME, kind::VAR_STRING];
                let row = kinds[kinds.len() - columns..].iter().flat_map(|kind| [*kind, 0]);
                (0..rows).for_each(|_| out.extend(row.clone()));
            }
            taken.for_each(|row| wide.row(row + 1, payload, &mut Parameters(out)));
        });
        insert.types_sent = true;
        self.awaiting = Awaiting::Insert;
        Step::Send
    }

    /// Appends the next piece of the stream to the outbox. If no rows remain, appends the end of the stream.
    fn stream(&mut self, out: &mut Vec<u8>) -> Step {
        out.clear();
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if self.rows.is_empty() {
            frontend::packet(out, sequence, |_| {});
            self.awaiting = Awaiting::EndLoad;
            return Step::Send;
        }
        let wide = &self.statements.wide;
        let most = (PIECE / (wide.width + 40)).max(1);
        let taken = self.rows.start..self.rows.end.min(self.rows.start + most);
        self.rows.start = taken.end;
        frontend::packet(out, sequence, |out| {
            let mut sink = CopyText::new(|bytes: &[u8], _| {
                out.extend_from_slice(bytes);
                Ok::<(), Infallible>(())
            });
            let Ok(()) = wide.emit(taken, &mut sink);
            let Ok(()) = sink.finish();
        });
        Step::SendWithoutReply
    }

    /// Continues when the server has answered everything that was sent.
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let out = &mut mailbox.outbox;
        out.clear();
        match self.awaiting {
            Awaiting::Begin | Awaiting::Describe(..) => self.insert(out),
            Awaiting::Insert if !self.rows.is_empty() => self.insert(out),
            Awaiting::Insert if self.block => {
                frontend::query(out, "COMMIT");
                self.awaiting = Awaiting::Commit;
                Step::Send
            }
            Awaiting::Insert | Awaiting::Commit | Awaiting::EndLoad => {
                tally.commits += 1;
                Step::Ended(Ending { kind: 0, well: true, retries: 0 })
            }
            Awaiting::Prepare(_) | Awaiting::AskToLoad | Awaiting::Load => Step::Broken(Malformed::Invalid.to_string()),
        }
    }

    fn read(&mut self, mailbox: &mut Mailbox) -> Result<ServerReply, Malformed> {
        let received = mailbox.inbox.bytes();
        let mut input = received;
        let mut reply = ServerReply::Nothing;
        while matches!(reply, ServerReply::Nothing)
            && let Some(packet) = self.framer.next(&mut input, Rows::Keep)?
        {
            reply = self.take(packet.sequence, packet.body)?;
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(reply)
    }

    fn take(&mut self, sequence: u8, body: &[u8]) -> Result<ServerReply, Malformed> {
        if let Awaiting::Describe(rows, statement, left) = self.awaiting {
            self.awaiting = Awaiting::Describe(rows, statement, left.saturating_sub(1));
            return Ok(self.described());
        }
        if body.first() == Some(&head::ERROR) {
            let error = server_error(body);
            return Ok(ServerReply::Refused(error.number, error.to_string()));
        }
        if let Awaiting::Prepare(rows) = self.awaiting {
            let Prepared { statement, parameters, .. } = Prepared::read(body)?;
            self.awaiting = Awaiting::Describe(rows, statement, parameters);
            return Ok(self.described());
        }
        match Answer::read(body, false)? {
            Answer::Done(done) if done.warnings > 0 && self.awaiting == Awaiting::EndLoad => {
                let cause = format!("the server issued {} warnings: rows may be missing or changed", done.warnings);
                Ok(ServerReply::Refused(0, cause))
            }
            Answer::Done(_) => Ok(ServerReply::Answered),
            Answer::LocalInfile if self.awaiting == Awaiting::AskToLoad => {
                self.sequence = sequence.wrapping_add(1);
                Ok(ServerReply::MayLoad)
            }
            _ => Err(Malformed::Invalid),
        }
    }

    fn described(&mut self) -> ServerReply {
        let Awaiting::Describe(rows, statement, 0) = self.awaiting else { return ServerReply::Nothing };
        self.prepared.push(Insert { rows, statement, types_sent: false });
        ServerReply::Answered
    }
}

impl Transaction for Populator<'_> {
    fn share(&self) -> Option<u64> {
        Some(self.share.left())
    }

    fn begin(&mut self, mailbox: &mut Mailbox, _tally: &mut Tally) -> Step {
        let out = &mut mailbox.outbox;
        out.clear();
        self.rows = self.share.take();
        if self.statements.method == Method::Copy {
            frontend::query(out, &self.statements.load);
            self.awaiting = Awaiting::AskToLoad;
            return Step::Send;
        }
        self.block = self.rows.end - self.rows.start > self.statements.full;
        if self.block {
            frontend::query(out, "BEGIN");
            self.awaiting = Awaiting::Begin;
            return Step::Send;
        }
        self.insert(out)
    }

    fn resume(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        self.reply(mailbox, tally)
    }

    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        match self.read(mailbox) {
            Err(malformed) => Step::Broken(malformed.to_string()),
            Ok(ServerReply::Nothing) => Step::Receive,
            Ok(ServerReply::MayLoad) => {
                self.awaiting = Awaiting::Load;
                self.stream(&mut mailbox.outbox)
            }
            Ok(ServerReply::Answered) => self.answered(mailbox, tally),
            Ok(ServerReply::Refused(number, cause)) => {
                tally.error(&number.to_string(), || cause.clone());
                Step::Broken(cause)
            }
        }
    }

    fn message_sent(&mut self, mailbox: &mut Mailbox, _tally: &mut Tally) -> Step {
        self.stream(&mut mailbox.outbox)
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        frontend::quit(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        match self.read(mailbox) {
            Ok(ServerReply::Refused(_, words)) => Some(words),
            _ => None,
        }
    }
}

/// Encodes the values of a row as parameters of a prepared statement.
struct Parameters<'a>(&'a mut Vec<u8>);

impl Sink for Parameters<'_> {
    type Error = Infallible;

    fn smallint(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn integer(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bigint(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn decimal(&mut self, _hundredths: i64) {
        unreachable!("wide rows have no decimals");
    }

    fn rate(&mut self, _ten_thousandths: i64) {
        unreachable!("wide rows have no decimals");
    }

    fn text(&mut self, value: &str) {
        frontend::string(self.0, value.as_bytes());
    }

    fn date(&mut self, _day: i32) {
        unreachable!("wide rows have no dates");
    }

    fn timestamp(&mut self, second: i64) {
        let (year, month, day) = civil(second.div_euclid(86_400));
        let rest = second.rem_euclid(86_400);
        let [low, high] = (year as u16).to_le_bytes();
        let [hour, minute] = [rest / 3600, rest / 60 % 60].map(|part| part as u8);
        self.0.extend_from_slice(&[7, low, high, month as u8, day as u8, hour, minute, (rest % 60) as u8]);
    }

    fn null(&mut self) {
        unreachable!("wide rows have no NULL");
    }

    fn end_row(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_the_seven_bytes_of_a_datetime() {
        let mut out = Vec::new();
        Parameters(&mut out).timestamp(951_868_799);
        assert_eq!(out, [7, 0xd0, 7, 2, 29, 23, 59, 59]);
    }
}
