//! Parses the server's replies, up to the ReadyForQuery of everything that was sent.

use super::request::Requests;
use crate::measure::Tally;
use crate::wire::postgres::protocol::backend::{
    ServerError, TransactionStatus, column_names, data_row, ready_for_query, server_error, tag,
};
use crate::wire::postgres::protocol::{Commits, Framer, Malformed, Message, Rows, is_unexpected_allowed};
use crate::wire::transport::Mailbox;
use pgbench_script::{ResultUse, Slot, Sql, Variables};

/// A reason why a reply cannot be completed.
#[derive(Debug)]
pub enum Trouble {
    Malformed(Malformed),
    /// The server waits for data of a COPY, which a script cannot provide.
    Refuse,
}

impl From<Malformed> for Trouble {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

#[derive(Debug)]
pub struct Reply<'p> {
    framer: Framer,
    /// Transaction status reported by the last ReadyForQuery.
    pub status: TransactionStatus,
    /// Number of ReadyForQuery messages still expected.
    awaited: u32,
    /// Number of commands that complete before the last ReadyForQuery if no command fails.
    commands: usize,
    /// The command whose rows are stored in variables.
    storing_command: Option<&'p Sql>,
    columns: Vec<Option<Slot>>,
    /// Whether rows are stored in variables only later. With combined queries, `\gset` uses only the row of the last
    /// query. A row is therefore kept until the next query or the end of the command.
    defers_rows: bool,
    deferred_row: Vec<u8>,
    /// Number of rows of the statement that is being answered.
    rows: u64,
    last_rows: u64,
    /// The first error in the awaited replies, and the number of commands that had completed before it.
    error: Option<Box<(ServerError, usize)>>,
    completed: usize,
    fatal: Option<String>,
    commits: Commits,
}

impl<'p> Reply<'p> {
    pub fn new() -> Self {
        Self {
            framer: Framer::new(),
            status: TransactionStatus::Idle,
            awaited: 0,
            commands: 0,
            storing_command: None,
            columns: Vec::new(),
            defers_rows: false,
            deferred_row: Vec::new(),
            rows: 0,
            last_rows: 0,
            error: None,
            completed: 0,
            fatal: None,
            commits: Commits::default(),
        }
    }

    /// Prepares for the replies to `sql`, which was sent as a separate group of messages.
    #[inline]
    pub fn expect(&mut self, sql: &'p Sql) {
        (self.storing_command, self.defers_rows) = match sql.result_use {
            ResultUse::Discard => (None, false),
            ResultUse::Gset { .. } => (Some(sql), sql.combined),
            ResultUse::Aset { .. } => (Some(sql), false),
        };
        // The next result starts with its own RowDescription.
        self.columns.clear();
        self.awaited += 1;
        self.commands = 1;
    }

    /// Prepares for the replies to a group of messages whose rows are discarded.
    pub fn expect_group(&mut self) {
        (self.storing_command, self.defers_rows) = (None, false);
        self.awaited += 1;
    }

    /// Sets the number of commands in the awaited groups.
    pub fn expect_commands(&mut self, commands: usize) {
        self.commands = commands;
    }

    /// Drops the expected replies, because their requests were never sent.
    pub fn forget_expected(&mut self) {
        self.awaited = 0;
    }

    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Takes the first error, and the number of commands that had completed before it.
    pub fn take_error(&mut self) -> Option<(ServerError, usize)> {
        self.error.take().map(|error| *error)
    }

    /// Returns the server's last message before it ended the session. Unread bytes are also parsed, because the message
    /// may directly follow a reply.
    pub fn last_words(&mut self, mailbox: &Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        while let Ok(Some(message)) = self.framer.next(&mut input, Rows::Skip) {
            if matches!(message.tag, tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE) {
                self.listen(&server_error(message.body));
            }
        }
        self.fatal.take()
    }

    /// Remembers an error that ends the session. Every error above severity ERROR ends it. So does a crash or an
    /// immediate shutdown, which the server reports as a warning of class 57P.
    fn listen(&mut self, said: &ServerError) {
        if matches!(said.severity.as_str(), "FATAL" | "PANIC") || said.sqlstate.starts_with("57P") {
            self.fatal.get_or_insert_with(|| said.to_string());
        }
    }

    /// Returns the error if `\gset` did not get exactly one row.
    #[inline]
    pub fn result_fault(&mut self) -> Option<String> {
        let sql = self.storing_command.take()?;
        match sql.result_use {
            ResultUse::Gset { .. } if self.last_rows != 1 => {
                Some(format!("\\gset needs one row, but the server returned {}", self.last_rows))
            }
            _ => None,
        }
    }

