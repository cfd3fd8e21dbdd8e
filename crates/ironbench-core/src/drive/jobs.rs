//! Sources of jobs, which choose the transactions of a trial instead of weights. Each client has a role, which chooses
//! the client's next script, sets the script's input variables, and is notified when the job has ended.

use std::collections::BTreeMap;

use crate::Result;
use pgbench_script::{Program, Variables};

/// The queue whose waiting times are reported as the lag of the source. Waiting times in other queues count only as
/// part of response times.
pub const LAGGING_LINE: usize = 0;

/// A source of jobs.
pub trait Jobs: Sync {
    /// Returns the prefix of the source's metrics.
    fn name(&self) -> &'static str;

    /// Returns the variables that the source sets, so that scripts need not define them.
    fn variables(&self) -> &'static [&'static str];

    /// Returns the number of clients in addition to the plan's clients. They are numbered after the plan's clients.
    /// These clients wait for jobs and follow no schedule.
    fn waiting_clients(&self) -> usize;

    /// Whether the roles of the plan's clients determine how long these clients rest between their jobs. The plan must
    /// then be a closed loop.
    fn paces(&self) -> bool {
        false
    }

    /// Checks that the source can drive these scripts.
    ///
    /// # Errors
    /// Input: the source cannot drive these scripts.
    fn check(&self, program: &Program) -> Result<()>;

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a>;

    /// Returns the source's own counts since the start, by name. The counts of several parts are merged by sum, or by
    /// maximum if the name ends in `_max`.
    fn figures(&self) -> BTreeMap<String, f64>;

    /// Returns the name of the histogram of waiting times in `LAGGING_LINE`, from the due time of a job to its start.
    /// The histogram exists only if clients wait.
    fn lag(&self) -> String {
        format!("{}_lag", self.name())
    }

    /// Returns the name of the metric for the mean number of jobs in `LAGGING_LINE` that were due and not started. The
    /// metric exists only if clients wait.
    fn queue(&self) -> String {
        format!("{}_queue_mean", self.name())
    }
}

/// The role of one client.
pub trait Role {
    /// Returns the queue in which the client waits for jobs, numbered from `LAGGING_LINE`. Returns None if the client
    /// follows the schedule of the plan and always has work. All clients of a queue do the same work.
    fn line(&self) -> Option<usize>;

    /// Returns how long the client rests from now until its next job, if roles pace their clients. The loop calls this
    /// function before each job, including the first.
    fn rest_ns(&mut self) -> u64 {
        0
    }

    /// Returns the next job, with its input variables set.
    fn next(&mut self, now: u64, variables: &mut Variables) -> Next;

    /// Notes that the job has ended, with the variables as the script left them. Returns whether the job was rolled
    /// back on purpose.
    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The client runs this script. `due` is the time at which the job became due, for clients that wait.
    Job { script: usize, due: u64 },
    /// The next job becomes due at this instant or later.
    NotBefore(u64),
    /// There will be no further jobs, so the client ends.
    Over,
}
