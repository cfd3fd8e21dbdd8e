//! Joins the entries of a log into statements, and assigns the statements to sessions and transactions.
//!
//! A statement of the simple protocol is logged before it runs, and its duration is logged afterwards. With
//! `log_min_duration_statement`, one entry contains both. With the extended protocol, Parse, Bind and Execute have
//! separate entries. For a failed statement, an error is logged instead of its duration.

use std::collections::HashMap;
use std::sync::Arc;

use crate::analysis::Analysis;
use crate::entry::{Entry, Severity};
use crate::message::{Message, parameters};
use crate::statement::{Control, Obstacle};

/// Maximum number of sessions that are remembered. A log without `log_disconnections` does not show when a session
/// ends.
const MAX_SESSIONS: usize = 200_000;
/// A step back in time of at least this length is a change of the clock. A shorter step means that processes wrote
/// their entries out of order.
const JUMP_US: i64 = 2_000_000;

/// A statement that has been read.
#[derive(Debug, Default)]
pub struct Executed {
    pub session: u32,
    pub transaction: u64,
    /// Time at which the server received the statement, in microseconds since 1970.
    pub at_us: i64,
    pub analysis: Arc<Analysis>,
    /// Name of the prepared statement: empty for the unnamed statement, and None for the simple protocol.
    pub prepared: Option<Vec<u8>>,
    pub parameters: Parameters,
    pub duration_us: Option<u64>,
    /// SQLSTATE of the error that ended the statement. The code is empty if the statement succeeded.
    pub error: Vec<u8>,
    /// Whether the statement fetches a further part of an earlier statement's result.
    pub fetches: bool,
    /// Whether the transaction began before the first entry of the log.
    pub begun_before: bool,
    /// Number of rows that the statement returned or changed, or None if it is unknown.
    pub rows: Option<u64>,
    /// Types of the parameters, as codes of `Parameter` (crates/ironbench-core, `wire::mysql::protocol::binary`). Empty
    /// if they are unknown.
    pub types: Vec<u8>,
    /// Key that the statement generated, or None if it is unknown.
    pub generated: Option<u64>,
    /// The reason why a replay leaves out the statement, if the log or proxy that it comes from shows one.
    pub obstacle: Option<Obstacle>,
    pub names: Arc<SessionNames>,
}

/// Parameters of a prepared statement.
#[derive(Debug)]
pub enum Parameters {
    /// The list as logged, such as `$1 = '9', $2 = NULL`. The list is empty if there are no parameters.
    Logged(Vec<u8>),
    /// The values as texts, with None for NULL.
    Sent(Vec<Option<Vec<u8>>>),
}

impl Default for Parameters {
    fn default() -> Self {
        Self::Logged(Vec::new())
    }
}

/// User, database and application that sent a statement.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SessionNames {
    pub user: Vec<u8>,
    pub database: Vec<u8>,
    pub application: Vec<u8>,
}

/// Counts of what was found in the logs so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub entries: u64,
    pub statements: u64,
    pub sessions: u32,
    pub transactions: u64,
    pub errors: u64,
    /// Entries that occurred twice, for example because a file was given twice.
    pub repeated: u64,
    /// Number of entries with an earlier time than the entry before them.
    pub jumps: u64,
    /// Number of durations that were logged without a statement (by `log_duration`).
    pub durations_alone: u64,
    pub with_duration: u64,
    /// Number of unknown messages of severity LOG in client sessions.
    pub other_messages: u64,
}

#[derive(Default)]
struct Session {
    number: u32,
    last_us: i64,
    last_line: u32,
    /// Number of the current transaction, or 0 if there is none.
    transaction: u64,
    in_block: bool,
    begun_before: bool,
    /// The virtual transaction of the last statement outside a transaction block.
    virtual_transaction: u64,
    pending: Option<Executed>,
    pending_virtual: u64,
    names: Arc<SessionNames>,
    /// The Parse and Bind before an Execute: their start, their duration, and the parameters.
    bound: Option<(i64, u64, Vec<u8>)>,
}

/// The sessions of a log.
#[derive(Default)]
pub struct Sessions {
    open: HashMap<u64, Session>,
    latest_us: i64,
    /// Correction that is added to the times of entries. The correction grows when the clock was set back, so that
    /// corrected times do not jump back.
    shift_us: i64,
    pub counts: Counts,
}

/// Receives statements, and analyses their texts.
pub trait Handler {
    fn analyse(&mut self, text: &[u8]) -> Arc<Analysis>;

    /// Takes a statement that has ended.
    fn take(&mut self, executed: Executed);
}

