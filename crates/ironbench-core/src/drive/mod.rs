//! The drive loop, which runs transactions against an engine. The loop is called once per trial. It takes a complete
//! plan and returns one result.
pub mod blocking;
pub mod capture;
pub mod control;
pub mod engines;
mod event_loop;
pub mod jobs;
mod kind;
pub mod ldap;
pub mod merge;
mod mysql;
mod null;
pub mod outcome;
mod pace;
mod parallel_connect;
pub mod plan;
mod postgres;
mod probe_client;
mod reconnector;
mod script;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod thread_results;
pub mod threads;
mod transaction;
mod transaction_log;
pub mod turns;
mod window_cpu;

pub use capture::Capture;
pub use control::Control;
pub use kind::Kind;
pub use outcome::Outcome;
pub use probe_client::ProbeClient;
pub use transaction::{Ending, Step, Transaction};

use crate::drive::blocking::GiveUpTimer;
use crate::drive::jobs::Jobs;
use crate::drive::thread_results::ThreadResults;
use crate::drive::threads::DriveContext;
use crate::measure::curve::Curve;
use crate::wire::library::Library;
use crate::{Error, Result};
use pgbench_script::{Dialect, Program, Source, SqlMode};
use plan::{Engine, Plan, Protocol, Schedule, Stop};
use std::sync::atomic::AtomicUsize;

/// Maximum number of clients of a trial.
const MAX_CLIENTS: usize = 10_000;

