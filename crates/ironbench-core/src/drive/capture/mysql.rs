//! Replays on MySQL and MariaDB: the text protocol, and the binary protocol of prepared statements.
//!
//! The first execution of a prepared statement in a session takes two round trips, as for the recorded client: the
//! server returns the ID of the statement, which the Execute contains.

use std::collections::HashMap;

use super::dialogue::{Dialogue, Progress, Refusal, Replies};
use super::keys::KeyWriter;
use super::tape::{Statement, flag};
use crate::measure::Tally;
use crate::wire::mysql::protocol::backend::{Answer, Column, Done, Prepared, ServerError, head, server_error};
use crate::wire::mysql::protocol::binary::{Parameter, kind};
use crate::wire::mysql::protocol::{
    Commits, Framer, Malformed, Packet, Rows, frontend, is_rollback, is_unexpected_allowed,
};
use crate::wire::transport::Mailbox;

/// The kind of packet expected next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Answer,
    /// Descriptions of this many columns, followed by rows.
    Column(usize),
    Row,
    Prepared,
    /// This many descriptions of parameters and columns of a prepared statement.
    Description(u32),
}

/// A prepared statement of the session.
#[derive(Debug)]
struct Known<'p> {
    text: &'p [u8],
    id: u32,
    /// Types of the parameters, as last sent to the server.
    kinds: Vec<u8>,
}

/// An Execute, and the statement that it runs.
#[derive(Debug, Default)]
struct Execute<'p> {
    name: &'p [u8],
    text: &'p [u8],
    /// ID of the statement, once the server has prepared it.
    id: u32,
    parameters: u16,
    is_last_use: bool,
    nulls: Vec<u8>,
    /// Types of the parameters, with two bytes for each.
    kinds: Vec<u8>,
    values: Vec<u8>,
}

impl Execute<'_> {
    /// Encodes the parameters of a statement.
    fn bind(&mut self, statement: &Statement, keys: &mut KeyWriter) {
        self.nulls.clear();
        self.nulls.resize(usize::from(statement.parameters).div_ceil(8), 0);
        self.kinds.clear();
        self.values.clear();
        let mut place = 0;
        keys.values(statement, |value| {
            match value {
                Some(text) => {
                    let parameter = Parameter::of(statement.types.get(place).copied().unwrap_or_default(), text);
                    self.kinds.extend_from_slice(&parameter.kind());
                    parameter.write(&mut self.values);
                }
                None => {
                    self.nulls[place / 8] |= 1 << (place % 8);
                    self.kinds.extend_from_slice(&[kind::NULL, 0]);
                }
            }
            place += 1;
        });
    }

    fn append(&self, known: &mut Known, out: &mut Vec<u8>) {
        frontend::execute(out, known.id, |out| {
            if self.parameters == 0 {
                return;
            }
            out.extend_from_slice(&self.nulls);
            let changed = known.kinds != self.kinds;
            out.push(u8::from(changed));
            if changed {
                out.extend_from_slice(&self.kinds);
                known.kinds.clone_from(&self.kinds);
            }
            out.extend_from_slice(&self.values);
        });
        if self.is_last_use {
            frontend::close(out, known.id);
        }
    }
}

pub struct MysqlDialogue<'p> {
    framer: Framer,
    commits: Commits,
    next: Next,
    /// Whether the server omits descriptions of columns that have not changed.
    cached: bool,
    /// Whether the awaited reply belongs to an Execute.
    binary: bool,
    /// Whether the last reply was an error.
    failed: bool,
    prepared: HashMap<&'p [u8], Known<'p>>,
    execute: Execute<'p>,
    fatal: Option<String>,
}

