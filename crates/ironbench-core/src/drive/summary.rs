//! Everything of a trial that is one number or one text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::haul::Haul;
use super::jobs::Jobs;
use super::kind::Kind;
use super::plan::Plan;
use crate::measure::cpu::Cpu;
use crate::measure::tally::{Counts, Lap};
use crate::measure::{Histogram, Tally, clock};
use pgbench_script::Place;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the measured window.
    pub elapsed_s: f64,
    pub warmup_s: f64,
    /// Transactions that ended well inside the window, whenever they began.
    pub transactions: u64,
    /// Of those: by clients that the plan's schedule moves. Those that wait for work follow no rate.
    #[serde(default)]
    pub scheduled: u64,
    /// Errors inside the window by SQLSTATE, engine's name or class of ours; repeated attempts included.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class of error.
    pub error_messages: BTreeMap<String, String>,
    /// Transactions given up inside the window.
    pub failed: u64,
    /// Attempts inside the window that were repeated.
    pub retries: u64,
    /// Transactions that were repeated at least once.
    pub retried: u64,
    /// Open loop: transactions due inside the window, by the schedule.
    #[serde(default)]
    pub due: Option<u64>,
    /// Open loop: due before the end of the window and not begun at its end.
    pub not_started: u64,
    /// Begun and not done at the end of the window.
    pub unfinished: u64,
    /// The time they had taken inside the window, all clients together.
    pub unfinished_s: f64,
    /// How long the longest waiting of those had been due at the end of the window, of those not begun as well.
    #[serde(default)]
    pub longest_wait_s: f64,
    /// Due before the end of the window, and not done when the trial gave up waiting: response times contain how long they
    /// had waited.
    #[serde(default)]
    pub censored: u64,
    /// Of the unfinished: those that had taken longer at the end of the window than 99 % of all that ended,
    #[serde(default)]
    pub cut_off: u64,
    /// and the time they had taken inside the window, all clients together.
    #[serde(default)]
    pub cut_off_s: f64,
    /// Time before the window of transactions that ended inside it: their response times hold it.
    pub carried_s: f64,
    /// Commits of the engine since the sessions began, warm-up and drain included: to compare with its own counter. A
    /// script of three statements outside a transaction block commits three times.
    pub commits: u64,
    /// Changes that a directory refused, since the sessions began: it counts them as completed, too.
    #[serde(default)]
    pub refused_changes: u64,
    /// Transactions that ended well since the sessions began, warm-up and drain included.
    pub completed: u64,
    /// Transactions under way when the trial gave up waiting: the server may or may not have committed each.
    pub server_commits_uncertain: u64,
    /// Connections that clients opened anew inside the window, and how long they waited for them, all together.
    #[serde(default)]
    pub reconnects: u64,
    #[serde(default)]
    pub reconnects_s: f64,
    /// CPU time of the threads that connect anew; a part of `client_cpu_s`.
    #[serde(default)]
    pub reconnects_cpu_s: f64,
    /// Connections that broke or that the server ended, since the sessions began, in a trial that continued,
    #[serde(default)]
    pub connections_lost: u64,
    /// clients that ended because of that before the end of the window,
    #[serde(default)]
    pub clients_lost: u64,
    /// and why the first connection was lost, also where that ended the trial; empty if none was.
    #[serde(default)]
    pub loss_cause: String,
    pub scripts: Vec<ScriptSummary>,
    /// Inside the window, in the order written; empty unless statements are timed.
    pub statements: Vec<StatementSummary>,
    /// CPU time of the driving threads inside the window, and of those that connect anew.
    pub client_cpu_s: CpuSeconds,
    /// None when no transaction ended well.
    pub client_cpu_per_transaction_s: Option<f64>,
    /// How late our loop served its own timers (think time, sleeps, due transactions); 0 when it set none.
    pub lateness_mean_s: f64,
    pub lateness_p99_s: f64,
    pub lateness_max_s: f64,
    /// How long replies waited for the loop, which worked on others of the same wait, all together.
    #[serde(default)]
    pub loop_wait_s: f64,
    /// Times that receiving had to be started again because all receive buffers were in use.
    #[serde(default)]
    pub receive_rearms: u64,
    /// `io_uring`, `epoll`, `blocking`, `driver` or `null`.
    pub io: String,
    /// Somebody stopped the trial before its end.
    pub cut_short: bool,
    /// The trial ended by itself before its end, for this cause.
    pub aborted: bool,
    pub cause: String,
    /// A transaction failed in the first second, and that ended the trial: `cause` says where and why.
    pub stopped_on_error: bool,
    /// When the measured window began.
    pub started_unix_s: f64,
    pub observer_cpu_s: f64,
    /// What the source of jobs counted itself, by name, since the start; empty where weights choose.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    pub samples_dropped: u64,
    pub samples_missed: u64,
    pub observer_notes: Vec<String>,
    pub observer_backend_pids: Vec<i32>,
    /// Connections of the observers, since the sessions began.
    #[serde(default)]
    pub observer_connections: u64,
    /// Transactions that the server committed for them; 0 where the wire does not count them.
    #[serde(default)]
    pub observer_commits: u64,
    /// Their statements that were never answered: the server may or may not have committed each.
    #[serde(default)]
    pub observer_commits_uncertain: u64,
    pub threads: usize,
    pub clients: usize,
    /// Clients beyond those, which wait for work.
    #[serde(default)]
    pub waiting_clients: usize,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CpuSeconds {
    pub user: f64,
    pub system: f64,
}

