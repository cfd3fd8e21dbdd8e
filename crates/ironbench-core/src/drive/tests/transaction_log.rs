//! Tests of the transaction logs of whole trials.

use super::{plan, run, script};
use crate::drive::blocking::GiveUpTimer;
use crate::drive::plan::{Arrivals, Engine, Plan, Schedule, Stop, TransactionLogFile};
use crate::drive::{Control, Outcome, drive, drive_with};
use crate::testing::Folder;
use crate::wire::library::{Answer, Library, Parameter, StatementError};
use pgbench_script::Sql;

/// Splits each line into its fields.
fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(' ').collect()).collect()
}

fn logged(folder: &Folder, sampling_rate: f64, plan: Plan) -> Plan {
    let path = folder.0.join("log").to_str().unwrap().to_owned();
    Plan { log: Some(TransactionLogFile { path, sampling_rate }), ..plan }
}

fn with_log(sampling_rate: f64, plan: Plan, run: impl Fn(&Plan) -> Outcome) -> (Outcome, String) {
    let folder = Folder::new();
    let outcome = run(&logged(&folder, sampling_rate, plan));
    (outcome, std::fs::read_to_string(folder.0.join("log")).unwrap())
}

/// Checks that the lines of each client are numbered from 1.
fn assert_numbered(lines: &[Vec<&str>], clients: usize) {
    for client in 0..clients {
        let name = client.to_string();
        let numbers = lines.iter().filter(|line| line[0] == name).map(|line| line[1].parse::<usize>().unwrap());
        assert!(numbers.enumerate().all(|(place, number)| number == place + 1), "client {client}");
    }
}

#[test]
fn each_measured_transaction_has_one_line_and_the_times_are_those_of_the_histogram() {
    let engine = Engine::Null { service_ns: 1_000_000 };
    let warmed = Plan { engine, warmup_s: 0.1, ..plan(5, 2, Stop::DurationS(0.4)) };
    let (outcome, text) = with_log(1.0, warmed, run);
    let lines = lines(&text);
    assert_eq!(lines.len() as u64, outcome.summary.transactions);
    assert!(outcome.summary.completed > outcome.summary.transactions);
    assert_numbered(&lines, 5);
    let sum_us: u64 = lines.iter().map(|line| line[2].parse::<u64>().unwrap()).sum();
    let response = &outcome.histograms["service_time"];
    let expected_us = response.mean_s() * 1e6 * response.count() as f64;
    assert!((sum_us as f64 / expected_us - 1.0).abs() < 0.01, "{sum_us} and {expected_us}");
    let begun_s = outcome.summary.started_unix_s;
    for line in lines {
        assert_eq!((line.len(), line[3]), (6, "0"));
        let ended_s = line[4].parse::<f64>().unwrap() + line[5].parse::<f64>().unwrap() / 1e6;
        assert!((-0.01..0.5).contains(&(ended_s - begun_s)), "{ended_s} and {begun_s}");
    }
}

#[test]
fn lag_and_retries_have_fields_where_the_load_has_them_and_failures_have_no_time() {
    let scripts = vec![script("good", "SELECT 1;\n", 1), script("bad", super::FAILING, 1)];
    let schedule = Schedule::Open { rate: 20_000.0, arrivals: Arrivals::Fixed };
    let both = Plan { scripts, schedule, max_tries: 3, ..plan(2, 2, Stop::Transactions(200)) };
    let (outcome, text) = with_log(1.0, both, run);
    let lines = lines(&text);
    let failed: Vec<_> = lines.iter().filter(|line| line[2] == "failed").collect();
    assert_eq!(lines.len() as u64, outcome.summary.transactions + outcome.summary.failed);
    assert_eq!(failed.len() as u64, outcome.summary.failed);
    assert!(failed.iter().all(|line| line[3] == "1"));
    for line in lines.iter().filter(|line| line[2] != "failed") {
        assert_eq!((line.len(), line[7]), (8, "0"));
        assert!(line[6].parse::<u64>().unwrap() <= line[2].parse().unwrap(), "the delay is part of the response time");
    }
}

#[test]
fn a_sample_is_drawn_by_the_seed_and_its_numbers_count_every_transaction() {
    let sample = || with_log(0.25, plan(4, 1, Stop::Transactions(1000)), run).1;
    let places =
        |text: &str| lines(text).iter().map(|line| (line[0].to_owned(), line[1].to_owned())).collect::<Vec<_>>();
    let text = sample();
    assert!((800..1200).contains(&text.lines().count()), "{}", text.lines().count());
    assert!(lines(&text).iter().any(|line| line[1].parse::<usize>().unwrap() > 900));
    assert_eq!(places(&text), places(&sample()));
}

#[test]
fn an_existing_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("log"), "kept").unwrap();
    let logged = logged(&folder, 1.0, plan(1, 1, Stop::Transactions(1)));
    let refused = drive(&logged, None, &Control::new(), &mut || true).unwrap_err();
    assert_eq!((refused.kind, refused.subject), (crate::Kind::Input, logged.log.unwrap().path));
    assert_eq!(std::fs::read_to_string(folder.0.join("log")).unwrap(), "kept");
}

struct Answering;

impl Library for Answering {
    fn run<'v>(&mut self, _: &Sql, _: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, StatementError> {
        Ok(Answer::default())
    }

    fn in_transaction(&self) -> bool {
        false
    }

    fn rollback(&mut self) -> Result<(), StatementError> {
        Ok(())
    }
}

#[test]
fn clients_of_engines_that_block_log_too() {
    let engine = Engine::Called { mysql: false, sql_mode: String::new() };
    let scripts = vec![script("good", "SELECT 1;\n", 1), script("bad", super::FAILING, 1)];
    let blocking = Plan { engine, scripts, ..plan(3, 3, Stop::Transactions(100)) };
    let drive = |plan: &Plan| {
        drive_with(plan, None, &Control::new(), |_: &_, _| Ok(Answering), GiveUpTimer::default(), &mut || true).unwrap()
    };
    let (outcome, text) = with_log(1.0, blocking, drive);
    let lines = lines(&text);
    assert_numbered(&lines, 3);
    assert_eq!(lines.len() as u64, outcome.summary.transactions + outcome.summary.failed);
    assert_eq!(lines.iter().filter(|line| line[2] == "failed").count() as u64, outcome.summary.failed);
}