impl MysqlDialogue<'_> {
    /// Creates the dialogue of a client. `cached` is true if the server omits descriptions of columns that have not
    /// changed.
    pub fn new(cached: bool) -> Self {
        Self {
            framer: Framer::new(),
            commits: Commits::default(),
            next: Next::Answer,
            cached,
            binary: false,
            failed: false,
            prepared: HashMap::new(),
            execute: Execute::default(),
            fatal: None,
        }
    }

    /// Sends the Execute of the statement that the server has prepared.
    fn run(&mut self, outbox: &mut Vec<u8>) -> Progress {
        let mut known = Known { text: self.execute.text, id: self.execute.id, kinds: Vec::new() };
        outbox.clear();
        self.execute.append(&mut known, outbox);
        if !self.execute.is_last_use {
            self.prepared.insert(self.execute.name, known);
        }
        (self.next, self.binary) = (Next::Answer, true);
        Progress::Send
    }

    fn fail(&mut self, error: &ServerError, replies: &mut Replies) {
        self.failed = true;
        if error.ends_session() {
            self.fatal.get_or_insert_with(|| error.to_string());
        }
        replies.refuse(|| Refusal {
            class: error.number.to_string(),
            message: error.to_string(),
            retryable: error.is_retryable(),
        });
    }

    fn take(
        &mut self,
        packet: Packet,
        outbox: &mut Vec<u8>,
        replies: &mut Replies,
        tally: &mut Tally,
    ) -> Result<Progress, Malformed> {
        let body = packet.body;
        if body.first() == Some(&head::ERROR) && !matches!(self.next, Next::Column(_) | Next::Description(_)) {
            self.fail(&server_error(body), replies);
            return Ok(Progress::Answered);
        }
        match self.next {
            Next::Answer => match Answer::read(body, self.cached && self.binary)? {
                Answer::Done(done) => return Ok(self.done(done, replies, tally)),
                // A capture contains no files. An empty file is sent instead, which ends the reply.
                Answer::LocalInfile => {
                    outbox.clear();
                    frontend::packet(outbox, packet.sequence.wrapping_add(1), |_| {});
                    return Ok(Progress::Send);
                }
                Answer::Rows(columns, described) => {
                    self.next = if described && columns > 0 { Next::Column(columns) } else { Next::Row };
                }
                Answer::Error => unreachable!("taken above"),
            },
            Next::Column(left) => {
                if !Column::begins(body) {
                    return Err(Malformed::Invalid);
                }
                self.next = if left > 1 { Next::Column(left - 1) } else { Next::Row };
            }
            Next::Row if body.first() == Some(&head::END) => return Ok(self.done(Done::read(body)?, replies, tally)),
            Next::Row => return Err(Malformed::Invalid),
            Next::Prepared => {
                let Prepared { statement, columns, parameters } = Prepared::read(body)?;
                if parameters != self.execute.parameters {
                    let recorded = self.execute.parameters;
                    self.failed = true;
                    replies.refuse(|| Refusal {
                        class: "parameters".to_owned(),
                        message: format!("the server found {parameters} parameters, but {recorded} were recorded"),
                        retryable: false,
                    });
                }
                self.execute.id = statement;
                return Ok(self.described(u32::from(parameters) + u32::from(columns), replies, outbox));
            }
            Next::Description(left) => return Ok(self.described(left - 1, replies, outbox)),
        }
        Ok(Progress::More)
    }

    /// Continues when this many descriptions of a prepared statement are still expected.
    fn described(&mut self, left: u32, replies: &Replies, outbox: &mut Vec<u8>) -> Progress {
        if left > 0 {
            self.next = Next::Description(left);
            return Progress::More;
        }
        if replies.refusal.is_some() { Progress::Answered } else { self.run(outbox) }
    }

    /// Handles the end of a statement, after its last row if it returns rows.
    fn done(&mut self, done: Done, replies: &mut Replies, tally: &mut Tally) -> Progress {
        tally.commits += self.commits.done(done);
        replies.rows += done.affected + std::mem::take(&mut self.framer.skipped);
        if done.generated > 0 {
            // The server returns the key of the first row. The rows of an INSERT have consecutive keys.
            let mut key = done.generated;
            while replies.awaited_keys.is_some() {
                replies.store_key(|keys, slot| keys.set_number(slot, key));
                key = key.wrapping_add(1);
            }
        }
        if done.has_more() {
            self.next = Next::Answer;
            return Progress::More;
        }
        replies.complete(0);
        Progress::Answered
    }
}