/// Counts of one script, inside the window except `completed`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptSummary {
    pub name: String,
    pub weight: u32,
    /// SQL commands in its text.
    pub statements: usize,
    pub transactions: u64,
    pub failed: u64,
    pub retries: u64,
    pub retried: u64,
    /// Of the transactions: rolled back on purpose.
    #[serde(default)]
    pub rolled_back: u64,
    /// Ended well since the sessions began, warm-up and drain included.
    pub completed: u64,
    /// The same of those rolled back on purpose,
    #[serde(default)]
    pub rolled_back_in_all: u64,
    /// and of those given up.
    pub failed_in_all: u64,
    /// Why the first of those was given up: place, cause and command; empty without any.
    pub first_failure: String,
}

/// How long the answers to one command of a script took, from sending it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatementSummary {
    pub script: String,
    /// From 1, as the number of the command.
    pub line: u32,
    pub command: u32,
    /// As written, on one line.
    pub text: String,
    pub count: u64,
    /// Answers that were an error.
    pub failed: u64,
    pub mean_s: f64,
    /// Standard deviation.
    pub stdev_s: f64,
}

/// Of all threads: how late timers were served, and how long work waited for a client.
pub(super) struct Delays {
    pub lateness: Histogram,
    pub lag: Histogram,
}

pub(super) fn of(
    plan: &Plan,
    jobs: Option<&dyn Jobs>,
    kinds: &[Kind],
    haul: &Haul,
    threads: usize,
    delays: &Delays,
) -> Summary {
    let mut measured = Tally::new(kinds.len());
    let mut total = Tally::new(kinds.len());
    let mut cpu = Cpu::default();
    for recording in &haul.recordings {
        measured.merge(&recording.measured);
        total.merge(&recording.total);
        cpu = cpu.plus(recording.cpu);
    }
    cpu = cpu.plus(measured.reconnects.cpu);
    let elapsed_ns = elapsed_ns(plan, haul);
    let Counts { transactions, failed, retries, retried, unscheduled, .. } = measured.total();
    let cpu_s = clock::to_seconds(cpu.user_ns + cpu.system_ns);
    let each = || haul.recordings.iter();
    let longest_wait_ns = each().map(|one| one.longest_wait_ns).fold(haul.due.longest_wait_ns, u64::max);
    let (cut_off, cut_off_s) = cut_off(haul);
    let mut summary = Summary {
        elapsed_s: clock::to_seconds(elapsed_ns),
        warmup_s: plan.warmup_s,
        transactions,
        scheduled: transactions - unscheduled,
        errors: measured.errors.clone(),
        // Also those of the warm-up: they say why nothing was measured.
        error_messages: total.messages.clone(),
        failed,
        retries,
        retried,
        due: haul.due.in_window,
        not_started: haul.ended.not_started,
        unfinished: haul.ended.unfinished,
        unfinished_s: clock::to_seconds(haul.ended.unfinished_ns),
        longest_wait_s: clock::to_seconds(longest_wait_ns),
        censored: haul.due.never_begun.count() + each().map(|one| one.censored.count()).sum::<u64>(),
        cut_off,
        cut_off_s,
        loop_wait_s: clock::to_seconds(each().map(|one| one.loop_wait_ns).sum()),
        receive_rearms: haul.ended.receive_rearms,
        carried_s: clock::to_seconds(haul.recordings.iter().map(|recording| recording.carried_ns).sum()),
        commits: total.commits,
        refused_changes: total.refused_changes,
        completed: total.total().transactions,
        server_commits_uncertain: haul.ended.abandoned,
        reconnects: measured.reconnects.count,
        reconnects_s: clock::to_seconds(measured.reconnects.sum_ns),
        reconnects_cpu_s: clock::to_seconds(measured.reconnects.cpu.user_ns + measured.reconnects.cpu.system_ns),
        connections_lost: total.connections_lost,
        clients_lost: haul.clients_lost as u64,
        loss_cause: haul.loss_cause.clone(),
        scripts: scripts(kinds, &measured, &total),
        statements: statements(kinds, &measured),
        client_cpu_s: CpuSeconds { user: clock::to_seconds(cpu.user_ns), system: clock::to_seconds(cpu.system_ns) },
        client_cpu_per_transaction_s: (transactions > 0).then(|| cpu_s / transactions as f64),
        lateness_mean_s: 0.0,
        lateness_p99_s: 0.0,
        lateness_max_s: 0.0,
        io: haul.io.clone(),
        cut_short: haul.cut_short,
        aborted: !haul.cause.is_empty(),
        cause: haul.cause.clone(),
        stopped_on_error: haul.by_error,
        started_unix_s: clock::to_seconds(haul.started_unix_ns),
        observer_cpu_s: haul.samples.cpu_s,
        samples_dropped: haul.samples.dropped,
        samples_missed: haul.samples.missed,
        observer_notes: haul.samples.notes.clone(),
        observer_backend_pids: haul.samples.backend_pids.clone(),
        observer_connections: haul.samples.own.connections,
        observer_commits: haul.samples.own.commits,
        observer_commits_uncertain: haul.samples.own.unanswered,
        threads,
        clients: plan.clients,
        waiting_clients: jobs.map_or(0, Jobs::waiting_clients),
        figures: jobs.map_or_else(|| measured.directory.figures(), |jobs| figures(jobs, &delays.lag, elapsed_ns)),
    };
    summary.set_lateness(&delays.lateness);
    summary
}

