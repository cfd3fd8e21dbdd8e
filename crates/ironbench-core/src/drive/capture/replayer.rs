//! A client that replays recorded sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::keys::{Keys, StatementKeys};
use super::tape::{Statement, flag};
use super::{Figures, Mode};
use crate::drive::jobs::Next;
use crate::drive::transaction::{Ending, Step, Transaction};
use crate::measure::{Tally, clock};
use crate::wire::postgres::protocol::backend::{
    ServerError, Standing, affected_rows, data_row, ready_for_query, server_error, tag,
};
use crate::wire::postgres::protocol::{Commits, Framer, Malformed, Rows, frontend, is_unasked_allowed};
use crate::wire::transport::Mailbox;

/// Maximum number of characters of a template in a message, so that records stay small.
const MOST_SHOWN: usize = 200;

/// The request to which the awaited reply belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// The client waits for no reply.
    Nothing,
    Statements,
    /// A ROLLBACK was sent. The transaction failed, or its end was not recorded.
    RollBack,
}

pub struct Replayer<'p> {
    client: usize,
    mode: Mode,
    speed: f64,
    /// The templates of all statements, each with the index of its kind of transaction.
    places: &'p [(usize, &'p str)],
    keys: &'p Keys,
    figures: &'p Figures,
    /// The next statement of the tape. `rest` is the part of the tape after this statement.
    next: Option<Statement<'p>>,
    rest: &'p [u8],
    /// The start of the replay on the local monotonic clock.
    origin: u64,
    /// When the last transaction ended.
    ended: u64,
    /// Whether the open connection can be used for the next statement. False if that statement starts another recorded
    /// session.
    connected: bool,
    inside: bool,
    kind: usize,
    /// Whether the current transaction counts as failed. This is the case if a statement failed that had succeeded in
    /// the recording.
    failed: bool,
    doing: Doing,
    /// Statements that were sent together and await their replies.
    sent: Vec<Statement<'p>>,
    sent_at: u64,
    framer: Framer,
    commits: Commits,
    standing: Standing,
    /// Number of the sent statements that have completed.
    completed: usize,
    /// Slot and result column of the key that the awaited statement returns. The value is None if the statement returns
    /// no key, or after its first row.
    awaited_key: Option<(u32, u16)>,
    /// Encoded parameters of the next statement. Recorded keys are replaced with the keys of this replay.
    values: Vec<u8>,
    error: Option<Box<ServerError>>,
    fatal: Option<String>,
    /// Texts of the statements that the session has prepared, by name.
    prepared: HashMap<&'p [u8], &'p [u8]>,
    /// Names of the statements whose Parse was sent but not acknowledged.
    parsing: VecDeque<&'p [u8]>,
    statements: u64,
    rows: u64,
    failed_again: u64,
    failed_only_then: u64,
    skipped: u64,
    replaced: u64,
    missing: u64,
}

