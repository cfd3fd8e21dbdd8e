//! Populates a table inside the measured window. A transaction is one commit.
//!
//! Before the start, the commits are assigned to the clients in rotation. Every client therefore has a fixed share, and
//! rows with consecutive numbers arrive at about the same time. The first error ends the trial, because an incomplete
//! population is useless.

mod mysql;
mod null;
mod postgres;
mod sqlite;
mod values;

use std::ops::Range;

use ironbench_core::drive::engines::{self, Poll};
use ironbench_core::drive::outcome::Outcome;
use ironbench_core::drive::plan::{Engine, Plan};
use ironbench_core::drive::{Control, Kind, work};
use ironbench_core::wire::{Connected, mysql::Mysql, postgres::Postgres};
use ironbench_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::wide::WideTable;

/// Maximum number of rows per INSERT, because engines limit the number of parameters of a statement. PostgreSQL numbers
/// parameters with 16 bits, and SQLite allows 32 766 (SQLITE_MAX_VARIABLE_NUMBER).
pub const MAX_BATCHED: u64 = 6_000;

/// The `work` of a drive plan that populates a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Populate {
    pub table: WideTable,
    pub method: Method,
    /// Number of rows per commit.
    pub commit: u64,
    /// Number of rows per INSERT, if rows are batched.
    pub batch: u64,
}

/// A method of sending rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Single-row INSERTs, each of which waits for its reply.
    Rows,
    /// Multi-row INSERTs.
    Batch,
    /// A stream (such as COPY) for each commit.
    Copy,
}

impl Populate {
    /// Populates the table.
    ///
    /// # Errors
    /// Input: the described population is impossible. Failure: the engine cannot be reached.
    /// Later errors of the engine are in the outcome.
    pub fn drive(&self, plan: &Plan, control: &Control, poll: Poll) -> Result<Outcome> {
        self.check(plan.clients)?;
        let share = |client| ClientShare::new(self, client, plan.clients);
        match &plan.engine {
            Engine::Null { service_ns } => work(plan, control, plan.threads, &[self.kind(0)], |orders| {
                engines::run_null(orders, *service_ns, |client| null::Populator::new(share(client)), poll)
            }),
            Engine::Postgres { connection, io, .. } => {
                let statements = postgres::Statements::of(self);
                work(plan, control, plan.threads, &[self.kind(statements.prepared())], |orders| {
                    let filler = |client, _: &Connected<Postgres>| postgres::Populator::new(share(client), &statements);
                    engines::run_server(orders, connection, *io, false, filler, poll)
                })
            }
            Engine::Mysql { connection, io, .. } => {
                let statements = mysql::Statements::of(self);
                work(plan, control, plan.threads, &[self.kind(statements.prepared())], |orders| {
                    let filler = |client, _: &Connected<Mysql>| mysql::Populator::new(share(client), &statements);
                    engines::run_server(orders, connection, *io, false, filler, poll)
                })
            }
            Engine::Ldap { .. } => Err(Error::input("population", "a directory has no tables to fill")),
            Engine::Called { .. } => Err(Error::input("population", "is supported only over the core's own protocols")),
            Engine::Sqlite { path, pragmas } => work(plan, control, plan.clients, &[self.kind(0)], |orders| {
                sqlite::run(self, path, pragmas, orders, poll)
            }),
        }
    }

    /// Returns the total number of commits.
    pub fn commits(&self) -> u64 {
        self.table.count.div_ceil(self.commit.max(1))
    }

    /// Returns the rows of a commit, numbered from 0.
    fn rows_of(&self, commit: u64) -> Range<u64> {
        commit * self.commit..((commit + 1) * self.commit).min(self.table.count)
    }

    fn kind(&self, statements: usize) -> Kind {
        Kind { name: "commit".to_owned(), weight: 1, statements, positions: Vec::new() }
    }

