//! Replays a capture of production work.
//!
//! Each client replays the recorded sessions that were assigned to it. The client replays one session after the other,
//! each on a new connection. Transactions stay whole, and the statements of a session keep their order. The mode
//! determines when a transaction starts. A client that is late starts at once, and its response time counts from the
//! scheduled start.

mod dialogue;
pub mod keys;
mod mysql;
mod postgres;
mod replayer;
pub mod tape;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::engines::{self, Poll};
use super::outcome::Outcome;
use super::plan::{Engine, Plan, Schedule, Stop};
use super::{Control, Kind, work};
use crate::wire::{Connected, mysql::Mysql, postgres::Postgres};
use crate::{Error, Result};
use keys::{Keys, StatementKeys};
use mysql::MysqlDialogue;
use pgbench_script::CommandPosition;
use postgres::PostgresDialogue;
use replayer::{ReplayContext, Replayer};
use tape::{Statement, Tape, flag};

/// The `work` of a drive plan that replays a capture.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The file that contains the statements, as a tape.
    pub tape: PathBuf,
    /// The part of the tape that each client replays, as a range of bytes. Clients without a part do nothing.
    pub clients: Vec<Range<u64>>,
    pub kinds: Vec<TransactionKind>,
    pub mode: Mode,
    /// Factor by which the replay is faster than the recording.
    pub speed: f64,
    /// Number of recorded transactions per second. If the plan has a rate, the speed of the replay is the plan's rate
    /// divided by this rate.
    pub rate: f64,
    /// Number of slots for generated keys. A key has a slot if a later statement contains it.
    #[serde(default)]
    pub keys: usize,
}

/// A kind of transaction, which is counted and timed separately.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionKind {
    pub name: String,
    /// Templates of the statements of this kind of transaction.
    pub statements: Vec<String>,
}

/// A mode of replay, which determines when transactions and their statements start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Transactions start at their recorded times.
    Schedule,
    /// Transactions and statements start after the recorded pauses of their session.
    Think,
    /// Transactions start at their recorded times, and their statements one directly after the other.
    Rate,
    /// Each transaction starts directly after the previous transaction of its session.
    Fast,
}

/// Counts of all clients since the start.
#[derive(Debug, Default)]
pub struct Figures {
    pub statements: AtomicU64,
    /// Rows that statements returned or changed.
    pub rows: AtomicU64,
    /// Statements that failed both in the recording and in the replay.
    pub failed_again: AtomicU64,
    /// Statements that failed in the recording but succeeded in the replay.
    pub failed_only_then: AtomicU64,
    /// Statements that were skipped because an earlier statement of their transaction failed.
    pub skipped: AtomicU64,
    /// Values that were replaced with keys that the server generated in this replay.
    pub keys: AtomicU64,
    /// Values that were sent as recorded, because the server had not yet generated their keys.
    pub keys_missing: AtomicU64,
}

