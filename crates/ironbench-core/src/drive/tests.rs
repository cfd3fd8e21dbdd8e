//! Tests of whole trials on the null engine.

mod blocking;
mod due;
mod jobs;
mod losses;
mod reconnects;
mod transaction_log;
mod turns;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proptest::prelude::*;

use super::kind::Kind;
use super::plan::{Arrivals, Engine, ObserverSource, OnError, Plan, Schedule, ScriptSource, Stop};
use super::thread_results::UnfinishedWork;
use super::threads::{DriveContext, Start, Worker, client_ranges};
use super::{Control, Outcome, drive, threads, work};
use crate::measure::Recorder;

fn script(name: &str, text: &str, weight: u32) -> ScriptSource {
    ScriptSource { name: name.to_owned(), text: text.to_owned(), weight }
}

pub(super) fn plan(clients: usize, threads: usize, stop: Stop) -> Plan {
    Plan {
        engine: Engine::Null { service_ns: 0 },
        work: None,
        jobs: None,
        scripts: vec![script("select", "\\set a random(1, 10)\nSELECT :a;\n", 1)],
        variables: Vec::new(),
        clients,
        threads,
        client_cpus: Vec::new(),
        seed: 1,
        schedule: Schedule::Closed { think_time_s: 0.0 },
        stop,
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

fn run(plan: &Plan) -> Outcome {
    drive(plan, None, &Control::new(), &mut || true).unwrap()
}

fn sum(column: &[f64]) -> u64 {
    column.iter().sum::<f64>() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn exactly_the_planned_transactions_of_every_client_run(clients in 1usize..40, threads in 1usize..5, n in 1u64..200) {
        let outcome = run(&plan(clients, threads, Stop::Transactions(n)));
        let planned = n * clients as u64;
        prop_assert_eq!(outcome.summary.transactions, planned);
        prop_assert_eq!((outcome.summary.completed, outcome.summary.scheduled), (planned, planned));
        prop_assert_eq!(outcome.summary.threads, threads.min(clients));
        prop_assert_eq!(outcome.histograms["response_time"].count(), planned);
        prop_assert_eq!(outcome.histograms["service_time"].count(), planned);
        prop_assert_eq!(sum(&outcome.timeline["transactions"]), planned);
        prop_assert_eq!(sum(&outcome.seconds["transactions"]), planned);
        let even = outcome.summary.per_client.unwrap();
        prop_assert_eq!((even.clients, even.transactions_mean, even.transactions_stdev), (clients, n as f64, 0.0));
        prop_assert!(!outcome.summary.cut_short && !outcome.summary.aborted);
    }

    #[test]
    fn an_open_loop_runs_exactly_the_planned_transactions_too(clients in 1usize..10, threads in 1usize..3, n in 1u64..40) {
        let open = Schedule::Open { rate: 20_000.0, arrivals: Arrivals::Poisson };
        let outcome = run(&Plan { schedule: open, ..plan(clients, threads, Stop::Transactions(n)) });
        prop_assert_eq!(outcome.summary.transactions, n * clients as u64);
        prop_assert_eq!(outcome.summary.per_client, None);
    }
}

#[test]
fn response_time_counts_from_the_intended_start_and_service_time_from_the_send() {
    let plan = Plan {
        engine: Engine::Null { service_ns: 20_000_000 },
        schedule: Schedule::Open { rate: 100.0, arrivals: Arrivals::Fixed },
        ..plan(1, 1, Stop::DurationS(0.6))
    };
    let outcome = run(&plan);
    // The service time is twice the gap between scheduled starts. Each transaction therefore waits one gap longer than
    // the transaction before it.
    let (response, service) = (&outcome.histograms["response_time"], &outcome.histograms["service_time"]);
    assert!(response.max_s() > 0.25, "{}", response.max_s());
    assert!(service.quantile_s(0.5) < 0.1, "{}", service.quantile_s(0.5));
    assert!(service.min_s() >= 0.0199);
}

#[test]
fn what_ends_in_the_warm_up_is_not_measured_but_completed() {
    let plan =
        Plan { engine: Engine::Null { service_ns: 1_000_000 }, warmup_s: 0.2, ..plan(2, 1, Stop::DurationS(0.3)) };
    let summary = run(&plan).summary;
    assert!(summary.completed > summary.transactions);
    assert_eq!(2.0 * summary.per_client.unwrap().transactions_mean, summary.transactions as f64);
    assert!((summary.elapsed_s - 0.3).abs() < 1e-9);
    assert!(summary.unfinished <= 2);
}

#[test]
fn a_client_thinks_between_transactions() {
    let schedule = Schedule::Closed { think_time_s: 0.05 };
    let outcome = run(&Plan { schedule, ..plan(3, 1, Stop::DurationS(0.5)) });
    assert!((3..=30).contains(&outcome.summary.transactions), "{}", outcome.summary.transactions);
    assert!(outcome.histograms["response_time"].quantile_s(0.5) < 0.02);
}

#[test]
fn a_sleep_inside_a_script_is_part_of_its_response_time() {
    let scripts = vec![script("sleepy", "\\sleep 20 ms\nSELECT 1;\n", 1)];
    let outcome = run(&Plan { scripts, ..plan(4, 2, Stop::Transactions(3)) });
    assert!(outcome.histograms["response_time"].min_s() >= 0.0199);
    assert!(outcome.summary.lateness_max_s > 0.0);
}

#[test]
fn scripts_without_sql_run_and_end() {
    let scripts = vec![script("sums", "\\set a 1 + 1\n", 1)];
    let outcome = run(&Plan { scripts, ..plan(2, 1, Stop::Transactions(50)) });
    assert_eq!(outcome.summary.transactions, 100);
}

#[test]
fn scripts_are_chosen_by_weight_and_recorded_apart() {
    let scripts = vec![script("a", "SELECT 1;", 3), script("b", "SELECT 2;", 1), script("never", "SELECT 3;", 0)];
    let outcome = run(&Plan { scripts, ..plan(4, 1, Stop::Transactions(2_000)) });
    let counts: Vec<u64> = outcome.summary.scripts.iter().map(|script| script.transactions).collect();
    assert_eq!(counts.iter().sum::<u64>(), 8_000);
    // The tolerance is six standard deviations of a binomial distribution.
    assert!((counts[0] as f64 - 6_000.0).abs() < 6.0 * (8_000.0f64 * 0.75 * 0.25).sqrt(), "{counts:?}");
    assert_eq!(counts[2], 0);
    assert_eq!(outcome.histograms["response_time{script=a}"].count(), counts[0]);
}

#[test]
fn a_mistake_in_a_meta_command_fails_the_transaction_and_the_client_goes_on() {
    let scripts = vec![script("broken", "\\set a 1 / 0\nSELECT :a;\n", 1)];
    let summary = run(&Plan { scripts, ..plan(2, 1, Stop::Transactions(5)) }).summary;
    assert_eq!((summary.transactions, summary.failed, summary.errors["script"]), (0, 10, 10));
    assert!(
        summary.error_messages["script"].contains("script broken, line 1, command 1: "),
        "{:?}",
        summary.error_messages
    );
}

#[test]
fn stopping_keeps_what_was_measured_and_says_so() {
    let polls = AtomicUsize::new(0);
    let control = Control::new();
    let outcome =
        drive(&plan(8, 2, Stop::DurationS(60.0)), None, &control, &mut || polls.fetch_add(1, Relaxed) < 6).unwrap();
    assert!(outcome.summary.cut_short && !outcome.summary.aborted);
    assert!(outcome.summary.elapsed_s < 30.0 && outcome.summary.transactions > 0);
    assert_eq!(sum(&outcome.timeline["transactions"]), outcome.summary.transactions);
}

#[test]
fn a_trial_stopped_before_its_start_measured_nothing() {
    let control = Control::new();
    control.stop();
    let summary = drive(&plan(2, 1, Stop::DurationS(60.0)), None, &control, &mut || true).unwrap().summary;
    assert!(summary.cut_short);
    assert_eq!((summary.transactions, summary.elapsed_s), (0, 0.0));
}

mod sqlite {
    use super::*;
    use crate::testing::Folder;
    use crate::wire::sqlite::Session;

    fn database() -> (Folder, String) {
        let folder = Folder::new();
        let path = folder.0.join("test.db").to_str().unwrap().to_owned();
        let schema = "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 0)";
        Session::open(&path, &[]).unwrap().query(schema).unwrap();
        (folder, path)
    }

    fn on(path: &str, text: &str, plan: Plan) -> Plan {
        let engine = Engine::Sqlite { path: path.to_owned(), pragmas: vec!["PRAGMA busy_timeout=0".to_owned()] };
        Plan { engine, scripts: vec![script("s", text, 1)], ..plan }
    }

    fn v(path: &str) -> String {
        Session::open(path, &[]).unwrap().query("SELECT v FROM t").unwrap().rows[0][0].clone().unwrap()
    }

    #[test]
    fn contended_transactions_are_repeated_until_all_have_ended_well() {
        let (_folder, path) = database();
        let text = "\\set one 1\nBEGIN;\nSELECT v AS old FROM t WHERE id = :one \\gset\n\\set new :old + 1\n\
                    UPDATE t SET v = :new WHERE id = 1;\nEND;\n";
        let plan = on(&path, text, Plan { max_tries: 0, ..plan(4, 1, Stop::Transactions(50)) });
        let summary = run(&plan).summary;
        assert_eq!((summary.transactions, summary.failed, summary.commits, summary.threads), (200, 0, 200, 4));
        assert_eq!(v(&path), "200");
        assert_eq!(summary.errors.values().sum::<u64>(), summary.retries);
    }

    #[test]
    fn an_open_loop_shares_one_schedule_among_all_clients() {
        let (_folder, path) = database();
        let open = Schedule::Open { rate: 200.0, arrivals: Arrivals::Fixed };
        let plan = on(&path, "SELECT v FROM t;\n", Plan { schedule: open, ..plan(3, 1, Stop::DurationS(0.5)) });
        let summary = run(&plan).summary;
        assert_eq!(summary.transactions + summary.not_started + summary.unfinished, 100);
    }

    #[test]
    fn an_endless_statement_is_ended_when_the_trial_is_stopped() {
        let (_folder, path) = database();
        let text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;\n";
        let plan = on(&path, text, plan(2, 1, Stop::DurationS(60.0)));
        let polls = AtomicUsize::new(0);
        let summary = drive(&plan, None, &Control::new(), &mut || polls.fetch_add(1, Relaxed) < 4).unwrap().summary;
        assert!(summary.cut_short);
        assert_eq!((summary.transactions, summary.unfinished), (0, 2));
    }
}

#[test]
fn a_thread_that_panics_ends_the_trial_at_once_and_is_its_error() {
    struct Broken(usize);
    impl Worker for Broken {
        fn io(&self) -> &'static str {
            "null"
        }

        fn run(&mut self, start: &Start, _: &mut Recorder) -> UnfinishedWork {
            assert!(self.0 == 0, "broken");
            while !start.must_end() {
                std::thread::yield_now();
            }
            UnfinishedWork::default()
        }
    }
    let (plan, control) = (plan(2, 2, Stop::DurationS(600.0)), Control::new());
    let active_clients = AtomicUsize::new(2);
    let context = DriveContext {
        plan: &plan,
        jobs: None,
        kinds: 1,
        client_ranges: client_ranges(2, 2),
        control: &control,
        active_clients,
    };
    let error = threads::run(&context, |thread, _| Ok(Broken(thread)), &mut || true).err().unwrap();
    assert_eq!(error.to_string(), "thread drive-1: panicked: broken");
}

#[test]
fn two_trials_run_at_the_same_time() {
    let trials: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..4).map(|n| scope.spawn(move || run(&plan(n, 1, Stop::Transactions(500))))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().summary.transactions).collect()
    });
    assert_eq!(trials, [500, 1_000, 1_500]);
}

