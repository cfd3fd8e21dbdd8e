//! Tests of trials in which a source of jobs replaces weights.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pgbench_script::{Program, Slot, Value, Variables};

use super::{plan, script, sum};
use crate::drive::jobs::{Jobs, Next, Role};
use crate::drive::merge::merged;
use crate::drive::plan::{Arrivals, Engine, Part, Plan, Schedule, Stop};
use crate::drive::script::{Action, Clients};
use crate::drive::{Control, drive, threads::DriveContext, threads::client_ranges};
use crate::measure::{Tally, clock};

/// A source of jobs. Two of its clients alternate between the scripts `plain` and `asks`. 20 ms after each `asks`, a
/// client that waits for jobs runs `answers`.
struct Echo {
    waiting: usize,
    due: Mutex<VecDeque<u64>>,
    answered: AtomicUsize,
    failed: AtomicUsize,
}

const ANSWER_NS: u64 = 20_000_000;

impl Echo {
    fn new(waiting: usize) -> Self {
        let (due, answered, failed) = Default::default();
        Self { waiting, due, answered, failed }
    }
}

impl Jobs for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["number"]
    }

    fn waiting_clients(&self) -> usize {
        self.waiting
    }

    fn check(&self, _: &Program) -> crate::Result<()> {
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        let slot = program.symbols.get("number").unwrap();
        Box::new(Person { echo: self, slot, waits: client >= 2, asked: 0, script: 0 })
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        BTreeMap::from([("answered".to_owned(), self.answered.load(Relaxed) as f64)])
    }
}

struct Person<'a> {
    echo: &'a Echo,
    slot: Slot,
    waits: bool,
    asked: usize,
    script: usize,
}

impl Role for Person<'_> {
    fn job_queue(&self) -> Option<usize> {
        self.waits.then_some(0)
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let mut due = self.echo.due.lock().unwrap();
        self.script = match (self.waits, due.front()) {
            (false, _) => {
                self.asked += 1;
                self.asked % 2
            }
            (true, Some(&instant)) if instant <= now => {
                due.pop_front();
                variables.set(self.slot, Value::Integer(3));
                return Next::Job { script: 2, due: instant };
            }
            (true, front) => return Next::NotBefore(front.map_or(u64::MAX, |due| *due).min(now + 1_000_000)),
        };
        variables.set(self.slot, Value::Integer(self.script as i64 + 1));
        Next::Job { script: self.script, due: now }
    }

    fn ended(&mut self, _: &mut Variables, well: bool) -> bool {
        self.echo.failed.fetch_add(usize::from(!well), Relaxed);
        if self.waits {
            self.echo.answered.fetch_add(1, Relaxed);
        } else if self.script == 1 {
            self.echo.due.lock().unwrap().push_back(clock::now() + ANSWER_NS);
        }
        !self.waits && self.script == 0
    }
}

fn echo_plan(threads: usize, stop: Stop) -> Plan {
    // The script divides by an input of the job. If the input is not set, the division fails.
    let text = "\\set tenth 10 / :number\nSELECT :tenth;\n";
    let scripts = ["plain", "asks", "answers"].map(|name| script(name, text, 1)).into();
    Plan { scripts, ..plan(2, threads, stop) }
}

#[test]
fn a_source_of_jobs_chooses_transactions_and_who_waits_answers_when_work_is_due() {
    for (threads, service_ns) in [(1, 500_000), (3, 500_000), (1, 0)] {
        let echo = Echo::new(2);
        let plan =
            Plan { engine: Engine::Null { service_ns }, max_tries: 3, ..echo_plan(threads, Stop::DurationS(0.3)) };
        // The think time is necessary. Without it, the clients would send more requests than two waiting clients can
        // answer.
        let think = Schedule::Closed { think_time_s: 0.001 };
        let outcome = drive(&Plan { schedule: think, ..plan }, Some(&echo), &Control::new(), &mut || true).unwrap();
        let done: Vec<_> = outcome.summary.scripts.iter().map(|script| script.transactions).collect();
        assert!(done[0].abs_diff(done[1]) <= 2 && done[2] > 10 && done[2] < done[1], "{threads} threads: {done:?}");
        assert_eq!(echo.failed.load(Relaxed), 0);
        let rolled_back: Vec<_> = outcome.summary.scripts.iter().map(|script| script.rolled_back).collect();
        assert_eq!(rolled_back, [done[0], 0, 0]);
        assert_eq!(outcome.summary.scheduled, done[0] + done[1], "who answers follows no schedule");
        assert_eq!(sum(&outcome.timeline["unscheduled"]), done[2]);
        let lag = &outcome.histograms["echo_lag"];
        assert!(lag.count() + 2 >= done[2] && lag.quantile_s(0.5) < 0.01, "{} {}", lag.count(), lag.quantile_s(0.5));
        let answers = |what: &str| outcome.histograms[&format!("{what}{{script=answers}}")].clone();
        assert!(answers("response_time").mean_s() >= answers("service_time").mean_s());
        assert_eq!((outcome.summary.clients, outcome.summary.waiting_clients), (2, 2));
        assert!(outcome.summary.figures["answered"] >= done[2] as f64);
        assert!(outcome.summary.figures["echo_queue_mean"] < 2.0);
    }
}