impl Sessions {
    pub fn entry(&mut self, entry: &Entry, line: u32, handler: &mut impl Handler) {
        self.counts.entries += 1;
        let message = match entry.severity {
            Severity::Log => Message::of(&entry.message),
            _ => Message::Other,
        };
        if !self.open.contains_key(&entry.session) {
            let begins = match entry.severity {
                Severity::Log => !matches!(message, Message::Other | Message::Connected | Message::Disconnected),
                Severity::Error => !entry.statement.is_empty(),
                Severity::Fatal | Severity::Other => false,
            };
            if !begins {
                self.counts.other_messages += u64::from(entry.severity == Severity::Log && !entry.user.is_empty());
                return;
            }
            self.make_room(handler);
            self.counts.sessions += 1;
        }
        if message == Message::Connected && !entry.has_start {
            // The session of this number is an earlier one with the same process ID, which has ended.
            return self.leave(entry.session, handler);
        }
        if line > 0 && self.open.get(&entry.session).is_some_and(|session| line <= session.last_line) {
            self.counts.repeated += 1;
            return;
        }
        let at_us = self.time(entry.at_us);
        let number = self.counts.sessions;
        let session = self.open.entry(entry.session).or_insert_with(|| Session { number, ..Session::default() });
        (session.last_line, session.last_us) = (line, at_us);
        match entry.severity {
            Severity::Log => self.logged(entry, &message, at_us, handler),
            Severity::Error => self.failed(entry, at_us, handler),
            Severity::Fatal => {
                self.failed(entry, at_us, handler);
                self.open.remove(&entry.session);
            }
            Severity::Other => {}
        }
    }

    /// Ends the statements whose end the log does not contain.
    pub fn finish(&mut self, handler: &mut impl Handler) {
        let mut open: Vec<Session> = self.open.drain().map(|(_, session)| session).collect();
        open.sort_by_key(|session| session.number);
        for mut session in open {
            self.counts.end(&mut session, handler);
        }
    }

    /// Returns the corrected time of an entry. Corrected times never go back by more than `JUMP_US`.
    fn time(&mut self, at_us: i64) -> i64 {
        let mut time = at_us + self.shift_us;
        if time < self.latest_us - JUMP_US {
            self.counts.jumps += 1;
            self.shift_us += self.latest_us - time;
            time = self.latest_us;
        }
        self.latest_us = self.latest_us.max(time);
        time
    }

    /// Forgets the half of the sessions that have been idle longest, if there are too many.
    fn make_room(&mut self, handler: &mut impl Handler) {
        if self.open.len() < MAX_SESSIONS {
            return;
        }
        let mut times: Vec<i64> = self.open.values().map(|session| session.last_us).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        let counts = &mut self.counts;
        self.open.retain(|_, session| {
            let stays = session.last_us > median;
            if !stays {
                counts.end(session, handler);
            }
            stays
        });
    }

    fn logged(&mut self, entry: &Entry, message: &Message, at_us: i64, handler: &mut impl Handler) {
        let Self { open, counts, .. } = self;
        let Some(session) = open.get_mut(&entry.session) else { return };
        match *message {
            Message::Statement { text, duration_us } => {
                counts.end(session, handler);
                session.bound = None;
                let begun_us = at_us - duration_us.unwrap_or(0) as i64;
                session.begin(entry, begun_us, handler.analyse(text), None, &mut counts.transactions);
                counts.timed(session, duration_us, handler);
            }
            Message::Prepared { is_bind, is_named, duration_us } => {
                if session.pending.is_some() {
                    counts.end(session, handler);
                }
                // The Parse of a named statement is ignored, because the statement may run much later or several times.
                if !is_bind && is_named {
                    return;
                }
                let begun_us = at_us - duration_us as i64;
                let bound = session.bound.get_or_insert((begun_us, 0, Vec::new()));
                bound.1 += duration_us;
                if let Some(list) = parameters(&entry.detail) {
                    list.clone_into(&mut bound.2);
                }
            }
            Message::Execute { name, text, duration_us, fetches } => {
                counts.end(session, handler);
                let (begun_us, before_us, of_bind) =
                    session.bound.take().unwrap_or((at_us - duration_us.unwrap_or(0) as i64, 0, Vec::new()));
                session.begin(entry, begun_us, handler.analyse(text), Some(name), &mut counts.transactions);
                if let Some(pending) = &mut session.pending {
                    pending.fetches = fetches;
                    pending.parameters = Parameters::Logged(parameters(&entry.detail).map_or(of_bind, <[u8]>::to_vec));
                    pending.duration_us = (before_us > 0).then_some(before_us);
                }
                counts.timed(session, duration_us, handler);
            }
            Message::Duration(duration_us) => {
                counts.durations_alone += u64::from(session.pending.is_none());
                counts.timed(session, Some(duration_us), handler);
            }
            Message::Disconnected => self.leave(entry.session, handler),
            Message::Connected => {}
            Message::Other => counts.other_messages += 1,
        }
    }

