//! Parses the server's replies, up to the end of the results of one command.

use super::request::Statements;
use crate::measure::Tally;
use crate::wire::mysql::protocol::backend::{
    Answer, Column, Done, Prepared, ServerError, head, server_error, text_row,
};
use crate::wire::mysql::protocol::binary::{self, Value as Cell};
use crate::wire::mysql::protocol::{Commits, Framer, Malformed, Packet, Rows, is_unexpected_allowed};
use crate::wire::transport::Mailbox;
use pgbench_script::{ResultUse, Slot, Sql, Value, Variables};

/// Progress of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    More,
    Answered,
    /// The server waits for a file, in a packet with this sequence number.
    WantsFile(u8),
}

/// The kind of packet expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Answer,
    /// Descriptions of this many columns, followed by rows.
    Column(usize),
    Row,
    Prepared,
    /// Descriptions of this many parameters and this many columns of a prepared statement.
    Description(u16, u16),
}

/// The variables for the columns of a result.
#[derive(Debug, Default)]
struct ResultColumns {
    columns: Vec<Column>,
    slots: Vec<Option<Slot>>,
}

#[derive(Debug)]
pub struct Reply<'p> {
    framer: Framer,
    statements: &'p Statements,
    cached: bool,
    next: Next,
    pub commits: Commits,
    /// The command whose rows are stored in variables.
    storing_command: Option<&'p Sql>,
    /// Whether rows are stored in variables only later. With combined queries, `\gset` uses only the row of the last
    /// query. A row is therefore kept until the next query or the end of the command.
    defers_rows: bool,
    deferred_row: Vec<u8>,
    /// The result columns of each command, as the server last described them, and their variables. Indexed by
    /// `Sql::id`.
    result_columns: Vec<ResultColumns>,
    /// Whether the rows of the reply have the binary format.
    binary: bool,
    /// Number of rows of the statement that is being answered.
    rows: u64,
    last_rows: u64,
    wanted_file: bool,
    error: Option<Box<ServerError>>,
    prepared: Option<Prepared>,
}

impl<'p> Reply<'p> {
    pub fn new(statements: &'p Statements, cached: bool) -> Self {
        Self {
            framer: Framer::new(),
            result_columns: (0..statements.len()).map(|_| ResultColumns::default()).collect(),
            statements,
            cached,
            next: Next::Answer,
            commits: Commits::default(),
            storing_command: None,
            defers_rows: false,
            deferred_row: Vec::new(),
            binary: false,
            rows: 0,
            last_rows: 0,
            wanted_file: false,
            error: None,
            prepared: None,
        }
    }

    /// Resets the state for a new session, which has described no columns.
    pub fn forget_session(&mut self) {
        *self = Self::new(self.statements, self.cached);
    }

    /// Prepares for the reply to `sql`. `binary` is true if `sql` was sent as a prepared statement.
    #[inline]
    pub fn expect(&mut self, sql: &'p Sql, binary: bool) {
        (self.storing_command, self.defers_rows) = match sql.result_use {
            ResultUse::Discard => (None, false),
            ResultUse::Gset { .. } => (Some(sql), sql.combined),
            ResultUse::Aset { .. } => (Some(sql), false),
        };
        self.begin(Next::Answer, self.statements.rolls_back(sql));
        self.binary = binary;
    }

    pub fn expect_prepared(&mut self, sql: &'p Sql) {
        (self.storing_command, self.defers_rows) = (Some(sql), false);
        self.begin(Next::Prepared, false);
    }

    pub fn expect_rollback(&mut self) {
        (self.storing_command, self.defers_rows) = (None, false);
        self.binary = false;
        self.begin(Next::Answer, true);
    }

    #[inline]
    fn begin(&mut self, next: Next, rolls_back: bool) {
        self.next = next;
        self.commits.expect(rolls_back);
        self.rows = 0;
        self.last_rows = 0;
        self.wanted_file = false;
    }

    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    #[inline]
    pub fn take_error(&mut self) -> Option<Box<ServerError>> {
        self.error.take()
    }

    /// Returns the result of a successful Prepare.
    pub fn prepared(&mut self) -> Prepared {
        self.prepared.take().expect("asked once, after the answer")
    }

    /// Returns an error if `\gset` did not get exactly one row, or if the command requested a file.
    #[inline]
    pub fn result_fault(&mut self) -> Option<String> {
        if std::mem::take(&mut self.wanted_file) {
            return Some("LOAD DATA LOCAL requests a file, but scripts cannot send files".to_owned());
        }
        match self.storing_command?.result_use {
            ResultUse::Gset { .. } if self.last_rows != 1 => {
                Some(format!("\\gset needs one row, but the server returned {}", self.last_rows))
            }
            _ => None,
        }
    }

    /// Returns the server's last message before it ended the session. Unread bytes are also parsed, because the message
    /// may directly follow a reply.
    pub fn last_words(&mut self, mailbox: &Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        let mut words = self.error.take().map(|error| error.to_string());
        while let Ok(Some(packet)) = self.framer.next(&mut input, Rows::Keep) {
            if packet.body.first() == Some(&head::ERROR) {
                words = Some(server_error(packet.body).to_string());
            }
        }
        words
    }