#[test]
fn an_outcome_survives_the_way_between_processes() {
    let outcome = run(&plan(3, 1, Stop::Transactions(100)));
    let bytes = outcome.to_bytes();
    let read = Outcome::from_bytes(&bytes).unwrap();
    assert_eq!(serde_json::to_value(&read.summary).unwrap(), serde_json::to_value(&outcome.summary).unwrap());
    assert_eq!(read.timeline, outcome.timeline);
    assert_eq!(read.histograms["response_time"].buckets(), outcome.histograms["response_time"].buckets());
    assert!((0..bytes.len()).step_by(97).all(|end| Outcome::from_bytes(&bytes[..end]).is_err()));
}

#[test]
fn a_plan_that_cannot_be_run_is_refused() {
    let good = plan(1, 1, Stop::DurationS(1.0));
    let bad = [
        Plan { clients: 0, ..good.clone() },
        Plan { clients: 100_000, ..good.clone() },
        Plan { threads: 0, ..good.clone() },
        Plan { stop: Stop::DurationS(0.0), ..good.clone() },
        Plan { stop: Stop::Transactions(0), ..good.clone() },
        Plan { warmup_s: -1.0, ..good.clone() },
        Plan { schedule: Schedule::Open { rate: 0.0, arrivals: Arrivals::Fixed }, ..good.clone() },
        Plan { schedule: Schedule::Closed { think_time_s: f64::NAN }, ..good.clone() },
        Plan { scripts: vec![script("typo", "\\sett a 1\n", 1)], ..good },
    ];
    for plan in bad {
        let error = drive(&plan, None, &Control::new(), &mut || true).unwrap_err();
        assert_eq!(error.kind, crate::Kind::Input, "{error}");
    }
}

