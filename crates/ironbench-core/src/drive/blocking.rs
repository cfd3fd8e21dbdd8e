//! The client of a blocking engine (a library or driver).
//! Calls return only when their work is done, so each client has its own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::control::{Control, Phase};
use super::jobs::{LAG_QUEUE, Next};
use super::pace::{Pace, SharedSchedule};
use super::plan::OnError;
use super::script::{Action, CONNECTION_LOST, SCRIPT_ERROR, ScriptClient};
use super::thread_results::{Scheduled, UnfinishedWork};
use super::threads::{DRAIN_TIMEOUT_NS, STOP_TIMEOUT_NS, Start, Worker};
use super::transaction_log::Lines;
use crate::measure::clock::{self, MILLISECOND, NEVER};
use crate::measure::{Recorder, Tally};
use crate::wire::library::{INTERRUPTED, Library, Parameter, StatementError};
use pgbench_script::{Given, ResultUse, Slot, Sql, Value, Variables};

/// Maximum sleep of a thread before it checks again whether to stop.
const CHECK_NS: u64 = 50 * MILLISECOND;

/// Time limits for calls that have not returned when the trial is over.
#[derive(Debug, Default)]
pub struct GiveUpTimer {
    stopped_at: Option<u64>,
    closed_at: Option<u64>,
    give_up: Arc<AtomicBool>,
}

impl GiveUpTimer {
    /// A flag that is set when calls must be interrupted.
    pub fn give_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.give_up)
    }

    /// Sets the flag when the time limit has passed. Must be called a few times per second.
    pub fn check(&mut self, control: &Control, now: u64) {
        if control.is_stopped() {
            self.stopped_at.get_or_insert(now);
        }
        if control.phase() == Phase::Drain {
            self.closed_at.get_or_insert(now);
        }
        let over = |since: Option<u64>, patience_ns| since.is_some_and(|since| now >= since + patience_ns);
        if over(self.stopped_at, STOP_TIMEOUT_NS) || over(self.closed_at, DRAIN_TIMEOUT_NS) {
            self.give_up.store(true, Relaxed);
        }
    }
}

/// A client of a blocking engine.
pub struct BlockingLoop<'a, C> {
    engine: C,
    script: ScriptClient<'a>,
    give_up: &'a AtomicBool,
}

impl<'a, C> BlockingLoop<'a, C> {
    pub fn new(engine: C, script: ScriptClient<'a>, give_up: &'a AtomicBool) -> Self {
        Self { engine, script, give_up }
    }
}

impl<C: Library> Worker for BlockingLoop<'_, C> {
    fn io(&self) -> &'static str {
        self.engine.io()
    }

    fn blocks_in_calls(&self) -> bool {
        true
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork {
        let Self { engine, script, give_up } = self;
        let waits_for_jobs = script.job_queue().is_some();
        engine.within(|engine| {
            let (left, in_progress, scheduled, log) = (u64::MAX, None, Scheduled::default(), start.log_lines());
            BlockingRun {
                engine,
                script,
                give_up,
                start,
                recorder,
                waits_for_jobs,
                left,
                in_progress,
                scheduled,
                lost: false,
                log,
            }
            .run()
        })
    }
}

/// State of a client while it runs.
struct BlockingRun<'a, 'r, 's, C> {
    engine: &'s mut C,
    script: &'s mut ScriptClient<'a>,
    give_up: &'a AtomicBool,
    start: &'s Start<'s>,
    recorder: &'s mut Recorder<'r>,
    /// Whether the client waits for jobs instead of following the schedule of the plan.
    waits_for_jobs: bool,
    left: u64,
    /// The transaction in progress when the window closed.
    in_progress: Option<InProgress>,
    scheduled: Scheduled,
    /// Whether the client has lost its connection. The other clients continue.
    lost: bool,
    log: Option<Lines<'s>>,
}

/// A transaction that was unfinished at the end of the window.
struct InProgress {
    intended: u64,
    begun: u64,
}