impl<'p> Dialogue<'p> for MysqlDialogue<'p> {
    type Malformed = Malformed;

    fn statement(&mut self, statement: &Statement<'p>, _: bool, keys: &mut KeyWriter, out: &mut Vec<u8>) {
        self.failed = false;
        self.commits.expect(starts_with_rollback(statement.text));
        if !statement.has(flag::EXTENDED) {
            (self.next, self.binary) = (Next::Answer, false);
            return frontend::query_with(out, |out| keys.text(statement, out));
        }
        let Statement { name, text, parameters, .. } = *statement;
        self.execute.bind(statement, keys);
        (self.execute.name, self.execute.text, self.execute.parameters) = (name, text, parameters);
        self.execute.is_last_use = statement.has(flag::LAST_USE);
        match self.prepared.get_mut(name) {
            Some(known) if known.text == text => {
                self.execute.append(known, out);
                (self.next, self.binary) = (Next::Answer, true);
                if self.execute.is_last_use {
                    self.prepared.remove(name);
                }
            }
            other => {
                if let Some(known) = other {
                    frontend::close(out, known.id);
                    self.prepared.remove(name);
                }
                frontend::prepare(out, std::str::from_utf8(text).unwrap_or_default());
                (self.next, self.binary) = (Next::Prepared, false);
            }
        }
    }

    fn roll_back(&mut self, out: &mut Vec<u8>) {
        self.failed = false;
        self.commits.expect(true);
        (self.next, self.binary) = (Next::Answer, false);
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
        while is_expected && progress == Progress::More {
            let rows = if self.next == Next::Row { Rows::Skip } else { Rows::Keep };
            let Some(packet) = self.framer.next(&mut input, rows)? else { break };
            progress = self.take(packet, &mut mailbox.outbox, replies, tally)?;
        }
        if progress != Progress::More && !is_unexpected_allowed(input) {
            return Err(Malformed::Unexpected);
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(progress)
    }

    fn may_be_in_transaction(&self) -> bool {
        if self.failed { self.commits.may_be_in_transaction() } else { self.commits.is_in_transaction() }
    }

    fn discard(&mut self) {
        // `DEALLOCATE PREPARE` drops a statement of SQL's PREPARE. The statements here belong to the binary protocol.
    }

    fn reconnected(&mut self) {
        *self = Self::new(self.cached);
    }

    fn farewell(&self, out: &mut Vec<u8>) {
        frontend::quit(out);
    }

    fn last_words(&mut self, mailbox: &Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        while let Ok(Some(packet)) = self.framer.next(&mut input, Rows::Keep) {
            if packet.body.first() == Some(&head::ERROR) {
                self.fatal = Some(server_error(packet.body).to_string());
            }
        }
        self.fatal.take()
    }
}

