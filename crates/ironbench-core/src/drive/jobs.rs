//! Sources of jobs. A source of jobs chooses the transactions of a trial, in place of the scripts' weights. Each client
//! has a role. The role chooses the client's next script, sets the script's input variables, and is notified when the
//! job has ended.

use std::collections::BTreeMap;

use crate::Result;
use pgbench_script::{Program, Variables};

/// The queue whose waiting times are reported as the lag of the source. Waiting times in other queues are not reported
/// separately. They are only included in response times.
pub const LAG_QUEUE: usize = 0;

/// A source of jobs.
pub trait Jobs: Sync {
    /// Returns the prefix of the names of the source's metrics.
    fn name(&self) -> &'static str;

    /// Returns the variables that the source sets. Scripts need not define them.
    fn variables(&self) -> &'static [&'static str];

    /// Returns the number of clients that wait for jobs and follow no schedule. These clients are additional to the
    /// plan's clients and numbered after them.
    fn waiting_clients(&self) -> usize;

    /// Whether the source paces the plan's clients. If so, the role of a client determines how long the client rests
    /// between its jobs, and the plan must be a closed loop.
    fn paces(&self) -> bool {
        false
    }

    /// Checks that the source can drive these scripts.
    ///
    /// # Errors
    /// Input: the source cannot drive these scripts.
    fn check(&self, program: &Program) -> Result<()>;

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a>;

    /// Returns the source's own counts since the start, by name. The counts of several parts are added. If the name
    /// ends in `_max`, the maximum is used instead of the sum.
    fn figures(&self) -> BTreeMap<String, f64>;

    /// Returns the name of the lag histogram. This histogram contains the time that each job in `LAG_QUEUE` waited
    /// from its due time to its start. The histogram exists only if clients wait for jobs.
    fn lag(&self) -> String {
        format!("{}_lag", self.name())
    }

    /// Returns the name of the queue length metric. This metric is the mean number of jobs in `LAG_QUEUE` that were
    /// due and had not started. The metric exists only if clients wait for jobs.
    fn queue(&self) -> String {
        format!("{}_queue_mean", self.name())
    }
}

/// The role of one client.
pub trait Role {
    /// Returns the number of the queue in which the client waits for jobs. `LAG_QUEUE` is the first queue. Returns
    /// None if the client follows the schedule of the plan and always has work. All clients of a queue do the same
    /// work.
    fn job_queue(&self) -> Option<usize>;

    /// Returns how long the client must rest from now until its next job. Used only if the source paces its clients
    /// ([`Jobs::paces`]). The loop calls this function before each job, including the first.
    fn rest_ns(&mut self) -> u64 {
        0
    }

    /// Returns the next job, with its input variables set.
    fn next(&mut self, now: u64, variables: &mut Variables) -> Next;

    /// Called when the job has ended. `variables` contains the values that the script left. Returns true if the job was
    /// rolled back on purpose.
    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The client runs this script. For clients that wait for jobs, `due` is the time at which the job became due.
    Job { script: usize, due: u64 },
    /// The next job becomes due at this instant or later.
    NotBefore(u64),
    /// There will be no further jobs, so the client ends.
    Over,
}