    /// Reads the received messages. Returns true when everything awaited has been answered.
    #[inline]
    pub fn read(
        &mut self,
        mailbox: &mut Mailbox,
        requests: &mut Requests,
        variables: &mut Variables,
        tally: &mut Tally,
    ) -> Result<bool, Trouble> {
        let received = mailbox.inbox.bytes();
        if self.awaited == 0 && !is_unexpected_allowed(received) {
            return Err(Malformed::Unexpected.into());
        }
        let mut input = received;
        let rows = if self.storing_command.is_some() { Rows::Keep } else { Rows::Skip };
        let mut outcome = Ok(false);
        while let Some(message) = self.framer.next(&mut input, rows)? {
            if message.tag == tag::READY_FOR_QUERY {
                self.ready(message.body, requests, tally)?;
                if self.awaited == 0 {
                    if !is_unexpected_allowed(input) {
                        return Err(Malformed::Unexpected.into());
                    }
                    if self.error.is_none() && self.completed < self.commands {
                        return Err(Malformed::Invalid.into());
                    }
                    if self.defers_rows {
                        self.release(variables)?;
                    }
                    self.completed = 0;
                    outcome = Ok(true);
                    break;
                }
            } else if message.tag == tag::COPY_IN_RESPONSE {
                outcome = Err(Trouble::Refuse);
                break;
            } else {
                self.take(message, requests, variables, tally)?;
            }
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        outcome
    }

    #[inline]
    fn ready(&mut self, body: &[u8], requests: &mut Requests, tally: &mut Tally) -> Result<(), Malformed> {
        self.status = ready_for_query(body)?;
        if self.commits.contradict(self.status) {
            return Err(Malformed::Invalid);
        }
        tally.commits += self.commits.ready(self.status);
        requests.group_answered();
        self.awaited = self.awaited.saturating_sub(1);
        Ok(())
    }

    #[inline]
    fn take(
        &mut self,
        message: Message<'_>,
        requests: &mut Requests,
        variables: &mut Variables,
        tally: &mut Tally,
    ) -> Result<(), Malformed> {
        match message.tag {
            tag::COMMAND_COMPLETE => self.complete(message.body, tally),
            tag::BIND_COMPLETE => {}
            tag::DATA_ROW => self.row(message.body, variables)?,
            tag::ROW_DESCRIPTION if self.storing_command.is_some() => self.describe(message.body, requests)?,
            tag::PARSE_COMPLETE => requests.parsed(),
            tag::ERROR_RESPONSE => self.fail(message.body),
            tag::NOTICE_RESPONSE => self.listen(&server_error(message.body)),
            tag::EMPTY_QUERY_RESPONSE => {
                self.commits.completed_empty();
                self.completed += 1;
            }
            tag::AUTHENTICATION | tag::BACKEND_KEY_DATA | tag::NEGOTIATE_PROTOCOL_VERSION => {
                return Err(Malformed::Invalid);
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn complete(&mut self, body: &[u8], tally: &mut Tally) {
        tally.commits += self.commits.completed(body);
        self.completed += 1;
        self.last_rows = self.rows;
        self.rows = 0;
    }

    #[cold]
    fn fail(&mut self, body: &[u8]) {
        let error = server_error(body);
        self.commits.failed();
        self.rows = 0;
        self.listen(&error);
        let completed = self.completed;
        self.error.get_or_insert_with(|| Box::new((error, completed)));
    }

    fn describe(&mut self, body: &[u8], requests: &Requests) -> Result<(), Malformed> {
        let Some(ResultUse::Gset { prefix } | ResultUse::Aset { prefix }) =
            self.storing_command.map(|sql| &sql.result_use)
        else {
            return Ok(());
        };
        let slot = |name: String| requests.slot(&format!("{prefix}{name}"));
        self.columns = column_names(body)?.into_iter().map(slot).collect();
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

    /// Stores the kept row in variables. Called when the whole command has been answered.
    #[cold]
    fn release(&self, variables: &mut Variables) -> Result<(), Malformed> {
        if self.error.is_none() && self.last_rows == 1 { self.store(&self.deferred_row, variables) } else { Ok(()) }
    }

    /// Stores a row in variables. NULL becomes the empty string, as in pgbench.
    /// Columns that no script mentions have no slot.
    fn store(&self, body: &[u8], variables: &mut Variables) -> Result<(), Malformed> {
        let fields = data_row(body)?;
        if fields.announced() != self.columns.len() {
            return Err(Malformed::Invalid);
        }
        for (slot, field) in self.columns.iter().zip(fields) {
            let field = field?.unwrap_or_default();
            if let Some(slot) = slot {
                variables.set_text(*slot, field);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
