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
use super::crew::{self, Orders, Start, Worker};
use super::engines::Poll;
use super::haul::{Ended, Haul};
use super::kind::Kind;
use super::outcome::Outcome;
use super::plan::{self, Plan};
use crate::measure::clock::{self, MILLISECOND};
use crate::measure::{Recorder, schedule::Schedule};
use crate::wire::{Connector, Server, Session, SessionProtocol, Wish, mysql::Mysql, postgres::Postgres};
use crate::{Error, Result};
use pgbench_script::Random;

/// Maximum sleep of a thread before it checks again whether to stop.
const LOOK_NS: u64 = 50 * MILLISECOND;
const SELECT: usize = 0;
const CONNECT: usize = 1;
/// Number of threads. Each runs one of the two kinds of request, at half of the rate.
pub const THREADS: usize = 2;

/// The requests of the probe client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bystander {
    /// A query of one row whose text ends in `=`. A number from 1 to `keys` is appended to it.
    pub select: String,
    pub keys: i64,
}

impl Bystander {
    pub fn drive(&self, plan: &Plan, control: &Control, poll: Poll) -> Result<Outcome> {
        if plan.clients != THREADS {
            return Err(Error::input("probe client", format!("needs {THREADS} clients")));
        }
        let kind = |name: &str| Kind { name: name.to_owned(), weight: 1, statements: 0, places: Vec::new() };
        super::work(plan, control, THREADS, &[kind("select"), kind("connect")], |orders| match plan.engine.server() {
            Some(Server::Postgres(connection)) => self.run::<Postgres>(orders, &Connector::new(connection)?, poll),
            Some(Server::Mysql(connection)) => self.run::<Mysql>(orders, &Connector::new(connection)?, poll),
            Some(Server::Ldap(_)) => Err(Error::input("probe client", "a directory has no tables to query")),
            None => Err(Error::input("probe client", "needs a server to connect to")),
        })
    }

    fn run<P: SessionProtocol>(&self, orders: &Orders, connector: &Connector<P>, poll: Poll) -> Result<Haul> {
        let make = |thread: usize, _: Range<usize>| {
            let session = Session::open(connector, wish(orders.control))?;
            let random = Random::new(orders.plan.seed ^ thread as u64);
            Ok(Watcher { kind: thread, look: self, connector, session, random })
        };
        crew::run(orders, make, poll)
    }
}

struct Watcher<'a, P: SessionProtocol> {
    kind: usize,
    look: &'a Bystander,
    connector: &'a Connector<P>,
    session: Session<P>,
    random: Random,
}

/// Returns the function that a session calls to check whether the trial was stopped. If so, the session interrupts its
/// request.
fn wish(control: &Control) -> Wish {
    let stopped = control.stopped();
    Box::new(move || stopped.load(Relaxed))
}

impl<P: SessionProtocol> Watcher<'_, P> {
    fn act(&mut self, control: &Control) -> Result<()> {
        match self.kind {
            SELECT => {
                let key = self.random.integer(1, self.look.keys);
                let rows = self.session.query(&format!("{} {key}", self.look.select))?;
                if rows.len() == 1 {
                    return Ok(());
                }
                Err(Error::failure("probe client", format!("{} rows have the key {key}", rows.len())))
            }
            CONNECT => Session::open(self.connector, wish(control)).map(drop),
            _ => unreachable!("there are two threads"),
        }
    }
}

impl<P: SessionProtocol> Worker for Watcher<'_, P> {
    fn io(&self) -> &'static str {
        "blocking"
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> Ended {
        let plan::Schedule::Open { rate, .. } = start.plan.schedule else { unreachable!("the plan has a rate") };
        // Each thread has its own schedule, because it cannot send requests of the other thread's kind. The two
        // schedules interleave.
        let mut due = Schedule::fixed(start.origin, rate / THREADS as f64, (self.kind as f64 + 0.5) / THREADS as f64);
        let mut ended = Ended::default();
        clock::sleep_until(start.origin);
        while wait(&due, start, recorder) {
            let (intended, begun) = (due.due(), clock::now());
            due.advance();
            recorder.late(intended, begun);
            let done = self.act(start.control);
            let now = clock::now();
            // The request is recorded before the next check for the end of the trial. Otherwise a request that hung
            // until the end would not count.
            if now >= recorder.boundary() {
                recorder.cross(now);
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
        Ended { not_started: due.skip_until(recorder.window_end()), ..ended }
    }
}

/// Waits for the scheduled time of the next request. Returns false if the window closed before that.
fn wait(due: &Schedule, start: &Start, recorder: &mut Recorder) -> bool {
    loop {
        let now = clock::now();
        look(now, start, recorder);
        if recorder.is_closed() || now >= due.due() {
            return !recorder.is_closed();
        }
        clock::sleep_until(due.due().min(now + LOOK_NS).min(recorder.boundary()));
    }
}

fn look(now: u64, start: &Start, recorder: &mut Recorder) {
    if now >= recorder.boundary() {
        recorder.cross(now);
    }
    if start.must_end() {
        recorder.close(now);
    }
}