/// A worker of one transaction. When it is dropped, it writes "gone" to a file. This represents the end of a
/// connection.
struct Holder(std::path::PathBuf);

impl Drop for Holder {
    fn drop(&mut self) {
        std::fs::write(&self.0, "gone").unwrap();
    }
}

impl threads::Worker for Holder {
    fn io(&self) -> &'static str {
        "none"
    }

    fn run(&mut self, _start: &threads::Start, recorder: &mut crate::measure::Recorder) -> UnfinishedWork {
        let now = crate::measure::clock::now();
        recorder.complete(0, now, now, now);
        recorder.close(now);
        UnfinishedWork::default()
    }
}

#[test]
fn connections_stay_open_until_the_last_samples_are_taken() {
    let folder = crate::testing::Folder::new();
    let held = folder.0.join("connection");
    std::fs::write(&held, "connected").unwrap();
    let observer = ObserverSource {
        name: "held".to_owned(),
        kind: "file".to_owned(),
        target: held.to_str().unwrap().to_owned(),
        period_s: 10.0,
    };
    let plan = Plan { observers: vec![observer], ..plan(1, 1, Stop::Transactions(1)) };
    let kinds = [Kind { name: "one".to_owned(), weight: 1, statements: 0, positions: Vec::new() }];
    let only = std::sync::Mutex::new(Some(Holder(held.clone())));
    let make = |_, _| Ok(only.lock().unwrap().take().unwrap());
    let outcome = work(&plan, &Control::new(), 1, &kinds, |context| threads::run(context, make, &mut || true)).unwrap();
    let (_, last) = outcome.samples["held"].last().unwrap();
    let after = std::fs::read(&held).unwrap();
    assert_eq!((last.as_slice(), after.as_slice()), (b"connected".as_slice(), b"gone".as_slice()));
}