/// Runs one trial. Several threads may call this function at once, each with its own plan and control.
///
/// `jobs` chooses the transactions. Without `jobs`, they are chosen by the scripts' weights. `poll` is called at least
/// every 50 ms from the calling thread and returns whether to continue. The `control` can also stop the trial.
///
/// # Errors
/// Input: the plan or a script cannot be used, or the server refuses the user. Failure: the engine cannot be reached at
/// the start. Errors after the start are reported in the outcome.
pub fn drive(
    plan: &Plan,
    jobs: Option<&dyn Jobs>,
    control: &Control,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Outcome> {
    let program = compile(plan, jobs)?;
    let run = |context: &DriveContext| engines::run(context, &program, poll);
    begin(plan, jobs, control, threads(plan, jobs), &Kind::of_program(&program), run)
}

/// Runs one trial like [`drive`], over connections that the caller opens. `open` gets the program and the client's
/// number. The function is called in the client's thread.
///
/// # Errors
/// The errors of [`drive`] and of `open`.
pub fn drive_with<C: Library>(
    plan: &Plan,
    jobs: Option<&dyn Jobs>,
    control: &Control,
    open: impl Fn(&Program, usize) -> Result<C> + Sync,
    give_up_timer: GiveUpTimer,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Outcome> {
    let program = compile(plan, jobs)?;
    let open = |client| open(&program, client);
    let run = |context: &DriveContext| engines::run_driver(context, &program, open, give_up_timer, poll);
    begin(plan, jobs, control, threads(plan, jobs), &Kind::of_program(&program), run)
}

/// Runs a trial of work other than scripts. The work is measured like a trial of scripts. `run` starts `threads`
/// workers, whose transactions are of the given `kinds`.
///
/// # Errors
/// The errors of [`drive`] and of `run`.
pub fn work(
    plan: &Plan,
    control: &Control,
    threads: usize,
    kinds: &[Kind],
    run: impl FnOnce(&DriveContext) -> Result<ThreadResults>,
) -> Result<Outcome> {
    begin(plan, None, control, threads, kinds, run)
}

fn begin(
    plan: &Plan,
    jobs: Option<&dyn Jobs>,
    control: &Control,
    threads: usize,
    kinds: &[Kind],
    run: impl FnOnce(&DriveContext) -> Result<ThreadResults>,
) -> Result<Outcome> {
    check(plan, clients(plan, jobs))?;
    if jobs.is_some_and(Jobs::paces) && !matches!(plan.schedule, Schedule::Closed { think_time_s: 0.0 }) {
        return Err(Error::input("schedule", "the source of jobs determines when transactions start"));
    }
    if control.turns.asked() {
        check_turns(plan, jobs)?;
    }
    let client_ranges = threads::client_ranges(clients(plan, jobs), threads);
    let context = DriveContext {
        plan,
        jobs,
        kinds: kinds.len(),
        client_ranges,
        control,
        active_clients: AtomicUsize::new(plan.clients),
    };
    let results = run(&context);
    control.turns.end();
    let results = results?;
    Ok(Outcome::new(plan, jobs, kinds, results, context.client_ranges.len()))
}

/// Returns the number of all clients: those of the plan and those that wait for jobs.
fn clients(plan: &Plan, jobs: Option<&dyn Jobs>) -> usize {
    plan.clients + jobs.map_or(0, |jobs| jobs.waiting_clients())
}

/// Returns the number of driving threads. A blocking engine needs one thread for each client.
fn threads(plan: &Plan, jobs: Option<&dyn Jobs>) -> usize {
    match plan.engine {
        Engine::Sqlite { .. } | Engine::Called { .. } => clients(plan, jobs),
        Engine::Postgres { .. } | Engine::Mysql { .. } | Engine::Ldap { .. } | Engine::Null { .. } => plan.threads,
    }
}

fn check(plan: &Plan, clients: usize) -> Result<()> {
    let bad = |subject: &str, cause: String| Err(Error::input(subject, cause));
    if plan.clients == 0 || clients > MAX_CLIENTS {
        return bad("clients", format!("{clients} is not between 1 and {MAX_CLIENTS}"));
    }
    if plan.threads == 0 {
        return bad("threads", "must be at least 1".to_owned());
    }
    let positive = |seconds: f64| seconds.is_finite() && seconds > 0.0;
    match plan.stop {
        Stop::DurationS(seconds) if !positive(seconds) => {
            return bad("duration", format!("{seconds} s is not a valid duration"));
        }
        Stop::Transactions(0) => return bad("transactions", "must be at least 1 per client".to_owned()),
        _ => {}
    }
    if let Some(part) = plan.part {
        if plan.work.is_some() || plan.log.is_some() {
            return bad(
                "drive plan",
                "only scripts can be divided among workers, and only without a transaction log".to_owned(),
            );
        }
        if part.number >= part.of || part.first_client + plan.clients > part.all_clients {
            return bad("drive plan", format!("part {} of {} does not exist", part.number, part.of));
        }
    }
    if let Some(log) = &plan.log {
        if plan.work.is_some() {
            return bad("transaction log", "the work has no scripts".to_owned());
        }
        if !(log.sampling_rate > 0.0 && log.sampling_rate <= 1.0) {
            return bad("sampling rate", format!("{} is not greater than 0 and at most 1", log.sampling_rate));
        }
    }
    match &plan.schedule {
        Schedule::Open { rate, .. } if !positive(*rate) => bad("rate", format!("{rate}/s is not greater than zero")),
        Schedule::ClosedCurve { pieces, .. } | Schedule::OpenCurve { pieces, .. } if Curve::new(pieces).is_none() => {
            bad("curve", "a segment has no duration, or a negative value".to_owned())
        }
        Schedule::Closed { think_time_s } | Schedule::ClosedCurve { think_time_s, .. }
            if !(think_time_s.is_finite() && *think_time_s >= 0.0) =>
        {
            bad("think time", format!("{think_time_s} s is not a valid think time"))
        }
        _ if !(plan.warmup_s.is_finite() && plan.warmup_s >= 0.0) => {
            bad("warm-up", format!("{} s is not a valid warm-up time", plan.warmup_s))
        }
        _ => Ok(()),
    }
}

/// Checks that the plan can be driven in turns. Turns need closed-loop clients in an event loop.
fn check_turns(plan: &Plan, jobs: Option<&dyn Jobs>) -> Result<()> {
    let cause = if !matches!(plan.schedule, Schedule::Closed { .. }) {
        "slices need a closed loop without a curve"
    } else if !matches!(plan.stop, Stop::DurationS(_)) {
        "slices need a duration, not a number of transactions"
    } else if jobs.is_some_and(Jobs::paces) || clients(plan, jobs) > plan.clients {
        "slices need clients that wait for nothing"
    } else if plan.work.is_some() || plan.part.is_some() || plan.log.is_some() {
        "slices need scripts in one process, without a transaction log"
    } else if matches!(plan.engine, Engine::Sqlite { .. } | Engine::Called { .. }) {
        "slices need a server"
    } else {
        return Ok(());
    };
    Err(Error::input("drive plan", cause.to_owned()))
}

fn compile(plan: &Plan, jobs: Option<&dyn Jobs>) -> Result<Program> {
    if plan.jobs.is_some() && jobs.is_none() {
        return Err(Error::input("drive plan", "the source of jobs is missing"));
    }
    let source = |script: &plan::ScriptSource| Source {
        name: script.name.clone(),
        text: script.text.clone(),
        weight: script.weight,
    };
    let sources: Vec<_> = plan.scripts.iter().map(source).collect();
    let mut variables = plan.variables.clone();
    let given = jobs.map_or(&[][..], |jobs| jobs.variables());
    variables.extend(given.iter().map(|&name| (name.to_owned(), String::new())));
    let dialect = match &plan.engine {
        Engine::Mysql { sql_mode, .. } | Engine::Called { mysql: true, sql_mode } => {
            Dialect::Mysql(SqlMode::of(sql_mode))
        }
        _ => Dialect::Postgres,
    };
    let program = Program::compile_for(dialect, &sources, &variables)?;
    if let Some(jobs) = jobs {
        jobs.check(&program)?;
    }
    match &plan.engine {
        Engine::Sqlite { .. } | Engine::Called { .. } => program.check_library()?,
        Engine::Postgres { protocol: Protocol::Simple, .. } => program.check_simple()?,
        Engine::Mysql { protocol: Protocol::Simple, .. } => program.check_mysql_simple()?,
        Engine::Mysql { .. } => program.check_mysql_prepared()?,
        Engine::Ldap { connection, .. } => drop(ldap::Operations::of(&program, &connection.base)?),
        Engine::Postgres { .. } | Engine::Null { .. } => {}
    }
    Ok(program)
}
