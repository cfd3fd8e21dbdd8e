//! The summary of a trial: every result that is a single number or text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::jobs::Jobs;
use super::kind::Kind;
use super::plan::Plan;
use super::thread_results::ThreadResults;
use crate::measure::clients::{ClientWork, PerClient};
use crate::measure::cpu::CpuTime;
use crate::measure::tally::{Counts, ReplyTimes};
use crate::measure::{Histogram, Tally, clock};
use pgbench_script::CommandPosition;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Length of the measured window.
    pub elapsed_s: f64,
    pub warmup_s: f64,
    /// Transactions that succeeded inside the window, including those that started before it.
    pub transactions: u64,
    /// Number of `transactions` that were run by clients that follow the schedule. The other clients wait for jobs, so
    /// they have no target rate.
    #[serde(default)]
    pub scheduled: u64,
    /// Number of errors inside the window for each class. The class is the SQLSTATE, the engine's error name or
    /// ironbench's own class. Errors of retried attempts are included.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class of error.
    pub error_messages: BTreeMap<String, String>,
    /// Transactions that failed inside the window.
    pub failed: u64,
    /// Retries inside the window.
    pub retries: u64,
    /// Transactions that were retried at least once.
    pub retried: u64,
    /// Number of transactions scheduled inside the window, or None for a closed loop.
    #[serde(default)]
    pub due: Option<u64>,
    /// Transactions of an open loop that were due before the end of the window and had not started by then.
    pub not_started: u64,
    /// Transactions in progress at the end of the window.
    pub unfinished: u64,
    /// The time that `unfinished` transactions had taken inside the window, summed over all clients.
    pub unfinished_s: f64,
    /// Time from the due time of the earliest unfinished transaction to the end of the window. The transaction may or
    /// may not have started.
    #[serde(default)]
    pub longest_wait_s: f64,
    /// Number of transactions that were due before the end of the window and still unfinished when the trial stopped
    /// waiting. The response times include the time that each of them had waited by then.
    #[serde(default)]
    pub censored: u64,
    /// Number of `unfinished` transactions that had already run longer at the end of the window than 99% of the
    /// finished transactions.
    #[serde(default)]
    pub cut_off: u64,
    /// The time that `cut_off` transactions had taken inside the window, summed over all clients.
    #[serde(default)]
    pub cut_off_s: f64,
    /// Time before the window that was spent on transactions that finished inside the window. The response times of
    /// these transactions include this time.
    pub carried_s: f64,
    /// Number of commits since the sessions started, including warm-up and drain. This number can be compared with the
    /// server's own counter. A script of three statements outside a transaction block commits three times.
    pub commits: u64,
    /// Changes that a directory refused since the sessions started. The directory itself counts them as completed.
    #[serde(default)]
    pub refused_changes: u64,
    /// Transactions that succeeded since the sessions started, including warm-up and drain.
    pub completed: u64,
    /// Transactions in progress when the trial stopped waiting. The server may or may not have committed these
    /// transactions.
    pub server_commits_uncertain: u64,
    /// Connections that clients reopened inside the window. The field `reconnects_s` is the total time that clients
    /// waited for these connections.
    #[serde(default)]
    pub reconnects: u64,
    #[serde(default)]
    pub reconnects_s: f64,
    /// CPU time of the threads that reconnect. `client_cpu_s` includes this time.
    #[serde(default)]
    pub reconnects_cpu_s: f64,
    /// Number of connections that were lost since the sessions started, without ending the trial. A connection is lost
    /// if it breaks or if the server closes it.
    #[serde(default)]
    pub connections_lost: u64,
    /// Clients that ended before the end of the window because they lost their connection.
    #[serde(default)]
    pub clients_lost: u64,
    /// Why the first connection was lost. The reason is set whether or not the loss ended the trial. Empty if no
    /// connection was lost.
    #[serde(default)]
    pub loss_cause: String,
    /// How evenly the clients of a closed loop worked, or None if a schedule or a queue of jobs distributes the work.
    #[serde(default)]
    pub per_client: Option<PerClient>,
    pub scripts: Vec<ScriptSummary>,
    /// The statements inside the window, in the order of the scripts. Empty unless each statement is timed.
    pub statements: Vec<StatementSummary>,
    /// CPU time of the driving threads and of the threads that reconnect, inside the window.
    pub client_cpu_s: CpuSeconds,
    /// CPU time per transaction, or None if no transaction succeeded.
    pub client_cpu_per_transaction_s: Option<f64>,
    /// Mean time by which the drive loop was late at its own timers. The timers are for think time, sleeps and
    /// scheduled starts. 0 without timers.
    pub lateness_mean_s: f64,
    pub lateness_p99_s: f64,
    pub lateness_max_s: f64,
    /// Total time that replies waited in the drive loop. A reply waits while the loop handles other replies from the
    /// same wait.
    #[serde(default)]
    pub loop_wait_s: f64,
    /// Number of times that receiving had to be restarted because all receive buffers were in use.
    #[serde(default)]
    pub receive_rearms: u64,
    /// I/O interface of the clients: `io_uring`, `epoll`, `blocking`, `driver` or `null`.
    pub io: String,
    /// Whether the trial was stopped from outside before its end.
    pub cut_short: bool,
    /// Whether the trial ended early without being stopped from outside. `cause` is the reason.
    pub aborted: bool,
    pub cause: String,
    /// Whether the trial ended because a transaction failed in the first second. `cause` contains the place and the
    /// reason.
    pub stopped_on_error: bool,
    /// Start of the measured window.
    pub started_unix_s: f64,
    pub observer_cpu_s: f64,
    /// Counts of the source of jobs since the start, by name. Empty if weights choose the scripts.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    pub samples_dropped: u64,
    pub samples_missed: u64,
    pub observer_notes: Vec<String>,
    pub observer_backend_pids: Vec<i32>,
    /// Connections of the observers since the sessions started.
    #[serde(default)]
    pub observer_connections: u64,
    /// Number of transactions that the server committed for the observers. 0 if the protocol does not show commits.
    #[serde(default)]
    pub observer_commits: u64,
    /// Number of observers' statements that got no answer. The server may or may not have committed these statements.
    #[serde(default)]
    pub observer_commits_uncertain: u64,
    pub threads: usize,
    pub clients: usize,
    /// Number of clients that wait for jobs, in addition to `clients`.
    #[serde(default)]
    pub waiting_clients: usize,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CpuSeconds {
    pub user: f64,
    pub system: f64,
}

