//! The loop that runs transactions against an engine, once per trial: a frozen plan goes in, one result comes out.
pub mod blocking;
pub mod control;
mod crew;
mod engines;
mod event_loop;
mod null;
mod opening;
pub mod outcome;
mod pace;
pub mod plan;
mod postgres;
mod script;
pub mod summary;
#[cfg(test)]
mod tests;
mod transaction;

pub use control::Control;
pub use outcome::Outcome;
pub use transaction::{Ending, Step, Transaction};

use crate::drive::crew::Orders;
use crate::script::{Program, Source};
use crate::{Error, Result};
use plan::{Engine, Plan, Protocol, Schedule, Stop};

/// Most clients of one trial.
const MOST_CLIENTS: usize = 10_000;

/// Runs one trial. May be called by several threads at once, each with its own plan and control. `poll` is called at
/// least every 50 ms from the calling thread and says whether to go on; so does `control`.
///
/// # Errors
/// Input: the plan or a script cannot be used, the server refuses the user. Failure: the engine cannot be reached at the
/// start. What happens after the start is no error but in the outcome.
pub fn drive(plan: &Plan, control: &Control, poll: &mut dyn FnMut() -> bool) -> Result<Outcome> {
    check(plan)?;
    let program = compile(plan)?;
    let orders =
        Orders { plan, kinds: program.scripts.len(), shares: crew::shares(plan.clients, threads(plan)), control };
    let haul = engines::run(&orders, &program, poll)?;
    Ok(Outcome::new(plan, &program, haul, orders.shares.len()))
}

/// Engines that block have a thread for every client.
fn threads(plan: &Plan) -> usize {
    match plan.engine {
        Engine::Sqlite { .. } => plan.clients,
        Engine::Postgres { .. } | Engine::Null { .. } => plan.threads,
    }
}

fn check(plan: &Plan) -> Result<()> {
    let bad = |subject: &str, cause: String| Err(Error::input(subject, cause));
    if plan.clients == 0 || plan.clients > MOST_CLIENTS {
        return bad("clients", format!("{} is not between 1 and {MOST_CLIENTS}", plan.clients));
    }
    if plan.threads == 0 {
        return bad("threads", "there must be at least one".to_owned());
    }
    let positive = |seconds: f64| seconds.is_finite() && seconds > 0.0;
    match plan.stop {
        Stop::DurationS(seconds) if !positive(seconds) => {
            return bad("duration", format!("{seconds} s is not a time to measure for"));
        }
        Stop::Transactions(0) => return bad("transactions", "there must be at least one per client".to_owned()),
        _ => {}
    }
    match plan.schedule {
        Schedule::Open { rate, .. } if !positive(rate) => bad("rate", format!("{rate}/s is not above zero")),
        Schedule::Closed { think_time_s } if !(think_time_s.is_finite() && think_time_s >= 0.0) => {
            bad("think time", format!("{think_time_s} s is not a time to think for"))
        }
        _ if !(plan.warmup_s.is_finite() && plan.warmup_s >= 0.0) => {
            bad("warm-up", format!("{} s is not a time to warm up for", plan.warmup_s))
        }
        _ => Ok(()),
    }
}

fn compile(plan: &Plan) -> Result<Program> {
    let source = |script: &plan::ScriptSource| Source {
        name: script.name.clone(),
        text: script.text.clone(),
        weight: script.weight,
    };
    let sources: Vec<_> = plan.scripts.iter().map(source).collect();
    let program = Program::compile(&sources, &plan.variables)?;
    if let Engine::Sqlite { .. } = plan.engine {
        program.check_library()?;
    }
    if let Engine::Postgres { protocol: Protocol::Simple, .. } = plan.engine {
        program.check_simple()?;
    }
    Ok(program)
}