/// Transactions under way at the end of the window that had already taken longer than 99 % of those that ended, and the time
/// they had taken. Others were only being served, as some are at any instant.
fn cut_off(haul: &Haul) -> (u64, f64) {
    let (mut service, mut in_flight) = (Histogram::new(), Histogram::new());
    for recording in &haul.recordings {
        recording.service.iter().for_each(|histogram| service.merge(histogram));
        in_flight.merge(&recording.in_flight);
    }
    let usual_s = if service.count() > 0 { service.quantile_s(0.99) } else { 0.0 };
    let longer = in_flight.buckets().into_iter().filter(|(lowest_s, ..)| *lowest_s > usual_s);
    longer.fold((0, 0.0), |(count, sum_s), (lowest_s, _, n)| (count + n, sum_s + lowest_s * n as f64))
}

impl Summary {
    pub(super) fn set_lateness(&mut self, lateness: &Histogram) {
        let none_is_zero = |value: f64| if value.is_nan() { 0.0 } else { value };
        self.lateness_mean_s = none_is_zero(lateness.mean_s());
        self.lateness_p99_s = none_is_zero(lateness.quantile_s(0.99));
        self.lateness_max_s = none_is_zero(lateness.max_s());
    }
}

/// In turns, the time that clients spent on measured transactions and thinking after them, per client: throughput is then
/// exact however the ends of slices cut the transactions (see `measure::recorder::turns`).
fn elapsed_ns(plan: &Plan, haul: &Haul) -> u64 {
    let in_turns = haul.recordings.iter().filter_map(|recording| recording.busy_ns);
    match in_turns.reduce(|a, b| a + b) {
        Some(busy_ns) => busy_ns / plan.clients as u64,
        None => haul.recordings.iter().map(|recording| recording.elapsed_ns).max().unwrap_or(0),
    }
}

fn figures(jobs: &dyn Jobs, lag: &Histogram, elapsed_ns: u64) -> BTreeMap<String, f64> {
    let mut figures = jobs.figures();
    // Little's law: as many wait as come in the time that one waits.
    let waited_s = if lag.count() > 0 { lag.mean_s() * lag.count() as f64 } else { 0.0 };
    figures.insert(jobs.queue(), waited_s / clock::to_seconds(elapsed_ns.max(1)));
    figures
}

fn scripts(kinds: &[Kind], measured: &Tally, total: &Tally) -> Vec<ScriptSummary> {
    let summary = |(number, kind): (usize, &Kind)| {
        let Counts { transactions, failed, retries, retried, rolled_back, .. } = measured.kinds[number];
        ScriptSummary {
            name: kind.name.clone(),
            weight: kind.weight,
            statements: kind.statements,
            transactions,
            failed,
            retries,
            retried,
            rolled_back,
            completed: total.kinds[number].transactions,
            rolled_back_in_all: total.kinds[number].rolled_back,
            failed_in_all: total.kinds[number].failed,
            first_failure: total.failures[number].clone().unwrap_or_default(),
        }
    };
    kinds.iter().enumerate().map(summary).collect()
}

fn statements(kinds: &[Kind], measured: &Tally) -> Vec<StatementSummary> {
    let places = kinds.iter().flat_map(|kind| kind.places.iter().map(move |place| (kind, place)));
    let timed = places.zip(&measured.laps).filter(|(_, lap)| lap.count > 0);
    let summary = |((kind, place), lap): ((&Kind, &Place), &Lap)| StatementSummary {
        script: kind.name.clone(),
        line: place.line,
        command: place.command,
        text: place.text.clone(),
        count: lap.count,
        failed: lap.failed,
        mean_s: lap.mean_s(),
        stdev_s: lap.stdev_s(),
    };
    timed.map(summary).collect()
}