/// The result of one attempt at a transaction.
enum Attempt {
    Succeeded,
    Failed,
    Retry,
    /// The trial ended during the attempt, which was rolled back.
    Unfinished,
    /// The attempt lost its connection. The transaction counts as failed.
    Lost,
}

impl<C: Library> BlockingRun<'_, '_, '_, C> {
    fn run(mut self) -> UnfinishedWork {
        self.engine.sleep_until(self.start.origin);
        let mut now = clock::now();
        self.check_window(now);
        // A transaction that was taken from the schedule, but could not start before the window closed.
        let mut taken = None;
        while self.left > 0 && !self.recorder.is_closed() {
            let Some(intended) = self.next_start(now) else { break };
            now = clock::now();
            self.check_window(now);
            if self.recorder.is_closed() {
                taken = Some(intended);
                break;
            }
            self.left -= 1;
            self.scheduled.in_time += 1;
            now = self.transaction(intended, now);
        }
        if self.lost && !self.recorder.is_closed() {
            self.start.client_lost();
        }
        self.recorder.close(now);
        let mut ended = UnfinishedWork { abandoned: u64::from(self.lost), ..UnfinishedWork::default() };
        if let Some(InProgress { intended, begun }) = self.in_progress {
            ended.unfinished = 1;
            ended.unfinished_ns = self.recorder.inside_window(begun);
            self.recorder.in_flight(intended, begun);
        }
        if !self.waits_for_jobs {
            if let Pace::Open(schedule) = self.start.pace {
                self.scheduled.begun = self.scheduled.in_time + self.drain(schedule, taken);
                ended.scheduled = Some(self.scheduled);
            }
            self.start.client_ended();
        }
        ended
    }

    /// Runs the transactions that were due inside the window but did not start in it. Called after the window has
    /// closed. Ends when the trial stops waiting for them. Returns how many transactions it ran.
    fn drain(&mut self, schedule: &SharedSchedule, mut taken: Option<u64>) -> u64 {
        let end = self.recorder.window_end();
        let mut begun = 0;
        while self.left > 0 && !self.give_up.load(Relaxed) {
            let next = taken.take().or_else(|| schedule.take(end));
            let Some(due) = next.filter(|due| *due < end) else { break };
            begun += 1;
            self.transaction(due, clock::now());
        }
        begun
    }

    /// Waits for the start of the next transaction. Returns its scheduled start, or None if the trial is over.
    fn next_start(&mut self, now: u64) -> Option<u64> {
        if self.waits_for_jobs {
            return self.next_job();
        }
        let (due, free) = match self.start.pace {
            Pace::Closed { think_ns: 0 } => return Some(now),
            Pace::Closed { think_ns } => (now + think_ns, true),
            Pace::ByRole => (now + self.script.rest_ns(), true),
            Pace::Varied { think_ns, .. } => {
                let begin = self.start.pace.earliest_start(self.start.rank(0), now + think_ns);
                if begin == now {
                    return Some(now);
                }
                (begin, true)
            }
            Pace::Open(schedule) => {
                let due = schedule.take(NEVER).unwrap_or(NEVER);
                (due, due > now)
            }
        };
        let woken = self.sleep_until(due);
        if free && woken {
            self.recorder.record_lateness(due, clock::now());
        }
        let closed_before_due = !woken && due >= self.recorder.window_end();
        let think = !self.start.pace.is_open();
        if closed_before_due { None } else { Some(if think { clock::now() } else { due }) }
    }

    /// Waits for a job. Returns the time at which the job was due, or None if the trial is over.
    fn next_job(&mut self) -> Option<u64> {
        while self.start.has_active_clients() {
            let now = clock::now();
            match self.script.claim(now) {
                Next::Job { due, .. } => {
                    if self.script.job_queue() == Some(LAG_QUEUE) {
                        self.recorder.record_wait(due, now);
                    }
                    return Some(due);
                }
                Next::NotBefore(instant) if !self.sleep_until(instant.min(now + CHECK_NS)) => return None,
                Next::NotBefore(_) => {}
                Next::Over => return None,
            }
        }
        None
    }

    /// Sleeps until `instant`. Returns false if the window closed before that.
    fn sleep_until(&mut self, instant: u64) -> bool {
        loop {
            let now = clock::now();
            self.check_window(now);
            if self.recorder.is_closed() {
                return false;
            }
            if now >= instant {
                return true;
            }
            self.engine.sleep_until(instant.min(now + CHECK_NS).min(self.recorder.boundary()));
        }
    }

    fn check_window(&mut self, now: u64) {
        if now >= self.recorder.boundary() {
            self.pass_time(now, false);
        }
        if self.start.must_end() {
            self.recorder.close(now);
        }
    }

    /// Notes that the window has opened or closed. `inside` is true if a transaction is in progress. A transaction
    /// during which the window opens counts.
    #[cold]
    fn pass_time(&mut self, now: u64, inside: bool) {
        let warming_up = self.recorder.is_warming_up();
        self.recorder.pass_time(now);
        if warming_up && !self.recorder.is_warming_up() && !self.waits_for_jobs {
            self.left = self.start.transactions_per_client.saturating_sub(u64::from(inside));
        }
    }

    /// Runs one transaction, including its retries. Returns the time at which it ended.
    fn transaction(&mut self, intended: u64, begun: u64) -> u64 {
        self.script.begin();
        let well = loop {
            match self.attempt() {
                Attempt::Succeeded => break true,
                Attempt::Failed => break false,
                Attempt::Lost => {
                    (self.left, self.lost) = (0, true);
                    break false;
                }
                Attempt::Retry => {}
                Attempt::Unfinished => {
                    let (now, drains) = (clock::now(), self.recorder.is_closed());
                    self.check_window(now);
                    self.recorder.censored(intended, now);
                    if !drains {
                        self.in_progress = Some(InProgress { intended, begun });
                    }
                    return now;
                }
            }
        };
        let now = clock::now();
        if now >= self.recorder.boundary() {
            self.pass_time(now, true);
            self.in_progress = self.recorder.is_closed().then_some(InProgress { intended, begun });
        }
        let ending = self.script.count_end(well, &mut self.recorder.tally);
        if let (Some(log), true) = (&mut self.log, self.recorder.measures(begun))
            && let Err(error) = log.add(0, ending, intended, begun, now)
        {
            self.start.abort.abort(error.to_string());
            self.log = None;
        }
        if well {
            self.recorder.complete(ending.kind, intended, begun, now);
            self.recorder.count_for(0, begun, now);
        } else {
            self.start.failed(&self.recorder.tally, now);
        }
        now
    }

    fn attempt(&mut self) -> Attempt {
        loop {
            match self.script.advance() {
                Action::Sql(sql) => {
                    let begun = self.start.plan.statements.then(clock::now);
                    let done = self.execute(sql);
                    if let Some(begun) = begun {
                        let command = self.script.command(self.script.command_index());
                        self.recorder.tally.record_reply_time(command, clock::now() - begun, done.is_err());
                    }
                    if let Err(trouble) = done {
                        return self.trouble(&trouble);
                    }
                }
                Action::Sleep(ns) => {
                    let due = clock::now() + ns;
                    while clock::now() < due && !self.give_up.load(Relaxed) {
                        self.engine.sleep_until(due.min(clock::now() + CHECK_NS));
                    }
                    if clock::now() < due {
                        self.roll_back();
                        return Attempt::Unfinished;
                    }
                }
                // Pipelines are ignored, because a library has no network round trips to save.
                Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {}
                Action::End if self.engine.in_transaction() => {
                    return self.script_error("the script ends inside a transaction block");
                }
                Action::End => return Attempt::Succeeded,
                Action::Fault(cause) => return self.script_error(&cause),
            }
        }
    }

    fn execute(&mut self, sql: &Sql) -> Result<(), StatementError> {
        let before = self.engine.in_transaction();
        let variables = &self.script.variables;
        let answer = self.engine.run(sql, |place| parameter(variables, sql.parameters[place]))?;
        let after = self.engine.in_transaction();
        self.recorder.tally.commits += u64::from(!after && (!before || !is_rollback(&sql.text)));
        let (ResultUse::Gset { prefix } | ResultUse::Aset { prefix }) = &sql.result_use else { return Ok(()) };
        if matches!(sql.result_use, ResultUse::Gset { .. }) && answer.rows != 1 {
            let message = format!("\\gset needs one row, but the engine returned {}", answer.rows);
            return Err(StatementError { class: SCRIPT_ERROR.into(), message, retryable: false, lasting: false });
        }
        for (name, value) in answer.gathered {
            if let Some(slot) = self.script.program.symbols.get(&format!("{prefix}{name}")) {
                self.script.variables.set_text(slot, value.unwrap_or_default().as_bytes());
            }
        }
        Ok(())
    }

    #[cold]
    fn trouble(&mut self, trouble: &StatementError) -> Attempt {
        if trouble.lasting {
            if self.may_lose_connection() {
                return self.connection_lost(trouble);
            }
            self.start.abort.abort(trouble.message.clone());
        }
        let retryable = trouble.retryable || self.script.retries_after(&trouble.class);
        if trouble.class == INTERRUPTED || retryable && self.start.must_end() {
            self.roll_back();
            return Attempt::Unfinished;
        }
        if trouble.class == SCRIPT_ERROR {
            return self.script_error(&trouble.message);
        }
        let (script, tally): (_, &mut Tally) = (&mut *self.script, &mut self.recorder.tally);
        let (at, cause) = (script.command_index(), format!("{} ({})", trouble.message, trouble.class));
        let repeat = retryable && script.retry(tally);
        let words = || script.error_message(at, &cause);
        if repeat {
            tally.error(&trouble.class, words);
        } else {
            tally.failure(script.kind(), &trouble.class, retryable, words);
        }
        self.roll_back();
        if repeat { Attempt::Retry } else { Attempt::Failed }
    }

    /// Whether the trial continues when this client loses its connection.
    fn may_lose_connection(&self) -> bool {
        self.engine.is_remote() && !self.waits_for_jobs && self.start.plan.on_error == OnError::Continue
    }

    #[cold]
    fn connection_lost(&mut self, trouble: &StatementError) -> Attempt {
        let (script, tally) = (&*self.script, &mut self.recorder.tally);
        let cause = format!("{} ({})", trouble.message, trouble.class);
        tally.failure(script.kind(), CONNECTION_LOST, true, || script.error_message(script.command_index(), &cause));
        tally.connections_lost += 1;
        self.start.losses.note(&cause);
        Attempt::Lost
    }

    #[cold]
    fn script_error(&mut self, cause: &str) -> Attempt {
        let (script, tally) = (&*self.script, &mut self.recorder.tally);
        tally
            .failure(script.kind(), SCRIPT_ERROR, false, || script.script_error_message(script.command_index(), cause));
        self.roll_back();
        Attempt::Failed
    }

    fn roll_back(&mut self) {
        if self.engine.in_transaction()
            && let Err(trouble) = self.engine.rollback()
        {
            self.start.abort.abort(format!("cannot roll back: {}", trouble.message));
        }
    }
}

fn is_rollback(sql: &str) -> bool {
    let word = sql.trim_start().get(..8).unwrap_or_default();
    word.eq_ignore_ascii_case("rollback")
}

fn parameter(variables: &Variables, slot: Slot) -> Parameter<'_> {
    match variables.held(slot) {
        None | Some(Given::Value(Value::Null)) => Parameter::Null,
        Some(Given::Value(Value::Integer(integer))) => Parameter::Integer(integer),
        Some(Given::Value(Value::Double(double))) => Parameter::Double(double),
        Some(Given::Value(Value::Boolean(boolean))) => Parameter::Integer(i64::from(boolean)),
        Some(Given::Text(text)) => std::str::from_utf8(text).map_or(Parameter::Null, Parameter::of_text),
    }
}
