//! A client that replays recorded sessions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::dialogue::{Dialogue, Progress, Refusal, Replies};
use super::keys::{KeyWriter, Keys};
use super::tape::{Statement, flag};
use super::{Figures, Mode};
use crate::drive::jobs::Next;
use crate::drive::transaction::{Ending, Step, Transaction};
use crate::measure::{Tally, clock};
use crate::wire::transport::Mailbox;

/// Maximum number of characters of a template in a message, so that records stay small.
const MOST_SHOWN: usize = 200;

/// The request to which the awaited reply belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// The client waits for no reply.
    Nothing,
    Statements,
    /// A ROLLBACK was sent. The transaction failed, or its end was not recorded.
    RollBack,
}

/// What all clients of a replay share.
pub struct ReplayContext<'p> {
    pub mode: Mode,
    /// Factor by which the replay is faster than the recording.
    pub speed: f64,
    /// The templates of all statements, each with the index of its kind of transaction.
    pub templates: &'p [(usize, &'p str)],
    pub keys: &'p Keys,
    pub figures: &'p Figures,
}

pub struct Replayer<'p, D> {
    client: usize,
    replay: &'p ReplayContext<'p>,
    dialogue: D,
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
    pending: Pending,
    sent_at: u64,
    replies: Replies<'p>,
    keys: KeyWriter<'p>,
    statements: u64,
    failed_again: u64,
    failed_only_then: u64,
    skipped: u64,
}

