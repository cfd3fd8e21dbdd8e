//! The probe client, which uses the database while other work runs on it. The probe client shows, for example, how a
//! backup affects other users of the server. Requests are of two kinds: from time to time the probe client opens a
//! connection, and it reads a row by its key over a connection that stays open.
//!
//! Requests of both kinds follow a schedule. The response time of a request therefore includes the time that it waited
//! for the previous request.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use super::control::Control;
use super::engines::Poll;
use super::kind::Kind;
use super::outcome::Outcome;
use super::plan::{self, Plan};
use super::thread_results::{ThreadResults, UnfinishedWork};
use super::threads::{self, DriveContext, Start, Worker};
use crate::measure::clock::{self, MILLISECOND};
use crate::measure::{Recorder, schedule::Schedule};
use crate::wire::{Connector, Server, Session, SessionProtocol, StopCheck, mysql::Mysql, postgres::Postgres};
use crate::{Error, Result};
use pgbench_script::Random;

/// Maximum sleep of a thread before it checks again whether to stop.
const CHECK_NS: u64 = 50 * MILLISECOND;
const SELECT: usize = 0;
const CONNECT: usize = 1;
/// Number of threads. Each runs one of the two kinds of request, at half of the rate.
pub const THREADS: usize = 2;

/// The requests of the probe client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeClient {
    /// A query of one row whose text ends in `=`. A number from 1 to `keys` is appended to it.
    pub select: String,
    pub keys: i64,
}

impl ProbeClient {
    pub fn drive(&self, plan: &Plan, control: &Control, poll: Poll) -> Result<Outcome> {
        if plan.clients != THREADS {
            return Err(Error::input("probe client", format!("needs {THREADS} clients")));
        }
        let kind = |name: &str| Kind { name: name.to_owned(), weight: 1, statements: 0, positions: Vec::new() };
        super::work(plan, control, THREADS, &[kind("select"), kind("connect")], |context| match plan.engine.server() {
            Some(Server::Postgres(connection)) => self.run::<Postgres>(context, &Connector::new(connection)?, poll),
            Some(Server::Mysql(connection)) => self.run::<Mysql>(context, &Connector::new(connection)?, poll),
            Some(Server::Ldap(_)) => Err(Error::input("probe client", "a directory has no tables to query")),
            None => Err(Error::input("probe client", "needs a server to connect to")),
        })
    }

    fn run<P: SessionProtocol>(
        &self,
        context: &DriveContext,
        connector: &Connector<P>,
        poll: Poll,
    ) -> Result<ThreadResults> {
        let make = |thread: usize, _: Range<usize>| {
            let session = Session::open(connector, stop_check(context.control))?;
            let random = Random::new(context.plan.seed ^ thread as u64);
            Ok(ProbeWorker { kind: thread, probe: self, connector, session, random })
        };
        threads::run(context, make, poll)
    }
}

/// A thread of the probe client, which sends one kind of request.
struct ProbeWorker<'a, P: SessionProtocol> {
    kind: usize,
    probe: &'a ProbeClient,
    connector: &'a Connector<P>,
    session: Session<P>,
    random: Random,
}

/// Returns the function that a session calls to check whether the trial was stopped. If so, the session interrupts its
/// request.
fn stop_check(control: &Control) -> StopCheck {
    let stopped = control.stopped();
    Box::new(move || stopped.load(Relaxed))
}

impl<P: SessionProtocol> ProbeWorker<'_, P> {
    fn send_request(&mut self, control: &Control) -> Result<()> {
        match self.kind {
            SELECT => {
                let key = self.random.integer(1, self.probe.keys);
                let rows = self.session.query(&format!("{} {key}", self.probe.select))?;
                if rows.len() == 1 {
                    return Ok(());
                }
                Err(Error::failure("probe client", format!("{} rows have the key {key}", rows.len())))
            }
            CONNECT => Session::open(self.connector, stop_check(control)).map(drop),
            _ => unreachable!("there are two threads"),
        }
    }
}

impl<P: SessionProtocol> Worker for ProbeWorker<'_, P> {
    fn io(&self) -> &'static str {
        "blocking"
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork {
        let plan::Schedule::Open { rate, .. } = start.plan.schedule else { unreachable!("the plan has a rate") };
        // Each thread has its own schedule, because it cannot send requests of the other thread's kind. The two
        // schedules interleave.
        let mut due = Schedule::fixed(start.origin, rate / THREADS as f64, (self.kind as f64 + 0.5) / THREADS as f64);
        let mut ended = UnfinishedWork::default();
        clock::sleep_until(start.origin);
        while wait(&due, start, recorder) {
            let (intended, begun) = (due.due(), clock::now());
            due.advance();
            recorder.record_lateness(intended, begun);
            let done = self.send_request(start.control);
            let now = clock::now();
            // The request is recorded before the next check for the end of the trial. Otherwise a request that hung
            // until the end would not count.
            if now >= recorder.boundary() {
                recorder.pass_time(now);
            }
            match done {
                Ok(()) => recorder.complete(self.kind, intended, begun, now),
                // The trial interrupted the request, so the server has not failed.
                Err(_) if start.control.is_stopped() => ended.unfinished += 1,
                Err(error) => {
                    recorder.tally.kinds[self.kind].failed += 1;
                    recorder.tally.failure(self.kind, &error.sqlstate, true, || error.to_string());
                    if self.kind == SELECT && error.sqlstate.is_empty() {
                        start.abort.abort(error.to_string());
                    }
                }
            }
        }
        recorder.close(clock::now());
        UnfinishedWork { not_started: due.skip_until(recorder.window_end()), ..ended }
    }
}

/// Waits for the scheduled time of the next request. Returns false if the window closed before that.
fn wait(due: &Schedule, start: &Start, recorder: &mut Recorder) -> bool {
    loop {
        let now = clock::now();
        check_window(now, start, recorder);
        if recorder.is_closed() || now >= due.due() {
            return !recorder.is_closed();
        }
        clock::sleep_until(due.due().min(now + CHECK_NS).min(recorder.boundary()));
    }
}

fn check_window(now: u64, start: &Start, recorder: &mut Recorder) {
    if now >= recorder.boundary() {
        recorder.pass_time(now);
    }
    if start.must_end() {
        recorder.close(now);
    }
}
