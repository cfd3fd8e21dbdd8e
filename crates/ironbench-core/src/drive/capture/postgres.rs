//! Replays on PostgreSQL: the simple and the extended query protocol, with pipelines.

use std::collections::{HashMap, VecDeque};

use super::dialogue::{Dialogue, Progress, Refusal, Replies};
use super::keys::KeyWriter;
use super::tape::{Statement, flag};
use crate::measure::Tally;
use crate::wire::postgres::protocol::backend::{
    ServerError, TransactionStatus, affected_rows, data_row, ready_for_query, server_error, tag,
};
use crate::wire::postgres::protocol::{Commits, Framer, Malformed, Rows, frontend, is_unexpected_allowed};
use crate::wire::transport::Mailbox;

pub struct PostgresDialogue<'p> {
    framer: Framer,
    commits: Commits,
    status: TransactionStatus,
    /// Encoded parameters of the next statement.
    values: Vec<u8>,
    fatal: Option<String>,
    /// Texts of the statements that the session has prepared, by name.
    prepared: HashMap<&'p [u8], &'p [u8]>,
    /// Names of the statements whose Parse was sent but not acknowledged.
    parsing: VecDeque<&'p [u8]>,
}

impl Default for PostgresDialogue<'_> {
    fn default() -> Self {
        Self {
            framer: Framer::new(),
            commits: Commits::default(),
            status: TransactionStatus::Idle,
            values: Vec::new(),
            fatal: None,
            prepared: HashMap::new(),
            parsing: VecDeque::new(),
        }
    }
}

impl PostgresDialogue<'_> {
    /// Remembers an error that ends the session.
    fn listen(&mut self, said: &ServerError) {
        if matches!(said.severity.as_str(), "FATAL" | "PANIC") || said.sqlstate.starts_with("57P") {
            self.fatal.get_or_insert_with(|| said.to_string());
        }
    }
}

/// Stores the key that a row of the awaited statement contains.
fn take_key(row: &[u8], replies: &mut Replies) -> Result<(), Malformed> {
    let Some(awaited) = replies.awaited_keys else { return Ok(()) };
    let key = data_row(row)?.nth(usize::from(awaited.column)).transpose()?.flatten();
    replies.store_key(|keys, slot| {
        if let Some(key) = key {
            keys.set(slot, key);
        }
    });
    Ok(())
}

fn refusal(error: &ServerError) -> Refusal {
    let retryable = matches!(error.sqlstate.as_str(), "40001" | "40P01");
    Refusal { class: error.sqlstate.clone(), message: error.to_string(), retryable }
}

impl<'p> Dialogue<'p> for PostgresDialogue<'p> {
    type Malformed = Malformed;

    fn statement(&mut self, statement: &Statement<'p>, is_last: bool, keys: &mut KeyWriter, out: &mut Vec<u8>) {
        if !statement.has(flag::EXTENDED) {
            return frontend::query_with(out, |out| keys.text(statement, out));
        }
        let (name, text) = (as_text(statement.name), as_text(statement.text));
        let known = if statement.name.is_empty() { None } else { self.prepared.get(statement.name).copied() };
        if known != Some(statement.text) {
            if known.is_some() {
                frontend::close_statement(out, name);
            }
            frontend::parse(out, name, text);
            if !statement.name.is_empty() {
                self.prepared.insert(statement.name, statement.text);
            }
            self.parsing.push_back(statement.name);
        }
        let values = if statement.has(flag::KEYS) {
            self.values.clear();
            keys.values(statement, |value| {
                let length = value.map_or(-1, |value| value.len() as i32);
                self.values.extend_from_slice(&length.to_be_bytes());
                self.values.extend_from_slice(value.unwrap_or_default());
            });
            &self.values
        } else {
            statement.values
        };
        frontend::bind_values(out, name, statement.parameters, values);
        frontend::describe_portal(out);
        frontend::execute(out);
        if is_last {
            frontend::sync(out);
        }
    }

    fn roll_back(&mut self, out: &mut Vec<u8>) {
        frontend::query(out, "ROLLBACK");
    }

    fn read(
        &mut self,
        mailbox: &mut Mailbox,
        is_expected: bool,
        replies: &mut Replies,
        tally: &mut Tally,
    ) -> Result<Progress, Malformed> {
        let received = mailbox.inbox.bytes();
        if !is_expected && !is_unexpected_allowed(received) {
            return Err(Malformed::Unexpected);
        }
        let (mut input, mut progress) = (received, Progress::More);
        loop {
            let rows = if replies.awaited_keys.is_some() { Rows::Keep } else { Rows::Skip };
            let Some(message) = self.framer.next(&mut input, rows)? else { break };
            match message.tag {
                tag::DATA_ROW => take_key(message.body, replies)?,
                tag::READY_FOR_QUERY => {
                    self.status = ready_for_query(message.body)?;
                    tally.commits += self.commits.ready(self.status);
                    while let Some(name) = self.parsing.pop_front() {
                        self.prepared.remove(name);
                    }
                    progress = Progress::Answered;
                    break;
                }
                tag::COMMAND_COMPLETE => {
                    tally.commits += self.commits.completed(message.body);
                    replies.complete(affected_rows(message.body));
                }
                tag::EMPTY_QUERY_RESPONSE => {
                    self.commits.completed_empty();
                    replies.complete(0);
                }
                tag::PARSE_COMPLETE => drop(self.parsing.pop_front()),
                tag::ERROR_RESPONSE => {
                    let error = server_error(message.body);
                    self.commits.failed();
                    self.listen(&error);
                    replies.refuse(|| refusal(&error));
                }
                tag::NOTICE_RESPONSE => self.listen(&server_error(message.body)),
                tag::AUTHENTICATION | tag::BACKEND_KEY_DATA | tag::NEGOTIATE_PROTOCOL_VERSION => {
                    return Err(Malformed::Invalid);
                }
                _ => {}
            }
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(progress)
    }

    fn may_be_in_transaction(&self) -> bool {
        self.status != TransactionStatus::Idle
    }

    fn discard(&mut self) {
        self.prepared.clear();
    }

    fn reconnected(&mut self) {
        self.prepared.clear();
        self.parsing.clear();
        (self.framer, self.commits, self.status) = (Framer::new(), Commits::default(), TransactionStatus::Idle);
    }

    fn farewell(&self, out: &mut Vec<u8>) {
        frontend::terminate(out);
    }

    fn last_words(&mut self, mailbox: &Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        while let Ok(Some(message)) = self.framer.next(&mut input, Rows::Skip) {
            if matches!(message.tag, tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE) {
                self.listen(&server_error(message.body));
            }
        }
        self.fatal.take()
    }
}

/// Returns bytes of the tape as text. The tape contains only UTF-8 without zero bytes, which [`super::Capture::drive`]
/// checks.
fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