    fn check(&self, clients: usize) -> Result<()> {
        let bad = |cause: String| Err(Error::input("population", cause));
        if self.commit == 0 || self.table.width == 0 {
            return bad("a commit needs at least one row, and a row at least one character".to_owned());
        }
        if self.method == Method::Batch && !(1..=MAX_BATCHED).contains(&self.batch) {
            return bad(format!("a batch of {} rows is not between 1 and {MAX_BATCHED}", self.batch));
        }
        if self.commits() < clients as u64 {
            return bad(format!("{} commits are too few for {clients} clients", self.commits()));
        }
        Ok(())
    }
}

/// The commits of one client.
struct ClientShare<'p> {
    populate: &'p Populate,
    next: u64,
    step: u64,
}

impl<'p> ClientShare<'p> {
    fn new(populate: &'p Populate, client: usize, clients: usize) -> Self {
        Self { populate, next: client as u64, step: clients as u64 }
    }

    /// Returns the number of remaining commits.
    fn left(&self) -> u64 {
        self.populate.commits().saturating_sub(self.next).div_ceil(self.step)
    }

    /// Returns the rows of the next commit. The range is empty if there are no more commits.
    fn take(&mut self) -> Range<u64> {
        let rows = self.populate.rows_of(self.next);
        self.next += self.step;
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wide::Keys;
    use ironbench_core::drive::plan::{OnError, Schedule, Stop};
    use proptest::prelude::*;

    fn populate(rows: u64, commit: u64, method: Method) -> Populate {
        Populate { table: WideTable { count: rows, width: 50, keys: Keys::Random, seed: 1 }, method, commit, batch: 7 }
    }

    fn plan(clients: usize, threads: usize) -> Plan {
        Plan {
            engine: Engine::Null { service_ns: 0 },
            scripts: Vec::new(),
            work: None,
            jobs: None,
            variables: Vec::new(),
            clients,
            threads,
            client_cpus: Vec::new(),
            seed: 1,
            schedule: Schedule::Closed { think_time_s: 0.0 },
            stop: Stop::Transactions(1),
            warmup_s: 0.0,
            max_tries: 1,
            retried_errors: Vec::new(),
            on_error: OnError::Continue,
            reconnect_on_loss: false,
            statements: false,
            observers: Vec::new(),
            part: None,
            log: None,
        }
    }

    proptest! {
        #[test]
        fn every_row_belongs_to_one_commit_of_one_client(rows in 1u64..5000, commit in 1u64..400, clients in 1usize..20) {
            let populate = populate(rows, commit, Method::Copy);
            let mut seen = vec![0u8; rows as usize];
            for client in 0..clients {
                let mut share = ClientShare::new(&populate, client, clients);
                for _ in 0..share.left() {
                    let taken = share.take();
                    prop_assert!(!taken.is_empty());
                    taken.for_each(|row| seen[row as usize] += 1);
                }
                prop_assert_eq!(share.left(), 0);
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }

        #[test]
        fn as_many_commits_are_counted_as_the_rows_take(rows in 1u64..3000, commit in 1u64..90, clients in 1usize..9, threads in 1usize..3) {
            for method in [Method::Rows, Method::Batch, Method::Copy] {
                let populate = populate(rows, commit, method);
                let done = populate.drive(&plan(clients, threads), &Control::new(), &mut || true);
                if populate.commits() < clients as u64 {
                    prop_assert!(done.is_err());
                    continue;
                }
                let summary = done.unwrap().summary;
                prop_assert_eq!(summary.transactions, populate.commits());
                prop_assert_eq!(summary.commits, populate.commits());
                prop_assert!(!summary.cut_short && !summary.aborted);
            }
        }
    }

    #[test]
    fn a_stopped_population_says_so() {
        let control = Control::new();
        let populate = populate(u64::MAX / 4, 1, Method::Rows);
        let mut polls = 0;
        let outcome = populate.drive(&plan(2, 1), &control, &mut || {
            polls += 1;
            polls < 3
        });
        assert!(outcome.unwrap().summary.cut_short);
    }
}