/// Counts of one script inside the window. The fields `completed` and `…_in_all` also cover warm-up and drain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptSummary {
    pub name: String,
    pub weight: u32,
    /// Number of SQL commands in the script.
    pub statements: usize,
    pub transactions: u64,
    pub failed: u64,
    pub retries: u64,
    pub retried: u64,
    /// Number of `transactions` that were rolled back on purpose.
    #[serde(default)]
    pub rolled_back: u64,
    /// Transactions that succeeded since the sessions started, including warm-up and drain.
    pub completed: u64,
    /// Number of `completed` transactions that were rolled back on purpose.
    #[serde(default)]
    pub rolled_back_in_all: u64,
    /// Transactions that failed since the sessions started.
    pub failed_in_all: u64,
    /// Why the first failed transaction failed: place, cause and command. Empty if no transaction failed.
    pub first_failure: String,
}

/// Times of one command of a script, measured from sending the command to receiving its reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatementSummary {
    pub script: String,
    /// Line in the script, counted from 1 like `command`.
    pub line: u32,
    pub command: u32,
    /// The command as written, on one line.
    pub text: String,
    pub count: u64,
    /// Replies that reported an error.
    pub failed: u64,
    pub mean_s: f64,
    /// Standard deviation of the times.
    pub stdev_s: f64,
}

/// Histograms of delays over all threads: the lateness of timers, and the time that jobs waited for a client.
pub(super) struct Delays {
    pub lateness: Histogram,
    pub lag: Histogram,
}