impl<'p, D: Dialogue<'p>> Replayer<'p, D> {
    /// Creates a client that replays `tape`, which is the client's part of the whole tape.
    pub fn new(client: usize, dialogue: D, tape: &'p [u8], replay: &'p ReplayContext<'p>) -> Self {
        let mut replayer = Self {
            client,
            replay,
            dialogue,
            next: None,
            rest: tape,
            origin: 0,
            ended: 0,
            connected: true,
            inside: false,
            kind: 0,
            failed: false,
            pending: Pending::Nothing,
            sent_at: 0,
            replies: Replies::new(replay.keys),
            keys: KeyWriter::new(replay.keys),
            statements: 0,
            failed_again: 0,
            failed_only_then: 0,
            skipped: 0,
        };
        replayer.advance();
        replayer
    }

    fn advance(&mut self) -> Option<Statement<'p>> {
        let next = Statement::read(&mut self.rest);
        std::mem::replace(&mut self.next, next)
    }

    fn scaled(&self, ns: u64) -> u64 {
        if self.replay.speed == 1.0 { ns } else { (ns as f64 / self.replay.speed) as u64 }
    }

    /// Returns the scheduled start of the transaction that begins with this statement.
    fn due(&self, statement: &Statement) -> u64 {
        match self.replay.mode {
            Mode::Schedule | Mode::Rate => self.origin.saturating_add(self.scaled(statement.at_ns)),
            Mode::Think => self.ended.saturating_add(self.scaled(statement.pause_ns)),
            Mode::Fast => 0,
        }
    }

    /// Continues with the next statement of the transaction, after its recorded pause.
    fn continue_transaction(&mut self, mailbox: &mut Mailbox, now: u64) -> Step {
        let Some(next) = &self.next else { return Step::Broken("a transaction of the tape has no end".to_owned()) };
        let pause = match self.replay.mode {
            Mode::Schedule => self.due(next).saturating_sub(now),
            Mode::Think => self.scaled(next.pause_ns),
            Mode::Rate | Mode::Fast => 0,
        };
        if pause > 0 { Step::Sleep(pause) } else { self.send(mailbox, now) }
    }

    /// Sends the next statement, and the statements that were recorded in the same pipeline.
    fn send(&mut self, mailbox: &mut Mailbox, now: u64) -> Step {
        mailbox.outbox.clear();
        self.replies.sent.clear();
        while let Some(statement) = self.advance() {
            let is_last = !statement.has(flag::PIPELINED) || self.next.is_none();
            self.dialogue.statement(&statement, is_last, &mut self.keys, &mut mailbox.outbox);
            self.replies.sent.push(statement);
            if is_last {
                break;
            }
        }
        (self.sent_at, self.pending) = (now, Pending::Statements);
        self.replies.expect();
        Step::Send
    }

    /// Continues after everything sent has been answered.
    fn answered(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        let now = clock::now();
        let refusal = self.replies.refusal.take();
        if std::mem::replace(&mut self.pending, Pending::Nothing) == Pending::RollBack {
            let refused = refusal.is_some() || self.dialogue.may_be_in_transaction();
            let cause = || "the server refused to roll back".to_owned();
            return if refused { Step::Broken(cause()) } else { self.end(tally) };
        }
        // In a pipeline, the failed statement is the first one that was not completed. The statements after it were
        // skipped.
        let sent = &self.replies.sent;
        let failed = refusal.is_some().then(|| self.replies.completed.min(sent.len() - 1));
        let each_ns = (now - self.sent_at) / sent.len() as u64;
        for (number, statement) in sent.iter().enumerate() {
            tally.record_reply_time(statement.template as usize, each_ns, failed == Some(number));
            self.statements += 1;
            self.failed_only_then += u64::from(statement.has(flag::FAILED) && failed != Some(number));
            if statement.has(flag::DISCARDS) && failed.is_none() {
                self.dialogue.discard();
            }
        }
        if let (Some(refusal), Some(number)) = (refusal, failed) {
            let statement = sent[number];
            if statement.has(flag::FAILED) {
                self.failed_again += 1;
            } else {
                self.fail(&statement, &refusal, tally);
            }
        }
        let over = self.is_over() || self.next.is_none();
        if over || self.failed { self.finish(mailbox, tally) } else { self.continue_transaction(mailbox, now) }
    }

    /// Whether the last statement that was sent ends its transaction.
    fn is_over(&self) -> bool {
        self.replies.sent.last().is_none_or(|last| last.has(flag::ENDS))
    }

    /// Counts the transaction as failed, and skips the rest of it.
    #[cold]
    fn fail(&mut self, statement: &Statement, refusal: &Refusal, tally: &mut Tally) {
        let Refusal { class, message, retryable } = refusal;
        let template = self.replay.templates.get(statement.template as usize).map_or("", |(_, template)| template);
        let shown: String = template.chars().take(MOST_SHOWN).collect();
        let words = || format!("client {}: {message}; in: {shown}", self.client + 1);
        tally.failure(self.kind, class, *retryable, words);
        self.failed = true;
        let mut last = self.is_over();
        while !last && let Some(skipped) = self.advance() {
            self.skipped += 1;
            last = skipped.has(flag::ENDS);
        }
    }

    /// Ends the transaction, after a rollback if the server is still inside it.
    fn finish(&mut self, mailbox: &mut Mailbox, tally: &mut Tally) -> Step {
        if !self.dialogue.may_be_in_transaction() {
            return self.end(tally);
        }
        mailbox.outbox.clear();
        self.dialogue.roll_back(&mut mailbox.outbox);
        self.pending = Pending::RollBack;
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

impl<D> Drop for Replayer<'_, D> {
    fn drop(&mut self) {
        let add = |sum: &AtomicU64, count| sum.fetch_add(count, Relaxed);
        let figures = self.replay.figures;
        add(&figures.statements, self.statements);
        add(&figures.rows, self.replies.rows);
        add(&figures.failed_again, self.failed_again);
        add(&figures.failed_only_then, self.failed_only_then);
        add(&figures.skipped, self.skipped);
        add(&figures.keys, self.keys.replaced);
        add(&figures.keys_missing, self.keys.missing);
    }
}

impl<'p, D: Dialogue<'p>> Transaction for Replayer<'p, D> {
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
        let is_expected = self.pending != Pending::Nothing;
        match self.dialogue.read(mailbox, is_expected, &mut self.replies, tally) {
            Ok(Progress::Answered) => self.answered(mailbox, tally),
            Ok(Progress::Send) => Step::Send,
            Ok(Progress::More) => Step::Receive,
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
                let due = if self.replay.mode == Mode::Fast { now } else { due };
                Next::Job { script: next.kind as usize, due }
            }
        }
    }

    fn not_started(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        if !matches!(self.replay.mode, Mode::Schedule | Mode::Rate) {
            return Box::new(std::iter::empty());
        }
        let mut rest = self.rest;
        let later = std::iter::from_fn(move || Statement::read(&mut rest));
        let starts = self.next.into_iter().chain(later).filter(|statement| statement.has(flag::BEGINS));
        Box::new(starts.map(|statement| self.due(&statement)))
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
        self.dialogue.reconnected();
    }

    fn farewell(&mut self, mailbox: &mut Mailbox) {
        mailbox.outbox.clear();
        self.dialogue.farewell(&mut mailbox.outbox);
    }

    fn last_words(&mut self, mailbox: &mut Mailbox) -> Option<String> {
        self.dialogue.last_words(mailbox)
    }
}