    #[inline]
    pub fn read(
        &mut self,
        mailbox: &mut Mailbox,
        variables: &mut Variables,
        tally: &mut Tally,
    ) -> Result<Progress, Malformed> {
        let received = mailbox.inbox.bytes();
        let mut input = received;
        let mut progress = Progress::More;
        while progress == Progress::More {
            let skip = self.next == Next::Row && self.storing_command.is_none();
            let rows = if skip { Rows::Skip } else { Rows::Keep };
            let Some(packet) = self.framer.next(&mut input, rows)? else { break };
            progress = self.take(packet, variables, tally)?;
        }
        if progress != Progress::More && !is_unexpected_allowed(input) {
            return Err(Malformed::Unexpected);
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        if self.defers_rows && progress == Progress::Answered {
            self.release(variables)?;
        }
        Ok(progress)
    }

    #[inline]
    fn take(
        &mut self,
        packet: Packet<'_>,
        variables: &mut Variables,
        tally: &mut Tally,
    ) -> Result<Progress, Malformed> {
        let body = packet.body;
        if body.first() == Some(&head::ERROR) && !matches!(self.next, Next::Column(_) | Next::Description(..)) {
            self.error = Some(Box::new(server_error(body)));
            return Ok(Progress::Answered);
        }
        match self.next {
            Next::Answer => match Answer::read(body, self.cached && self.binary)? {
                Answer::Done(done) => return Ok(self.done(done, tally)),
                Answer::LocalInfile => {
                    self.wanted_file = true;
                    return Ok(Progress::WantsFile(packet.sequence.wrapping_add(1)));
                }
                Answer::Rows(columns, described) => {
                    if described {
                        self.forget_columns();
                    }
                    self.next = if described && columns > 0 { Next::Column(columns) } else { Next::Row };
                }
                Answer::Error => unreachable!("taken above"),
            },
            Next::Column(left) => {
                if !Column::begins(body) {
                    return Err(Malformed::Invalid);
                }
                self.describe(body)?;
                self.next = if left > 1 { Next::Column(left - 1) } else { Next::Row };
            }
            Next::Row if body.first() == Some(&head::END) => return Ok(self.done(Done::read(body)?, tally)),
            Next::Row => self.row(body, variables)?,
            Next::Prepared => {
                let prepared = Prepared::read(body)?;
                self.prepared = Some(prepared);
                self.forget_columns();
                return Ok(self.described(prepared.parameters, prepared.columns));
            }
            Next::Description(0, columns) => {
                self.describe(body)?;
                return Ok(self.described(0, columns - 1));
            }
            Next::Description(parameters, columns) => return Ok(self.described(parameters - 1, columns)),
        }
        Ok(Progress::More)
    }

    fn described(&mut self, parameters: u16, columns: u16) -> Progress {
        if parameters == 0 && columns == 0 {
            return Progress::Answered;
        }
        self.next = Next::Description(parameters, columns);
        Progress::More
    }

    /// Handles the end of a statement, after its last row if it returns rows.
    #[inline]
    fn done(&mut self, done: Done, tally: &mut Tally) -> Progress {
        tally.commits += self.commits.done(done);
        self.last_rows = std::mem::take(&mut self.rows);
        if done.has_more() {
            self.next = Next::Answer;
            return Progress::More;
        }
        Progress::Answered
    }

    fn forget_columns(&mut self) {
        if let Some(sql) = self.storing_command {
            let ResultColumns { columns, slots } = &mut self.result_columns[sql.id];
            columns.clear();
            slots.clear();
        }
    }

    fn describe(&mut self, body: &[u8]) -> Result<(), Malformed> {
        let Some(sql) = self.storing_command else { return Ok(()) };
        let (ResultUse::Gset { prefix } | ResultUse::Aset { prefix }) = &sql.result_use else { return Ok(()) };
        let column = Column::read(body)?;
        let result_columns = &mut self.result_columns[sql.id];
        result_columns.slots.push(self.statements.slot(&format!("{prefix}{}", column.name)));
        result_columns.columns.push(column);
        Ok(())
    }

    fn row(&mut self, body: &[u8], variables: &mut Variables) -> Result<(), Malformed> {
        self.rows += 1;
        if self.defers_rows {
            self.deferred_row.clear();
            self.deferred_row.extend_from_slice(body);
            return Ok(());
        }
        self.store(body, variables)
    }

    /// Stores the last row in variables. Called when the server has answered all statements of the command without an
    /// error.
    #[cold]
    fn release(&self, variables: &mut Variables) -> Result<(), Malformed> {
        if self.error.is_none() && self.last_rows == 1 { self.store(&self.deferred_row, variables) } else { Ok(()) }
    }

    /// Stores a row in variables. NULL becomes the empty string, as in pgbench.
    /// Columns that no script mentions have no slot.
    fn store(&self, body: &[u8], variables: &mut Variables) -> Result<(), Malformed> {
        let Some(sql) = self.storing_command else { return Ok(()) };
        let ResultColumns { columns, slots } = &self.result_columns[sql.id];
        if self.binary {
            return binary::row(body, columns, |number, cell| {
                if let Some(slot) = slots[number] {
                    set(variables, slot, cell);
                }
            });
        }
        let mut values = text_row(body);
        for slot in slots {
            let value = values.next().ok_or(Malformed::Invalid)??.unwrap_or_default();
            if let Some(slot) = slot {
                variables.set_text(*slot, value);
            }
        }
        if values.next().is_some() { Err(Malformed::Invalid) } else { Ok(()) }
    }
}

fn set(variables: &mut Variables, slot: Slot, cell: Cell<'_>) {
    match cell {
        Cell::Integer(value) => variables.set(slot, Value::Integer(value)),
        Cell::Double(value) => variables.set(slot, Value::Double(value)),
        Cell::Bytes(text) => variables.set_text(slot, text),
        other => {
            let mut text = Vec::new();
            other.write_text(&mut text);
            variables.set_text(slot, &text);
        }
    }
}

#[cfg(test)]
mod tests;
