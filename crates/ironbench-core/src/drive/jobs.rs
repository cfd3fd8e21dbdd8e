//! Who chooses the transactions of a trial where weights do not: a source of jobs. Each client has a role, which gives it
//! its next script with its inputs, and hears how that ended.

use std::collections::BTreeMap;

use crate::Result;
use pgbench_script::{Program, Variables};

/// The line whose waits are the lag of the source. What waits in others has it in its response times alone.
pub const LAGGING_LINE: usize = 0;

/// A source of jobs.
pub trait Jobs: Sync {
    /// The first word of its figures' names.
    fn name(&self) -> &'static str;

    /// Variables that it sets: no script has to define them.
    fn variables(&self) -> &'static [&'static str];

    /// Clients beyond those of the plan, numbered after them: they wait for work, and no schedule moves them.
    fn waiting_clients(&self) -> usize;

    /// # Errors
    /// Input: it cannot drive these scripts.
    fn check(&self, program: &Program) -> Result<()>;

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a>;

    /// What it counted itself since the start, by name. Of several parts they are added up; of `…_max` the largest counts.
    fn figures(&self) -> BTreeMap<String, f64>;

    /// Name of the histogram of work of `LAGGING_LINE` that became due: from then to its start.
    fn lag(&self) -> String {
        format!("{}_lag", self.name())
    }

    /// Name of the mean number of such jobs that were due and not begun.
    fn queue(&self) -> String {
        format!("{}_queue_mean", self.name())
    }
}

/// What one client does.
pub trait Role {
    /// The line in which the client waits for work, numbered from `LAGGING_LINE`; None: the plan's schedule moves it, and it
    /// always has work. Clients of one line do the same.
    fn line(&self) -> Option<usize>;

    /// The next job; its inputs are set.
    fn next(&mut self, now: u64, variables: &mut Variables) -> Next;

    /// The job is over, with the variables as the script left them. True: it was rolled back on purpose.
    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run this script. `due`: since when it could have begun, for clients that wait.
    Job { script: usize, due: u64 },
    /// Nothing is due; ask again at this instant.
    NotBefore(u64),
}