impl<'p> Replayer<'p> {
    /// Creates a client that replays `tape`, which is the client's part of the whole tape. `pace` contains the mode and
    /// the factor by which the replay is faster than the recording. `places` contains the templates of all statements,
    /// each with the index of its kind of transaction. `keys` contains the keys of all clients.
    pub fn new(
        client: usize,
        pace: (Mode, f64),
        tape: &'p [u8],
        places: &'p [(usize, &'p str)],
        keys: &'p Keys,
        figures: &'p Figures,
    ) -> Self {
        let mut replayer = Self {
            client,
            mode: pace.0,
            speed: pace.1,
            places,
            keys,
            figures,
            next: None,
            rest: tape,
            origin: 0,
            ended: 0,
            connected: true,
            inside: false,
            kind: 0,
            failed: false,
            doing: Doing::Nothing,
            sent: Vec::new(),
            sent_at: 0,
            framer: Framer::new(),
            commits: Commits::default(),
            standing: Standing::Idle,
            completed: 0,
            awaited_key: None,
            values: Vec::new(),
            error: None,
            fatal: None,
            prepared: HashMap::new(),
            parsing: VecDeque::new(),
            statements: 0,
            rows: 0,
            failed_again: 0,
            failed_only_then: 0,
            skipped: 0,
            replaced: 0,
            missing: 0,
        };
        replayer.advance();
        replayer
    }

    fn advance(&mut self) -> Option<Statement<'p>> {
        let next = Statement::read(&mut self.rest);
        std::mem::replace(&mut self.next, next)
    }

    fn scaled(&self, ns: u64) -> u64 {
        if self.speed == 1.0 { ns } else { (ns as f64 / self.speed) as u64 }
    }

    /// Returns the scheduled start of the transaction that begins with this statement.
    fn due(&self, statement: &Statement) -> u64 {
        match self.mode {
            Mode::Schedule | Mode::Rate => self.origin.saturating_add(self.scaled(statement.at_ns)),
            Mode::Think => self.ended.saturating_add(self.scaled(statement.pause_ns)),
            Mode::Fast => 0,
        }
    }

    /// Continues with the next statement of the transaction, after its recorded pause.
    fn go_on(&mut self, mailbox: &mut Mailbox, now: u64) -> Step {
        let Some(next) = &self.next else { return Step::Broken("a transaction of the tape has no end".to_owned()) };
        let pause = match self.mode {
            Mode::Schedule => self.due(next).saturating_sub(now),
            Mode::Think => self.scaled(next.pause_ns),
            Mode::Rate | Mode::Fast => 0,
        };
        if pause > 0 { Step::Sleep(pause) } else { self.send(mailbox, now) }
    }

    /// Sends the next statement, and the statements that were recorded in the same pipeline.
    fn send(&mut self, mailbox: &mut Mailbox, now: u64) -> Step {
        mailbox.outbox.clear();
        self.sent.clear();
        while let Some(statement) = self.advance() {
            self.encode(&statement, &mut mailbox.outbox);
            self.sent.push(statement);
            if !statement.has(flag::PIPELINED) {
                break;
            }
        }
        if self.sent.last().is_some_and(|last| last.has(flag::EXTENDED)) {
            frontend::sync(&mut mailbox.outbox);
        }
        (self.sent_at, self.doing, self.completed) = (now, Doing::Statements, 0);
        self.await_key();
        Step::Send
    }

    fn await_key(&mut self) {
        let awaited = self.sent.get(self.completed).filter(|statement| statement.has(flag::KEYS));
        self.awaited_key = awaited.and_then(|statement| StatementKeys::read(statement.keys)?.returned);
    }

    fn encode(&mut self, statement: &Statement<'p>, out: &mut Vec<u8>) {
        let keys = if statement.has(flag::KEYS) { StatementKeys::read(statement.keys) } else { None };
        if !statement.has(flag::EXTENDED) {
            return frontend::query_with(out, |out| match keys {
                Some(keys) => self.write_text(statement.text, &keys, out),
                None => out.extend_from_slice(statement.text),
            });
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
        let values = match keys {
            Some(keys) => {
                self.write_values(statement.values, &keys);
                &self.values
            }
            None => statement.values,
        };
        frontend::bind_values(out, name, statement.parameters, values);
        frontend::describe_portal(out);
        frontend::execute(out);
    }

    /// Writes a statement's text. Recorded keys are replaced with the keys of this replay.
    fn write_text(&mut self, text: &[u8], keys: &StatementKeys, out: &mut Vec<u8>) {
        let mut written = 0;
        for one in keys.replaced() {
            let (start, end) = (one.place as usize, (one.place + one.length) as usize);
            out.extend_from_slice(&text[written..start]);
            self.write_key(one.slot, &text[start..end], out);
            written = end;
        }
        out.extend_from_slice(&text[written..]);
    }

    /// Encodes parameters into `values`. Recorded keys are replaced with the keys of this replay.
    fn write_values(&mut self, recorded: &[u8], keys: &StatementKeys) {
        let (mut out, mut rest, mut replaced) =
            (std::mem::take(&mut self.values), recorded, keys.replaced().peekable());
        out.clear();
        for number in 1.. {
            let Some((head, after)) = rest.split_first_chunk::<4>() else { break };
            let length = usize::try_from(i32::from_be_bytes(*head)).unwrap_or(0);
            let Some((value, after)) = after.split_at_checked(length) else { break };
            rest = after;
            let at = out.len();
            out.extend_from_slice(head);
            match replaced.next_if(|one| one.place == number) {
                Some(one) => {
                    self.write_key(one.slot, value, &mut out);
                    let length = (out.len() - at - head.len()) as i32;
                    out[at..at + head.len()].copy_from_slice(&length.to_be_bytes());
                }
                None => out.extend_from_slice(value),
            }
        }
        self.values = out;
    }

    fn write_key(&mut self, slot: u32, recorded: &[u8], out: &mut Vec<u8>) {
        if self.keys.append(slot, out) {
            self.replaced += 1;
        } else {
            out.extend_from_slice(recorded);
            self.missing += 1;
        }
    }

    /// Stores the key that a row of the awaited statement contains.
    fn take_key(&mut self, row: &[u8]) -> Result<(), Malformed> {
        let Some((slot, column)) = self.awaited_key.take() else { return Ok(()) };
        if let Some(Some(value)) = data_row(row)?.nth(usize::from(column)).transpose()? {
            self.keys.set(slot, value);
        }
        Ok(())
    }

    /// Reads the received messages. Returns true when everything that was sent has been answered.
    fn read(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Result<bool, Malformed> {
        let received = mailbox.inbox.bytes();
        if self.doing == Doing::Nothing && !is_unasked_allowed(received) {
            return Err(Malformed::Unasked);
        }
        let (mut input, mut answered) = (received, false);
        loop {
            let rows = if self.awaited_key.is_some() { Rows::Keep } else { Rows::Skip };
            let Some(message) = self.framer.next(&mut input, rows)? else { break };
            match message.tag {
                tag::DATA_ROW => self.take_key(message.body)?,
                tag::READY_FOR_QUERY => {
                    self.standing = ready_for_query(message.body)?;
                    tally.commits += self.commits.ready(self.standing);
                    answered = true;
                    break;
                }
                tag::COMMAND_COMPLETE => {
                    tally.commits += self.commits.completed(message.body);
                    self.rows += affected_rows(message.body);
                    self.completed += 1;
                    self.await_key();
                }
                tag::EMPTY_QUERY_RESPONSE => {
                    self.commits.completed_empty();
                    self.completed += 1;
                }
                tag::PARSE_COMPLETE => drop(self.parsing.pop_front()),
                tag::ERROR_RESPONSE => {
                    let error = server_error(message.body);
                    self.commits.failed();
                    self.listen(&error);
                    self.error.get_or_insert_with(|| Box::new(error));
                }
                tag::NOTICE_RESPONSE => self.listen(&server_error(message.body)),
                tag::AUTHENTICATION | tag::BACKEND_KEY_DATA | tag::NEGOTIATE_PROTOCOL_VERSION => {
                    return Err(Malformed::Nonsense);
                }
                _ => {}
            }
        }
        let read = received.len() - input.len();
        mailbox.inbox.consume(read);
        Ok(answered)
    }

    /// Remembers an error that ends the session.
    fn listen(&mut self, said: &ServerError) {
        if matches!(said.severity.as_str(), "FATAL" | "PANIC") || said.sqlstate.starts_with("57P") {
            self.fatal.get_or_insert_with(|| said.to_string());
        }
    }

    /// Continues after everything sent has been answered.
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let now = clock::now();
        let error = self.error.take();
        while let Some(name) = self.parsing.pop_front() {
            self.prepared.remove(name);
        }
        if std::mem::replace(&mut self.doing, Doing::Nothing) == Doing::RollBack {
            let refused = error.is_some() || self.standing != Standing::Idle;
            let cause = || "the server refused to roll back".to_owned();
            return if refused { Step::Broken(cause()) } else { self.end(tally) };
        }
        // In a pipeline, the failed statement is the first one that was not completed. The statements after it were
        // skipped.
        let failed = error.is_some().then(|| self.completed.min(self.sent.len() - 1));
        let each_ns = (now - self.sent_at) / self.sent.len() as u64;
        for (number, statement) in self.sent.iter().enumerate() {
            tally.lap(statement.place as usize, each_ns, failed == Some(number));
            self.statements += 1;
            self.failed_only_then += u64::from(statement.has(flag::FAILED) && failed != Some(number));
            if statement.has(flag::DISCARDS) && failed.is_none() {
                self.prepared.clear();
            }
        }
        if let (Some(error), Some(number)) = (error, failed) {
            let statement = self.sent[number];
            if statement.has(flag::FAILED) {
                self.failed_again += 1;
            } else {
                self.fail(&statement, &error, tally);
            }
        }
        let over = self.sent.last().is_none_or(|last| last.has(flag::ENDS)) || self.next.is_none();
        if over || self.failed { self.finish(mailbox, tally) } else { self.go_on(mailbox, now) }
    }

    /// Counts the transaction as failed, and skips the rest of it.
    #[cold]
    fn fail(&mut self, statement: &Statement, error: &ServerError, tally: &mut Tally) {
        let retryable = matches!(error.sqlstate.as_str(), "40001" | "40P01");
        let template = self.places.get(statement.place as usize).map_or("", |(_, template)| template);
        let shown: String = template.chars().take(MOST_SHOWN).collect();
        let words = || format!("client {}: {error}; in: {shown}", self.client + 1);
        tally.failure(self.kind, &error.sqlstate, retryable, words);
        self.failed = true;
        let mut last = self.sent.last().is_none_or(|last| last.has(flag::ENDS));
        while !last && let Some(skipped) = self.advance() {
            self.skipped += 1;
            last = skipped.has(flag::ENDS);
        }
    }

    /// Ends the transaction, after a rollback if the server is still inside it.
    fn finish(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if self.standing == Standing::Idle {
            return self.end(tally);
        }
        mailbox.outbox.clear();
        frontend::query(&mut mailbox.outbox, "ROLLBACK");
        (self.doing, self.completed) = (Doing::RollBack, 0);
        Step::Send
    }

    fn end(&mut self, tally: &mut Tally) -> Step {
        tally.kinds[self.kind].failed += u64::from(self.failed);
        self.inside = false;
        self.ended = clock::now();
        self.connected = !self.next.is_some_and(|next| next.has(flag::OPENS));
        Step::Ended(Ending { kind: self.kind, well: !self.failed, retries: 0 })
    }
}