    fn leave(&mut self, session: u64, handler: &mut impl Handler) {
        if let Some(mut session) = self.open.remove(&session) {
            self.counts.end(&mut session, handler);
        }
    }

    /// Processes an error, which ends the statement. Without `log_statement`, only the error contains the statement.
    fn failed(&mut self, entry: &Entry, at_us: i64, handler: &mut impl Handler) {
        let Self { open, counts, .. } = self;
        let Some(session) = open.get_mut(&entry.session) else { return };
        let is_pending = session.pending.is_some();
        if !is_pending && !entry.statement.is_empty() && entry.severity == Severity::Error {
            let list = parameters(&entry.context);
            let bound = session.bound.take();
            // Without a Bind or parameters, the protocol of the statement is unknown. The simple protocol is assumed.
            let name: Option<&[u8]> = (list.is_some() || bound.is_some()).then_some(b"");
            session.begin(entry, at_us, handler.analyse(&entry.statement), name, &mut counts.transactions);
            if let (Some(pending), Some(list)) =
                (&mut session.pending, list.or(bound.as_ref().map(|bound| &bound.2[..])))
            {
                pending.parameters = Parameters::Logged(list.to_vec());
            }
        }
        session.bound = None;
        if let Some(pending) = &mut session.pending {
            let unknown: &[u8] = b"XXXXX";
            let code = if entry.sqlstate.is_empty() { unknown } else { &entry.sqlstate };
            code.clone_into(&mut pending.error);
            counts.errors += 1;
        }
        counts.end(session, handler);
    }
}

impl Session {
    /// Starts a statement, and a transaction if none is open.
    fn begin(
        &mut self,
        entry: &Entry,
        at_us: i64,
        analysis: Arc<Analysis>,
        prepared: Option<&[u8]>,
        transactions: &mut u64,
    ) {
        match &*entry.state {
            // The session is in a block whose beginning is not in this log.
            b"idle in transaction" | b"idle in transaction (aborted)" if !self.in_block => {
                (self.in_block, self.begun_before, self.transaction) = (true, true, 0);
            }
            b"idle" => (self.in_block, self.begun_before) = (false, false),
            _ => {}
        }
        // Statements of a pipeline share an implicit transaction until its Sync.
        let shares = prepared.is_some()
            && entry.transaction != 0
            && entry.transaction == self.virtual_transaction
            && analysis.control == Control::None;
        if self.transaction == 0 || !self.in_block && !shares {
            *transactions += 1;
            self.transaction = *transactions;
        }
        let names = &*self.names;
        if names.user != *entry.user || names.database != *entry.database || names.application != *entry.application {
            self.names = Arc::new(SessionNames {
                user: entry.user.to_vec(),
                database: entry.database.to_vec(),
                application: entry.application.to_vec(),
            });
        }
        self.pending_virtual = entry.transaction;
        self.pending = Some(Executed {
            session: self.number,
            transaction: self.transaction,
            at_us,
            analysis,
            prepared: prepared.map(<[u8]>::to_vec),
            begun_before: self.begun_before,
            names: Arc::clone(&self.names),
            ..Executed::default()
        });
    }

    /// Updates the state of the transaction block after a statement.
    fn after(&mut self, executed: &Executed) {
        self.virtual_transaction = if executed.prepared.is_some() { self.pending_virtual } else { 0 };
        match executed.analysis.control {
            Control::Begins if executed.error.is_empty() => self.in_block = true,
            Control::Ends => {
                (self.in_block, self.begun_before, self.transaction, self.virtual_transaction) = (false, false, 0, 0);
            }
            Control::Chains => (self.in_block, self.begun_before, self.transaction) = (true, false, 0),
            Control::Begins | Control::None | Control::Restarts | Control::Autocommit(_) => {}
        }
    }
}

impl Counts {
    /// Adds a duration to the pending statement, and ends it.
    fn timed(&mut self, session: &mut Session, duration_us: Option<u64>, handler: &mut impl Handler) {
        let (Some(pending), Some(duration_us)) = (&mut session.pending, duration_us) else { return };
        pending.duration_us = Some(pending.duration_us.unwrap_or(0) + duration_us);
        self.end(session, handler);
    }

    /// Ends the pending statement, if there is one.
    fn end(&mut self, session: &mut Session, handler: &mut impl Handler) {
        let Some(executed) = session.pending.take() else { return };
        session.after(&executed);
        self.statements += 1;
        self.with_duration += u64::from(executed.duration_us.is_some());
        handler.take(executed);
    }
}
