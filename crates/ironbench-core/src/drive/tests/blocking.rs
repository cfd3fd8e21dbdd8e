//! Tests of clients of blocking engines. Calls may be in progress when the window opens or closes.

use std::borrow::Cow;

use super::plan;
use crate::drive::blocking::GiveUpTimer;
use crate::drive::plan::{Engine, OnError, Plan, Stop};
use crate::drive::{Control, drive_with};
use crate::measure::clock::{self, MILLISECOND, SECOND};
use crate::wire::library::{Answer, Library, Parameter, StatementError};
use pgbench_script::Sql;

/// A library whose calls compute until this instant without pause.
struct Computing(u64);

impl Library for Computing {
    fn run<'v>(&mut self, _: &Sql, _: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, StatementError> {
        let mut sum = 0u64;
        while clock::now() < self.0 {
            sum = std::hint::black_box(sum + 1);
        }
        let over =
            StatementError { class: Cow::from("over"), message: "over".into(), retryable: false, lasting: false };
        if sum > 0 { Ok(Answer::default()) } else { Err(over) }
    }

    fn in_transaction(&self) -> bool {
        false
    }

    fn rollback(&mut self) -> Result<(), StatementError> {
        Ok(())
    }
}

#[test]
fn cpu_time_is_that_of_the_window_though_a_call_lasts_from_before_it_until_after_it() {
    let plan = Plan {
        engine: Engine::Called { mysql: false, sql_mode: String::new() },
        warmup_s: 0.1,
        ..plan(1, 1, Stop::DurationS(0.3))
    };
    let until = clock::now() + 800 * MILLISECOND;
    let open = |_: &_, _| Ok(Computing(until));
    let summary = drive_with(&plan, None, &Control::new(), open, GiveUpTimer::default(), &mut || true).unwrap().summary;
    let cpu_s = summary.client_cpu_s.user + summary.client_cpu_s.system;
    let whole_s = 800.0 * MILLISECOND as f64 / SECOND as f64;
    assert!(cpu_s > 0.0, "a clock that is read when the call returns shows nothing");
    assert!(cpu_s < whole_s, "{cpu_s} s is the time of the call");
}

/// A remote library that loses its connection after this number of calls.
struct Breaking(u64);

impl Library for Breaking {
    fn run<'v>(&mut self, _: &Sql, _: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, StatementError> {
        let lost = || StatementError { class: "08S01".into(), message: "gone".into(), retryable: false, lasting: true };
        self.0 = self.0.checked_sub(1).ok_or_else(lost)?;
        Ok(Answer::default())
    }

    fn in_transaction(&self) -> bool {
        false
    }

    fn rollback(&mut self) -> Result<(), StatementError> {
        Err(StatementError { class: "08003".into(), message: "not connected".into(), retryable: false, lasting: true })
    }

    fn is_remote(&self) -> bool {
        true
    }
}

#[test]
fn a_called_client_that_loses_its_connection_ends_alone_and_the_trial_with_the_last() {
    let of = |limits: [u64; 3], on_error| {
        let plan = Plan {
            engine: Engine::Called { mysql: false, sql_mode: String::new() },
            on_error,
            ..plan(3, 1, Stop::Transactions(5))
        };
        let open = |_: &_, client: usize| Ok(Breaking(limits[client]));
        drive_with(&plan, None, &Control::new(), open, GiveUpTimer::default(), &mut || true).unwrap().summary
    };
    let one = of([5, 2, 9], OnError::Continue);
    assert_eq!((one.transactions, one.failed, one.clients_lost, one.connections_lost), (12, 1, 1, 1));
    assert_eq!((one.server_commits_uncertain, one.aborted), (1, false));
    let all = of([0, 2, 4], OnError::Continue);
    assert!(all.aborted && all.cause.contains("08S01") && all.clients_lost == 3, "{}", all.cause);
    assert!(of([5, 2, 9], OnError::Stop).aborted);
}