impl Capture {
    /// Replays the capture.
    ///
    /// # Errors
    /// Input: plan and tape do not match, or the engine cannot replay captures. Failure: the server cannot be reached.
    pub fn drive(&self, plan: &Plan, control: &Control, poll: Poll) -> Result<Outcome> {
        if self.clients.len() > plan.clients {
            let cause = format!("{} clients cannot replay {} simultaneous sessions", plan.clients, self.clients.len());
            return Err(Error::input("replay of a capture", cause));
        }
        let speed = match plan.schedule {
            Schedule::Open { rate, .. } if self.mode == Mode::Rate => rate / self.rate,
            _ => self.speed,
        };
        if !(speed.is_finite() && speed > 0.0) {
            return Err(Error::input("replay of a capture", format!("{speed} is not a valid speed")));
        }
        let tape = Tape::open(&self.tape)
            .map_err(|error| Error::failure(self.tape.display().to_string(), format!("cannot be read: {error}")))?;
        let kinds = self.checked_kinds(&tape)?;
        let keys = Keys::new(self.keys).map_err(|error| {
            let folder = std::env::temp_dir();
            Error::failure(folder.display().to_string(), format!("cannot contain the keys of the replay: {error}"))
                .hint("free disk space, or set TMPDIR to a directory with more free space")
        })?;
        let due = plan.schedule.is_open().then(|| self.due(plan, &tape, speed));
        // The plan's own schedule is not used, because the tape contains the times of the transactions.
        let plan = Plan { schedule: Schedule::Closed { think_time_s: 0.0 }, ..plan.clone() };
        let (figures, every) = (Figures::default(), self.templates());
        let replay = ReplayContext { mode: self.mode, speed, templates: &every, keys: &keys, figures: &figures };
        let part =
            |client: usize| self.clients.get(client).and_then(|range| tape.part(range.clone())).unwrap_or_default();
        let mut outcome = work(&plan, control, plan.threads, &kinds, |orders| match &plan.engine {
            Engine::Postgres { connection, io, .. } => {
                let client = |client, _: &Connected<Postgres>| {
                    Replayer::new(client, PostgresDialogue::default(), part(client), &replay)
                };
                engines::run_server(orders, connection, *io, true, client, poll)
            }
            Engine::Mysql { connection, io, .. } => {
                let client = |client, session: &Connected<Mysql>| {
                    let dialogue = MysqlDialogue::new(session.state.caches_columns());
                    Replayer::new(client, dialogue, part(client), &replay)
                };
                engines::run_server(orders, connection, *io, true, client, poll)
            }
            _ => Err(Error::input("replay of a capture", "needs a server of PostgreSQL, MariaDB or MySQL")),
        })?;
        outcome.summary.due = due;
        let counts = [
            ("capture_statements", &figures.statements),
            ("capture_rows", &figures.rows),
            ("capture_failed_again", &figures.failed_again),
            ("capture_failed_only_then", &figures.failed_only_then),
            ("capture_skipped", &figures.skipped),
            ("capture_keys", &figures.keys),
            ("capture_keys_missing", &figures.keys_missing),
        ];
        outcome.summary.figures.extend(counts.map(|(name, count)| (name.to_owned(), count.load(Relaxed) as f64)));
        Ok(outcome)
    }

    /// Returns the kinds of transactions. Also checks that every statement on the tape belongs to one of them and is
    /// not damaged.
    fn checked_kinds(&self, tape: &Tape) -> Result<Vec<Kind>> {
        let kinds: Vec<Kind> = self.kinds.iter().map(kind).collect();
        let templates = self.templates().len();
        let damaged = || Error::input(self.tape.display().to_string(), "does not fit the plan of the replay");
        for range in &self.clients {
            let mut rest = tape.part(range.clone()).ok_or_else(damaged)?;
            while !rest.is_empty() {
                let statement = Statement::read(&mut rest).ok_or_else(damaged)?;
                let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
                let fits = (statement.kind as usize) < kinds.len() && (statement.template as usize) < templates;
                let text = (!statement.has(flag::EXTENDED)).then_some(statement.text);
                let fits_keys = !statement.has(flag::KEYS)
                    || StatementKeys::read(statement.keys)
                        .is_some_and(|keys| keys.fits(self.keys, text, statement.parameters));
                if !fits || !fits_keys || !is_text(statement.name) || !is_text(statement.text) {
                    return Err(damaged());
                }
            }
        }
        Ok(kinds)
    }

    /// Returns the templates of all kinds of transactions, each with the index of its kind. The templates are in the
    /// order of the summary.
    fn templates(&self) -> Vec<(usize, &str)> {
        let each = self.kinds.iter().enumerate();
        each.flat_map(|(number, kind)| kind.statements.iter().map(move |text| (number, text.as_str()))).collect()
    }

    /// Counts the transactions whose scheduled start is inside the window.
    fn due(&self, plan: &Plan, tape: &Tape, speed: f64) -> u64 {
        let window_ns = match plan.stop {
            Stop::DurationS(seconds) => seconds * 1e9,
            Stop::Transactions(_) => f64::INFINITY,
        };
        let begun = |range: &Range<u64>| {
            let mut rest = tape.part(range.clone()).unwrap_or_default();
            let starts = std::iter::from_fn(|| Statement::read(&mut rest)).filter(|one| one.has(flag::BEGINS));
            starts.filter(|one| one.at_ns as f64 / speed < window_ns).count() as u64
        };
        self.clients.iter().map(begun).sum()
    }
}

fn kind(of: &TransactionKind) -> Kind {
    let position = |(number, text): (usize, &String)| CommandPosition {
        line: number as u32 + 1,
        command: number as u32 + 1,
        text: text.clone(),
    };
    Kind {
        name: of.name.clone(),
        weight: 1,
        statements: of.statements.len(),
        positions: of.statements.iter().enumerate().map(position).collect(),
    }
}

#[cfg(test)]
mod tests;
