//! Populates a table on PostgreSQL, with single-row or multi-row INSERTs or a stream.
//!
//! Values are sent in binary. Autocommit commits a single row or stream. Several statements are enclosed in BEGIN and
//! COMMIT. As in drivers, BEGIN is sent together with the first statement.

use std::ops::Range;

use ironbench_core::drive::{Ending, Step, Transaction};
use ironbench_core::measure::Tally;
use ironbench_core::wire::postgres::protocol::backend::{ServerError, server_error, tag};
use ironbench_core::wire::postgres::protocol::{Framer, Malformed, Rows, frontend};
use ironbench_core::wire::transport::Mailbox;

use super::values::Binary;
use super::{ClientShare, Method, Populate};
use crate::wide::{self, WideTable};

/// Size of the pieces in which a stream is sent.
pub const PIECE: usize = 64 * 1024;
/// Header and trailer of a binary stream (PostgreSQL 18 documentation, COPY, "Binary Format").
const STREAM_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const STREAM_END: [u8; 2] = (-1i16).to_be_bytes();

/// The SQL of a population, the same for all clients.
pub struct Statements {
    /// Number of rows of a full INSERT, and its text. The last INSERT of a commit may have fewer rows.
    full: (u64, String),
    /// The COPY statement.
    copy: String,
    wide: WideTable,
    method: Method,
}

impl Statements {
    pub fn of(populate: &Populate) -> Self {
        let Populate { table, method, commit, batch } = populate;
        let full = if *method == Method::Batch { *batch.min(commit) } else { 1 };
        let columns = table.columns().join(", ");
        Self {
            full: (full, insert(table, full)),
            copy: format!("COPY {} ({columns}) FROM STDIN (FORMAT binary)", wide::TABLE),
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

    /// Returns the text of an INSERT of `rows`.
    fn insert(&self, rows: u64) -> std::borrow::Cow<'_, str> {
        if rows == self.full.0 { (&self.full.1).into() } else { insert(&self.wide, rows).into() }
    }
}

/// Returns the INSERT statement. The statement does not name an identity column, because the engine generates its
/// values.
fn insert(table: &WideTable, rows: u64) -> String {
    let columns = table.columns();
    let row = |row: u64| {
        let places = (0..columns.len() as u64).map(|column| format!("${}", row * columns.len() as u64 + column + 1));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<_> = (0..rows).map(row).collect();
    format!("INSERT INTO {} ({}) VALUES {}", wide::TABLE, columns.join(", "), rows.join(", "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    /// Statements that insert rows.
    Insert,
    Commit,
    /// COPY was requested and is not accepted yet.
    AskToCopy,
    Copy,
    EndCopy,
}

pub struct Populator<'p> {
    share: ClientShare<'p>,
    statements: &'p Statements,
    /// Rows of the current commit that remain to be sent.
    rows: Range<u64>,
    awaiting: Awaiting,
    /// Whether the commit has several statements.
    block: bool,
    /// Row counts of the INSERTs that this connection has prepared.
    prepared: Vec<u64>,
    framer: Framer,
    /// Number of ReadyForQuery messages still expected.
    awaited: u32,
    error: Option<ServerError>,
    /// The server's message when it ended the session.
    fatal: Option<String>,
    payload: Vec<u8>,
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
            awaited: 0,
            error: None,
            fatal: None,
            payload: Vec::new(),
        }
    }

    /// Appends the next INSERT to the outbox.
    fn insert(&mut self, out: &mut Vec<u8>) -> Step {
        let rows = (self.rows.end - self.rows.start).min(self.statements.full.0);
        let name = format!("rows{rows}");
        if !self.prepared.contains(&rows) {
            frontend::parse(out, &name, &self.statements.insert(rows));
            self.prepared.push(rows);
        }
        let (wide, payload) = (&self.statements.wide, &mut self.payload);
        let parameters = rows as usize * wide.columns().len();
        let taken = self.rows.start..self.rows.start + rows;
        self.rows.start = taken.end;
        frontend::bind_binary(out, &name, parameters as u16, |out| {
            taken.for_each(|row| wide.row(row + 1, payload, &mut Binary(out)));
        });
        frontend::execute(out);
        frontend::sync(out);
        self.awaited += 1;
        self.awaiting = Awaiting::Insert;
        Step::Send
    }

    /// Appends the next piece of the stream to the outbox. If no rows remain, appends the end of the stream.
    fn stream(&mut self, out: &mut Vec<u8>, head: &[u8]) -> Step {
        out.clear();
        if self.error.is_some() {
            return Step::Receive;
        }
        let wide = &self.statements.wide;
        let columns = (wide.columns().len() as u16).to_be_bytes();
        let mut data = std::mem::take(out);
        data.extend_from_slice(&frontend::copy_data_head(0));
        let start = data.len();
        data.extend_from_slice(head);
        while data.len() < PIECE
            && let Some(row) = self.rows.next()
        {
            data.extend_from_slice(&columns);
            wide.row(row + 1, &mut self.payload, &mut Binary(&mut data));
        }
        let ends = self.rows.is_empty();
        if ends {
            data.extend_from_slice(&STREAM_END);
        }
        let length = data.len() - start;
        data[..start].copy_from_slice(&frontend::copy_data_head(length));
        *out = data;
        if !ends {
            return Step::SendWithoutReply;
        }
        frontend::copy_done(out);
        self.awaiting = Awaiting::EndCopy;
        Step::Send
    }

    /// Continues when the server has answered everything that was sent.
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let out = &mut mailbox.outbox;
        if let Some(error) = self.error.take() {
            tally.error(&error.sqlstate, || error.to_string());
            return Step::Broken(error.to_string());
        }
        out.clear();
        match self.awaiting {
            Awaiting::Insert if !self.rows.is_empty() => self.insert(out),
            Awaiting::Insert if self.block => {
                frontend::query(out, "COMMIT");
                self.awaited += 1;
                self.awaiting = Awaiting::Commit;
                Step::Send
            }
            Awaiting::Insert | Awaiting::Commit | Awaiting::EndCopy => {
                tally.commits += 1;
                Step::Ended(Ending { kind: 0, well: true, retries: 0 })
            }
            Awaiting::AskToCopy | Awaiting::Copy => {
                Step::Broken("the server ended a COPY that had not been sent".to_owned())
            }
        }
    }