#[test]
fn clients_that_wait_end_with_the_last_of_the_others() {
    for threads in [1, 4] {
        for schedule in
            [Schedule::Closed { think_time_s: 0.0 }, Schedule::Open { rate: 2000.0, arrivals: Arrivals::Fixed }]
        {
            let echo = Echo::new(2);
            let plan = Plan { schedule, ..echo_plan(threads, Stop::Transactions(50)) };
            let outcome = drive(&plan, Some(&echo), &Control::new(), &mut || true).unwrap();
            let done: Vec<_> = outcome.summary.scripts.iter().map(|script| script.completed).collect();
            assert_eq!(done[0] + done[1], 100);
            assert!(!outcome.summary.aborted && outcome.summary.elapsed_s < 1.0);
        }
    }
}

#[test]
fn each_part_of_a_trial_has_a_source_of_jobs_of_its_own_and_clients_that_wait() {
    let part = |number| {
        let (echo, control) = (Echo::new(2 - number), Control::new());
        control.begin_at(1);
        let part = Some(Part { number, of: 2, first_client: 2 * number, all_clients: 4 });
        let plan = Plan { part, ..echo_plan(1, Stop::Transactions(50)) };
        drive(&plan, Some(&echo), &control, &mut || true)
    };
    let summary = merged([part(0), part(1)]).unwrap().summary;
    let done: Vec<_> = summary.scripts.iter().map(|script| script.completed).collect();
    assert_eq!((done[0] + done[1], summary.clients, summary.waiting_clients), (200, 4, 3));
    assert_eq!(summary.figures["answered"], done[2] as f64);
    assert_eq!(summary.scheduled, 200);
}

#[test]
fn clients_of_all_parts_have_places_of_their_own() {
    let places = |number: usize, waiting: usize| {
        let echo = Echo::new(waiting);
        let part = Some(Part { number, of: 3, first_client: 2 * number, all_clients: 6 });
        let plan = Plan { part, ..echo_plan(1, Stop::Transactions(1)) };
        let client_ranges = client_ranges(2 + waiting, 1);
        let (control, active_clients) = (Control::new(), AtomicUsize::new(2));
        let context =
            DriveContext { plan: &plan, jobs: Some(&echo), kinds: 1, client_ranges, control: &control, active_clients };
        let source = script("plain", "SELECT :client_id;\n", 1);
        let source = pgbench_script::Source { name: source.name, text: source.text, weight: 1 };
        let program = Program::compile(&[source], &[("number".to_owned(), String::new())]).unwrap();
        let (clients, id) = (Clients::new(&program, &context), program.symbols.get("client_id").unwrap());
        (0..2 + waiting).map(|client| clients.client(client).variables.value(id).unwrap()).collect::<Vec<_>>()
    };
    let all = [places(0, 3), places(1, 2), places(2, 2)].map(|of_part| format!("{of_part:?}"));
    let expected = [vec![0, 1, 6, 9, 12], vec![2, 3, 7, 10], vec![4, 5, 8, 11]];
    assert_eq!(all, expected.map(|ids| format!("{:?}", ids.into_iter().map(Value::Integer).collect::<Vec<_>>())));
}

#[test]
fn an_attempt_that_is_repeated_has_the_inputs_of_the_first() {
    let text = "\\set number :number + 1\nSELECT :number;\n";
    let source = |name: &str| pgbench_script::Source { name: name.to_owned(), text: text.to_owned(), weight: 1 };
    let sources = ["plain", "asks", "answers"].map(source);
    let program = Program::compile(&sources, &[("number".to_owned(), String::new())]).unwrap();
    let (echo, control) = (Echo::new(0), Control::new());
    let plan = Plan { max_tries: 3, ..echo_plan(1, Stop::Transactions(1)) };
    let (jobs, active_clients) = (Some(&echo as &dyn Jobs), AtomicUsize::new(2));
    let context = DriveContext {
        plan: &plan,
        jobs,
        kinds: 3,
        client_ranges: client_ranges(2, 1),
        control: &control,
        active_clients,
    };
    let clients = Clients::new(&program, &context);
    let (mut client, mut tally) = (clients.client(0), Tally::new(3));
    let slot = program.symbols.get("number").unwrap();
    for asked in [2, 1] {
        client.begin();
        for _ in 0..2 {
            assert_eq!(client.kind() as i64 + 1, asked);
            assert!(matches!(client.advance(), Action::Sql(_)));
            assert_eq!(client.variables.value(slot).unwrap(), Value::Integer(asked + 1));
            assert!(client.retry(&mut tally));
        }
        assert!(!client.retry(&mut tally));
        client.count_end(true, &mut tally);
    }
    assert_eq!((tally.kinds[0].rolled_back, tally.kinds[0].retries, tally.kinds[0].retried), (1, 2, 1));
}

#[test]
fn a_plan_that_names_a_source_of_jobs_does_not_run_without_it() {
    let plan = Plan { jobs: Some("brokerage".into()), ..plan(1, 1, Stop::Transactions(1)) };
    let error = drive(&plan, None, &Control::new(), &mut || true).unwrap_err();
    assert!(error.to_string().contains("source of jobs"), "{error}");
}