/// Returns bytes of the tape as text. The tape contains only UTF-8 without zero bytes, which [`Capture::drive`] checks.
fn as_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl Drop for Replayer<'_> {
    fn drop(&mut self) {
        let add = |sum: &AtomicU64, count| sum.fetch_add(count, Relaxed);
        add(&self.figures.statements, self.statements);
        add(&self.figures.rows, self.rows);
        add(&self.figures.failed_again, self.failed_again);
        add(&self.figures.failed_only_then, self.failed_only_then);
        add(&self.figures.skipped, self.skipped);
        add(&self.figures.keys, self.replaced);
        add(&self.figures.keys_missing, self.missing);
    }
}

impl Transaction for Replayer<'_> {
    fn start(&mut self, origin: u64) {
        (self.origin, self.ended) = (origin, origin);
    }

    fn begin(&mut self, mailbox: &mut Mailbox, _: &mut Tally) -> Step {
        let Some(next) = &self.next else { return Step::Broken("the tape is at its end".to_owned()) };
        self.kind = next.kind as usize;
        (self.inside, self.failed) = (true, false);
        self.send(mailbox, clock::now())
    }

    fn resume(&mut self, mailbox: &mut Mailbox, _: &mut Tally) -> Step {
        self.send(mailbox, clock::now())
    }

    fn reply(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        match self.read(mailbox, tally) {
            Ok(true) => self.answered(mailbox, tally),
            Ok(false) => Step::Receive,
            Err(malformed) => Step::Broken(malformed.to_string()),
        }
    }

    /// Each client has its own queue, because only this client can continue its recorded sessions.
    fn job_queue(&self) -> Option<usize> {
        Some(self.client)
    }

    fn claim(&mut self, now: u64) -> Next {
        let Some(next) = &self.next else { return Next::Over };
        match self.due(next) {
            due if due > now => Next::NotBefore(due),
            due => {
                let due = if self.mode == Mode::Fast { now } else { due };
                Next::Job { script: next.kind as usize, due }
            }
        }
    }

    fn due_until(&self, instant: u64) -> u64 {
        if !matches!(self.mode, Mode::Schedule | Mode::Rate) {
            return u64::from(self.inside);
        }
        let mut rest = self.rest;
        let later = std::iter::from_fn(|| Statement::read(&mut rest));
        let starts = self.next.into_iter().chain(later).filter(|statement| statement.has(flag::BEGINS));
        u64::from(self.inside) + starts.take_while(|statement| self.due(statement) < instant).count() as u64
    }

    fn wants_reconnect(&self) -> bool {
        !self.connected
    }

    /// The server may close an idle connection. Between two recorded sessions this makes no difference, because the
    /// next session opens a new connection in any case.
    fn lost_waiting(&mut self) -> bool {
        self.connected = !self.next.is_some_and(|next| next.has(flag::OPENS));
        self.next.is_none() || !self.connected
    }

    fn reconnected(&mut self) {
        self.connected = true;
        self.prepared.clear();
        self.parsing.clear();
        (self.framer, self.commits, self.standing) = (Framer::new(), Commits::default(), Standing::Idle);
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        frontend::terminate(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        let mut input = mailbox.inbox.bytes();
        while let Ok(Some(message)) = self.framer.next(&mut input, Rows::Skip) {
            if matches!(message.tag, tag::ERROR_RESPONSE | tag::NOTICE_RESPONSE) {
                self.listen(&server_error(message.body));
            }
        }
        self.fatal.take()
    }
}