pub(super) fn of(
    plan: &Plan,
    jobs: Option<&dyn Jobs>,
    kinds: &[Kind],
    results: &ThreadResults,
    threads: usize,
    delays: &Delays,
) -> Summary {
    let mut measured = Tally::new(kinds.len());
    let mut total = Tally::new(kinds.len());
    let mut cpu = CpuTime::default();
    for recording in &results.recordings {
        measured.merge(&recording.measured);
        total.merge(&recording.total);
        cpu = cpu.plus(recording.cpu);
    }
    cpu = cpu.plus(measured.reconnects.cpu);
    let elapsed_ns = elapsed_ns(plan, results);
    let Counts { transactions, failed, retries, retried, unscheduled, .. } = measured.total();
    let cpu_s = clock::to_seconds(cpu.user_ns + cpu.system_ns);
    let each = || results.recordings.iter();
    let longest_wait_ns = each().map(|one| one.longest_wait_ns).fold(results.due.longest_wait_ns, u64::max);
    let (cut_off, cut_off_s) = cut_off(results);
    let mut summary = Summary {
        elapsed_s: clock::to_seconds(elapsed_ns),
        warmup_s: plan.warmup_s,
        transactions,
        scheduled: transactions - unscheduled,
        errors: measured.errors.clone(),
        // Messages from the warm-up are included, because they explain why nothing was measured.
        error_messages: total.messages.clone(),
        failed,
        retries,
        retried,
        due: results.due.in_window,
        not_started: results.unfinished.not_started,
        unfinished: results.unfinished.unfinished,
        unfinished_s: clock::to_seconds(results.unfinished.unfinished_ns),
        longest_wait_s: clock::to_seconds(longest_wait_ns),
        censored: results.due.never_started.count() + each().map(|one| one.censored.count()).sum::<u64>(),
        cut_off,
        cut_off_s,
        loop_wait_s: clock::to_seconds(each().map(|one| one.loop_wait_ns).sum()),
        receive_rearms: results.unfinished.receive_rearms,
        carried_s: clock::to_seconds(results.recordings.iter().map(|recording| recording.carried_ns).sum()),
        commits: total.commits,
        refused_changes: total.refused_changes,
        completed: total.total().transactions,
        server_commits_uncertain: results.unfinished.abandoned,
        reconnects: measured.reconnects.count,
        reconnects_s: clock::to_seconds(measured.reconnects.sum_ns),
        reconnects_cpu_s: clock::to_seconds(measured.reconnects.cpu.user_ns + measured.reconnects.cpu.system_ns),
        connections_lost: total.connections_lost,
        clients_lost: results.clients_lost as u64,
        loss_cause: results.loss_cause.clone(),
        per_client: per_client(plan, jobs, results),
        scripts: scripts(kinds, &measured, &total),
        statements: statements(kinds, &measured),
        client_cpu_s: CpuSeconds { user: clock::to_seconds(cpu.user_ns), system: clock::to_seconds(cpu.system_ns) },
        client_cpu_per_transaction_s: (transactions > 0).then(|| cpu_s / transactions as f64),
        lateness_mean_s: 0.0,
        lateness_p99_s: 0.0,
        lateness_max_s: 0.0,
        io: results.io.clone(),
        cut_short: results.cut_short,
        aborted: !results.cause.is_empty(),
        cause: results.cause.clone(),
        stopped_on_error: results.by_error,
        started_unix_s: clock::to_seconds(results.started_unix_ns),
        observer_cpu_s: results.samples.cpu_s,
        samples_dropped: results.samples.dropped,
        samples_missed: results.samples.missed,
        observer_notes: results.samples.notes.clone(),
        observer_backend_pids: results.samples.backend_pids.clone(),
        observer_connections: results.samples.own.connections,
        observer_commits: results.samples.own.commits,
        observer_commits_uncertain: results.samples.own.unanswered,
        threads,
        clients: plan.clients,
        waiting_clients: jobs.map_or(0, Jobs::waiting_clients),
        figures: jobs.map_or_else(|| measured.directory.figures(), |jobs| figures(jobs, &delays.lag, elapsed_ns)),
    };
    summary.set_lateness(&delays.lateness);
    summary
}

fn per_client(plan: &Plan, jobs: Option<&dyn Jobs>, results: &ThreadResults) -> Option<PerClient> {
    let shared = plan.schedule.is_open() || jobs.is_some_and(|jobs| jobs.waiting_clients() > 0);
    let works: Vec<ClientWork> = results.recordings.iter().flat_map(|one| one.clients.iter().copied()).collect();
    if shared { None } else { PerClient::of(&works) }
}

/// Returns the number and total time of the transactions that count as cut off. These transactions were in progress at
/// the end of the window, and had already taken longer than 99% of the finished ones. Shorter transactions are not
/// counted, because some transactions are in progress at any instant.
fn cut_off(results: &ThreadResults) -> (u64, f64) {
    let (mut service, mut in_flight) = (Histogram::new(), Histogram::new());
    for recording in &results.recordings {
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

/// Returns the length of the window. In turns, this is the mean time that a client spent on measured transactions and
/// on the think time after them. The throughput is then unbiased, even if slices begin and end in the middle of
/// transactions (see `measure::recorder::turns`).
fn elapsed_ns(plan: &Plan, results: &ThreadResults) -> u64 {
    let in_turns = results.recordings.iter().filter_map(|recording| recording.busy_ns);
    match in_turns.reduce(|a, b| a + b) {
        Some(busy_ns) => busy_ns / plan.clients as u64,
        None => results.recordings.iter().map(|recording| recording.elapsed_ns).max().unwrap_or(0),
    }
}

fn figures(jobs: &dyn Jobs, lag: &Histogram, elapsed_ns: u64) -> BTreeMap<String, f64> {
    let mut figures = jobs.figures();
    if jobs.waiting_clients() == 0 {
        return figures;
    }
    // Little's law: the mean queue length is the arrival rate times the mean waiting time. This equals the total
    // waiting time divided by the length of the window.
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
    let positions = kinds.iter().flat_map(|kind| kind.positions.iter().map(move |position| (kind, position)));
    let timed = positions.zip(&measured.reply_times).filter(|(_, times)| times.count > 0);
    let summary = |((kind, position), times): ((&Kind, &CommandPosition), &ReplyTimes)| StatementSummary {
        script: kind.name.clone(),
        line: position.line,
        command: position.command,
        text: position.text.clone(),
        count: times.count,
        failed: times.failed,
        mean_s: times.mean_s(),
        stdev_s: times.stdev_s(),
    };
    timed.map(summary).collect()
}
