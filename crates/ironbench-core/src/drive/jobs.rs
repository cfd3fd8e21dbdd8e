//! Sources of jobs, which choose the transactions of a trial instead of weights. A client has a role.
//! The role chooses the client's next script, sets its input variables, and is notified of the outcome.

use std::collections::BTreeMap;

use crate::Result;
use pgbench_script::{Program, Variables};

/// The queue whose waiting times are the lag of the source.
/// Waiting times in other queues only count as part of response times.
pub const LAGGING_LINE: usize = 0;

/// A source of jobs.
pub trait Jobs: Sync {
    /// Prefix of the source's metrics.
    fn name(&self) -> &'static str;

    /// Variables that the source sets, so that scripts need not define them.
    fn variables(&self) -> &'static [&'static str];

    /// Number of clients in addition to those of the plan, numbered after them.
    /// These clients wait for jobs and follow no schedule.
    fn waiting_clients(&self) -> usize;

    /// Whether the roles of the plan's clients say how long these clients rest between their jobs.
    /// The plan then needs a closed loop.
    fn paces(&self) -> bool {
        false
    }

    /// # Errors
    /// Input: the source cannot drive these scripts.
    fn check(&self, program: &Program) -> Result<()>;

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a>;

    /// Returns the source's own counts since the start, by name.
    /// Parts are merged by sum, or by maximum if the name ends in `_max`.
    fn figures(&self) -> BTreeMap<String, f64>;

    /// Name of the histogram of waiting times in `LAGGING_LINE`, from due to started; exists only if clients wait.
    fn lag(&self) -> String {
        format!("{}_lag", self.name())
    }

    /// Name of the metric for the mean number of jobs in `LAGGING_LINE` that were due and not started; exists only if
    /// clients wait.
    fn queue(&self) -> String {
        format!("{}_queue_mean", self.name())
    }
}

/// The role of one client.
pub trait Role {
    /// The queue in which the client waits for jobs, numbered from `LAGGING_LINE`.
    /// Returns None if the client follows the schedule of the plan and always has work.
    /// Clients of a queue do the same work.
    fn line(&self) -> Option<usize>;

    /// Returns how long the client rests from now until its next job, if roles pace their clients.
    /// Called before each job, the first one included.
    fn rest_ns(&mut self) -> u64 {
        0
    }

    /// Returns the next job, with its input variables set.
    fn next(&mut self, now: u64, variables: &mut Variables) -> Next;

    /// Called when the job has ended, with the variables as the script left them.
    /// Returns whether the job was rolled back on purpose.
    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run this script. `due` is the time at which the job became due, for clients that wait.
    Job { script: usize, due: u64 },
    /// The next job becomes due at this instant or later.
    NotBefore(u64),
    /// There will be no further jobs: the client ends.
    Over,
}