#[test]
fn a_warm_up_has_its_own_transactions() {
    for (clients, threads) in [(1, 1), (5, 2)] {
        let engine = Engine::Null { service_ns: 1_000_000 };
        let outcome = run(&Plan { engine, warmup_s: 0.2, ..plan(clients, threads, Stop::Transactions(30)) });
        let planned = 30 * clients as u64;
        assert_eq!(outcome.summary.transactions, planned);
        assert_eq!(outcome.histograms["response_time"].count(), planned);
        assert!(outcome.summary.completed > planned);
    }
}

const FAILING: &str = "SELECT 1;\n\\set x 1 / 0\nSELECT 2;\n";

#[test]
fn an_error_of_the_first_second_ends_the_trial_with_its_place() {
    let scripts = vec![script("good", "SELECT 1;\n", 9), script("bad", FAILING, 1)];
    for warmup_s in [0.0, 30.0] {
        let stopping =
            Plan { scripts: scripts.clone(), warmup_s, on_error: OnError::Stop, ..plan(4, 2, Stop::DurationS(30.0)) };
        let summary = run(&stopping).summary;
        assert!(summary.aborted && summary.stopped_on_error && !summary.cut_short);
        assert_eq!(
            summary.cause,
            "script bad, line 2, command 2: error of the script itself: division by zero; in: \\set x 1 / 0"
        );
        assert!(summary.elapsed_s < 5.0);
    }
}

#[test]
fn a_plan_may_go_on_after_errors_and_each_script_says_how_many_failed() {
    let scripts = vec![script("good", "SELECT 1;\n", 1), script("bad", FAILING, 1)];
    let summary = run(&Plan { scripts, ..plan(2, 1, Stop::Transactions(200)) }).summary;
    let [good, bad] = &summary.scripts[..] else { panic!("two scripts") };
    assert!(!summary.aborted && !summary.stopped_on_error);
    assert_eq!((good.failed, good.failed_in_all, good.first_failure.as_str()), (0, 0, ""));
    assert_eq!((bad.transactions, bad.failed + good.transactions), (0, 400));
    assert!(bad.first_failure.starts_with("script bad, line 2"), "{}", bad.first_failure);
}

#[test]
fn seconds_that_have_passed_are_shown_while_the_trial_runs() {
    let control = Control::new();
    let engine = Engine::Null { service_ns: 1_000_000 };
    let seen = std::cell::Cell::new(0);
    let outcome = drive(&Plan { engine, ..plan(2, 2, Stop::DurationS(1.5)) }, None, &control, &mut || {
        seen.set(control.seconds(0).len());
        true
    });
    let summary = outcome.unwrap().summary;
    let seconds = control.seconds(0);
    assert!(seen.get() >= 1);
    assert_eq!(seconds.iter().map(|second| second.transactions).sum::<u64>(), summary.transactions);
    assert_eq!(seconds.iter().map(|second| second.width_s).collect::<Vec<_>>(), [1.0, 0.5]);
    assert!(seconds[0].mean_s >= 0.001 && control.seconds(2).is_empty());
}
