//! Tests of clients that lose their connection, on an engine that answers immediately.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{DriveContext, plan, script, threads};
use crate::drive::event_loop::EventLoop;
use crate::drive::kind::Kind;
use crate::drive::null::NullScript;
use crate::drive::plan::{Arrivals, OnError, Plan, Schedule, Stop};
use crate::drive::script::{CONNECTION_LOST, Clients};
use crate::drive::turns::TurnTotals;
use crate::drive::{Control, Outcome, compile, work};
use crate::measure::clock::MILLISECOND;
use crate::wire::transport::null::Null;
use crate::wire::transport::{Arrival, Mailbox, Transport};

/// A transport whose connections break when they have sent a limited number of messages.
struct Breaking {
    null: Null,
    /// Number of messages that each client may still send.
    left: HashMap<usize, u64>,
    broken: VecDeque<usize>,
}

impl Transport for Breaking {
    const SENDS_AT_ONCE: bool = false;
    const NAME: &'static str = "breaking";

    fn mailbox(&mut self, client: usize) -> &mut Mailbox {
        self.null.mailbox(client)
    }

    fn send(&mut self, client: usize) {
        match self.left.get_mut(&client) {
            Some(0) => self.broken.push_back(client),
            Some(left) => {
                *left -= 1;
                self.null.send(client);
            }
            None => self.null.send(client),
        }
    }

    fn send_without_reply(&mut self, client: usize) {
        self.null.send_without_reply(client);
    }

    fn receive(&mut self, client: usize) {
        self.null.receive(client);
    }

    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.null.wait(now, if self.broken.is_empty() { until } else { now })
    }

    fn next(&mut self) -> Option<Arrival> {
        let broken = self.broken.pop_front().map(|client| Arrival::Lost(client, io::ErrorKind::BrokenPipe.into()));
        broken.or_else(|| self.null.next())
    }
}

/// Runs a trial in which `left` limits the messages of a client's connection. Clients without an entry have no limit.
fn run(plan: &Plan, service_ns: u64, left: &HashMap<usize, u64>, control: &Control) -> Outcome {
    let program = compile(plan, None).unwrap();
    work(plan, control, plan.threads, &Kind::of_program(&program), |context: &DriveContext| {
        let clients = Clients::new(&program, context);
        let make = |_, share: std::ops::Range<usize>| {
            let left = share.clone().enumerate().filter_map(|(place, id)| Some((place, *left.get(&id)?))).collect();
            let null = Null::new(share.len(), service_ns);
            let scripts = share.map(|id| NullScript(clients.client(id))).collect();
            Ok(EventLoop::new(Breaking { null, left, broken: VecDeque::new() }, scripts))
        };
        threads::run(context, make, &mut || true)
    })
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_client_that_loses_its_connection_ends_and_the_others_do_all_of_their_work(
        clients in 1usize..12, threads in 1usize..4, n in 1u64..30, limits in prop::collection::vec(0u64..40, 0..12)
    ) {
        let left: HashMap<_, _> = limits.iter().copied().enumerate().filter(|(id, _)| *id < clients).collect();
        let summary = run(&plan(clients, threads, Stop::Transactions(n)), 0, &left, &Control::new()).summary;
        let lost = left.values().filter(|limit| **limit < n).count();
        prop_assert_eq!((summary.connections_lost, summary.failed), (lost as u64, lost as u64));
        prop_assert_eq!((summary.clients_lost, summary.server_commits_uncertain), (lost as u64, lost as u64));
        prop_assert_eq!(summary.errors.get(CONNECTION_LOST).copied().unwrap_or(0), lost as u64);
        prop_assert_eq!(summary.aborted, lost == clients);
        prop_assert_eq!(summary.loss_cause.is_empty(), lost == 0);
        let done: u64 = (0..clients).map(|id| left.get(&id).map_or(n, |limit| n.min(*limit))).sum();
        if !summary.aborted {
            prop_assert_eq!(summary.transactions, done);
        }
    }
}

#[test]
fn where_errors_end_the_trial_a_lost_connection_does() {
    let plan = Plan { on_error: OnError::Stop, ..plan(4, 2, Stop::DurationS(30.0)) };
    let summary = run(&plan, MILLISECOND, &HashMap::from([(1, 5)]), &Control::new()).summary;
    assert!(summary.aborted && summary.elapsed_s < 10.0, "{}", summary.cause);
    assert_eq!((summary.clients_lost, summary.failed), (0, 0));
    assert_eq!(summary.cause, summary.loss_cause);
}

#[test]
fn what_is_due_in_an_open_loop_is_begun_by_the_clients_that_are_left() {
    let schedule = Schedule::Open { rate: 200.0, arrivals: Arrivals::Fixed };
    let scripts = vec![script("select", "SELECT 1;\nSELECT 2;\n", 1)];
    let plan = Plan { schedule, scripts, ..plan(4, 2, Stop::DurationS(0.5)) };
    let summary = run(&plan, MILLISECOND, &HashMap::from([(0, 0), (3, 7)]), &Control::new()).summary;
    // On a busy machine, some transactions have not started when the window closes. These transactions run while the
    // trial drains, and they are counted too.
    let (ended, failed) = (summary.completed, summary.scripts[0].failed_in_all);
    assert_eq!((summary.due, ended + failed), (Some(100), 100));
    assert_eq!((summary.connections_lost, failed), (2, 2));
}

#[test]
fn turns_continue_when_a_thread_has_lost_all_of_its_clients_and_count_the_time_that_they_are_absent() {
    let plan = plan(2, 2, Stop::DurationS(1.0));
    let control = Control::new();
    control.turns.ask();
    let left = HashMap::from([(1, 0)]);
    let mut turned = Vec::<TurnTotals>::new();
    let summary = std::thread::scope(|scope| {
        let driven = scope.spawn(|| run(&plan, MILLISECOND, &left, &control).summary);
        let until = Instant::now() + Duration::from_secs(20);
        let mut patient = || Instant::now() < until;
        assert!(control.turns.rested(&mut patient).is_some());
        for _ in 0..3 {
            control.turns.begin(20 * MILLISECOND, 200 * MILLISECOND, Vec::new());
            turned.extend(control.turns.rested(&mut patient));
        }
        control.finish();
        driven.join().unwrap()
    });
    assert_eq!((turned.len(), summary.clients_lost, summary.aborted), (3, 1, false));
    assert!(turned[0].transactions > 0 && turned[2].transactions > 0);
    // Each slice counts its full length for both clients, although one of them has lost its connection.
    for turn in &turned {
        assert!(turn.busy_ns >= 2 * 200 * MILLISECOND * 9 / 10, "{turn:?}");
    }
    assert!((summary.elapsed_s - 0.6).abs() < 0.1, "{}", summary.elapsed_s);
    let uneven = summary.per_client.unwrap();
    assert_eq!(2.0 * uneven.transactions_mean, summary.transactions as f64);
    assert!(uneven.transactions_stdev > 0.9 * uneven.transactions_mean, "{uneven:?}");
}