fn starts_with_rollback(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    text.get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"rollback"))
        && std::str::from_utf8(text).is_ok_and(is_rollback)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::capture::keys::{Keys, Replaced, Returned, StatementKeys};
    use crate::wire::mysql::protocol::status::{AUTOCOMMIT, IN_TRANSACTION};

    const SELECT: Statement = Statement {
        flags: flag::EXTENDED,
        at_ns: 0,
        pause_ns: 0,
        kind: 0,
        template: 0,
        name: b"7",
        text: b"select ?, ?",
        parameters: 2,
        types: b"is",
        values: b"\0\0\0\x015\xff\xff\xff\xff",
        keys: b"",
    };

    struct Session<'p> {
        dialogue: MysqlDialogue<'p>,
        replies: Replies<'p>,
        keys: KeyWriter<'p>,
        mailbox: Mailbox,
        tally: Tally,
    }

    impl<'p> Session<'p> {
        fn new(keys: &'p Keys) -> Self {
            let (replies, keys) = (Replies::new(keys), KeyWriter::new(keys));
            let dialogue = MysqlDialogue::new(false);
            Self { dialogue, replies, keys, mailbox: Mailbox::default(), tally: Tally::new(1) }
        }

        /// Sends a statement. Returns the commands in the outbox.
        fn send(&mut self, statement: Statement<'p>) -> Vec<Vec<u8>> {
            self.mailbox.outbox.clear();
            self.dialogue.statement(&statement, true, &mut self.keys, &mut self.mailbox.outbox);
            self.replies.sent = vec![statement];
            self.replies.expect();
            self.sent()
        }

        fn sent(&self) -> Vec<Vec<u8>> {
            let (mut framer, mut input, mut found) = (Framer::new(), &self.mailbox.outbox[..], Vec::new());
            while let Some(packet) = framer.next(&mut input, Rows::Keep).unwrap() {
                found.push(packet.body.to_vec());
            }
            found
        }

        fn receive(&mut self, bodies: &[&[u8]]) -> Result<Progress, Malformed> {
            let mut stream = Vec::new();
            for body in bodies {
                frontend::packet(&mut stream, 1, |out| out.extend_from_slice(body));
            }
            self.mailbox.inbox.append(&stream);
            self.dialogue.read(&mut self.mailbox, true, &mut self.replies, &mut self.tally)
        }
    }

    fn done(affected: u8, generated: u8, status: u16) -> Vec<u8> {
        [&[0, affected, generated][..], &status.to_le_bytes(), &[0, 0]].concat()
    }

    const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\0\0\0\0\x08\0\0\0\0\0";
    const END: &[u8] = b"\xfe\0\0\x02\0\0\0";

    #[test]
    fn a_statement_is_prepared_once_and_closed_after_its_last_use() {
        let keys = Keys::new(0).unwrap();
        let mut session = Session::new(&keys);
        assert_eq!(session.send(SELECT), [b"\x16select ?, ?"]);
        let prepared = [0, 9, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0];
        assert_eq!(session.receive(&[&prepared, COLUMN, COLUMN, COLUMN]), Ok(Progress::Send));
        let execute = |kinds: &[u8]| [&b"\x17\x09\0\0\0\0\x01\0\0\0\x02"[..], kinds, b"\x05\0\0\0\0\0\0\0"].concat();
        assert_eq!(session.sent(), [execute(&[1, kind::LONGLONG, 0, kind::NULL, 0])]);
        let row = b"\0\0\x05\0\0\0\0\0\0\0";
        assert_eq!(session.receive(&[&[1], COLUMN, row, row, END]), Ok(Progress::Answered));
        assert_eq!((session.replies.rows, session.replies.completed, session.tally.commits), (2, 1, 1));
        let last = Statement { flags: flag::EXTENDED | flag::LAST_USE, ..SELECT };
        assert_eq!(session.send(last), [execute(&[0]), b"\x19\x09\0\0\0".to_vec()]);
        assert_eq!(session.receive(&[&[1], COLUMN, END]), Ok(Progress::Answered));
        assert_eq!(session.send(SELECT), [b"\x16select ?, ?"]);
    }

    #[test]
    fn a_statement_with_other_parameters_than_recorded_is_not_executed() {
        let keys = Keys::new(0).unwrap();
        let mut session = Session::new(&keys);
        session.send(SELECT);
        assert_eq!(session.receive(&[&[0, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], COLUMN]), Ok(Progress::Answered));
        assert_eq!(session.replies.refusal.map(|one| one.class).as_deref(), Some("parameters"));
    }

    #[test]
    fn a_generated_key_is_sent_in_place_of_the_recorded_one() {
        let keys = Keys::new(3).unwrap();
        let mut session = Session::new(&keys);
        let bytes = |returned, replaced: &[Replaced]| {
            let mut bytes = Vec::new();
            StatementKeys::write(&mut bytes, returned, replaced.iter().copied());
            bytes
        };
        let returns = bytes(Some(Returned { slot: 0, column: 0, rows: 3 }), &[]);
        let uses = bytes(None, &[Replaced { position: 1, length: 1, slot: 2 }]);
        let plain = Statement { flags: flag::KEYS, parameters: 0, types: b"", values: b"", ..SELECT };
        session.send(Statement { text: b"insert into t values (1), (2), (3)", keys: &returns, ..plain });
        assert_eq!(session.receive(&[&done(3, 75, AUTOCOMMIT)]), Ok(Progress::Answered));
        session.send(Statement { flags: flag::EXTENDED | flag::KEYS, keys: &uses, ..SELECT });
        session.receive(&[&[0, 9, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0], COLUMN, COLUMN]).unwrap();
        assert!(session.sent()[0].ends_with(&77i64.to_le_bytes()));
        assert_eq!((session.keys.replaced, session.keys.missing), (1, 0));
    }

    #[test]
    fn after_an_error_a_transaction_may_be_open() {
        let keys = Keys::new(0).unwrap();
        let mut session = Session::new(&keys);
        let plain = Statement { flags: 0, parameters: 0, types: b"", values: b"", ..SELECT };
        session.send(plain);
        assert_eq!(session.receive(&[&done(0, 0, AUTOCOMMIT | IN_TRANSACTION)]), Ok(Progress::Answered));
        assert!(session.dialogue.may_be_in_transaction());
        session.send(plain);
        assert_eq!(session.receive(&[b"\xff\xbd\x04#40001Deadlock found"]), Ok(Progress::Answered));
        let refusal = session.replies.refusal.take().unwrap();
        assert!(refusal.class == "1213" && refusal.retryable && session.dialogue.may_be_in_transaction());
        session.mailbox.outbox.clear();
        session.dialogue.roll_back(&mut session.mailbox.outbox);
        assert_eq!(session.receive(&[&done(0, 0, AUTOCOMMIT)]), Ok(Progress::Answered));
        assert!(!session.dialogue.may_be_in_transaction() && session.tally.commits == 0);
        assert_eq!(session.receive(&[&done(0, 0, 0), &done(0, 0, 0)]), Err(Malformed::Unexpected));
    }

    #[test]
    fn a_request_for_a_file_is_answered_with_an_empty_one() {
        let keys = Keys::new(0).unwrap();
        let mut session = Session::new(&keys);
        session.send(Statement { flags: 0, parameters: 0, types: b"", values: b"", ..SELECT });
        assert_eq!(session.receive(&[b"\xfbfile"]), Ok(Progress::Send));
        assert_eq!(session.mailbox.outbox, [0, 0, 0, 2]);
        assert_eq!(session.receive(&[&done(0, 0, AUTOCOMMIT)]), Ok(Progress::Answered));
    }
}