    fn read(&mut self, mailbox: &mut Mailbox) -> Result<ServerReply, Malformed> {
        let received = mailbox.inbox.bytes();
        let mut input = received;
        let mut reply = ServerReply::Nothing;
        while reply == ServerReply::Nothing
            && let Some(message) = self.framer.next(&mut input, Rows::Skip)?
        {
            match message.tag {
                tag::READY_FOR_QUERY => {
                    self.awaited = self.awaited.saturating_sub(1);
                    if self.awaited == 0 {
                        reply = ServerReply::Answered;
                    }
                }
                tag::COPY_IN_RESPONSE => reply = ServerReply::MayCopy,
                tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE => {
                    let said = server_error(message.body);
                    listen(&mut self.fatal, &said);
                    if message.tag == tag::ERROR_RESPONSE {
                        self.error.get_or_insert(said);
                    }
                }
                _ => {}
            }
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(reply)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerReply {
    Nothing,
    Answered,
    MayCopy,
}

/// Remembers a message that ends the session. Such messages have the severity FATAL or PANIC. Before a crash or an
/// immediate shutdown, the server sends a warning with a SQLSTATE that starts with 57P.
fn listen(fatal: &mut Option<String>, said: &ServerError) {
    if matches!(said.severity.as_str(), "FATAL" | "PANIC") || said.sqlstate.starts_with("57P") {
        fatal.get_or_insert_with(|| said.to_string());
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
            frontend::query(out, &self.statements.copy);
            self.awaited += 1;
            self.awaiting = Awaiting::AskToCopy;
            return Step::Send;
        }
        self.block = self.rows.end - self.rows.start > self.statements.full.0;
        if self.block {
            frontend::query(out, "BEGIN");
            self.awaited += 1;
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
            Ok(ServerReply::MayCopy) => {
                self.awaiting = Awaiting::Copy;
                self.stream(&mut mailbox.outbox, STREAM_HEAD)
            }
            Ok(ServerReply::Answered) => self.answered(mailbox, tally),
        }
    }

    fn message_sent(&mut self, mailbox: &mut Mailbox, _tally: &mut Tally) -> Step {
        self.stream(&mut mailbox.outbox, b"")
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        frontend::terminate(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        while let Ok(Some(message)) = self.framer.next(&mut input, Rows::Skip) {
            if matches!(message.tag, tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE) {
                listen(&mut self.fatal, &server_error(message.body));
            }
        }
        self.fatal.take()
    }
}
