//! Tests of trials in turns on the null engine. Trials must not hang, and some must end at once.

use std::time::{Duration, Instant};

use super::{FAILING, plan, script};
use crate::drive::plan::{Engine, OnError, Plan, Stop};
use crate::drive::summary::Summary;
use crate::drive::{Control, drive};
use crate::measure::clock::{MILLISECOND, SECOND};

#[test]
fn a_turn_whose_transactions_do_not_end_ends_the_trial_and_says_why() {
    let plan = Plan { engine: Engine::Null { service_ns: 3_600 * SECOND }, ..plan(2, 1, Stop::DurationS(1.0)) };
    let summary = of_one_turn(&plan, Duration::ZERO, Vec::new());
    assert!(summary.aborted && summary.cause.contains("after its slice"), "{}", summary.cause);
    assert_eq!(summary.server_commits_uncertain, 2);
}

#[test]
fn an_error_at_the_start_of_the_first_turn_ends_the_trial_however_long_others_had_theirs_before() {
    let scripts = vec![script("bad", FAILING, 1)];
    let plan = Plan { scripts, on_error: OnError::Stop, ..plan(2, 1, Stop::DurationS(1.0)) };
    let summary = of_one_turn(&plan, Duration::from_millis(1_200), Vec::new());
    assert!(summary.aborted && summary.stopped_on_error, "{}", summary.cause);
}

#[test]
fn a_turn_on_cpus_that_the_kernel_refuses_ends_the_trial_and_says_why() {
    let summary = of_one_turn(&plan(2, 1, Stop::DurationS(1.0)), Duration::ZERO, vec![1 << 20]);
    assert!(summary.aborted && summary.cause.contains("CPUs"), "{}", summary.cause);
}

#[test]
fn a_caller_who_gave_up_waiting_is_told_at_once_whether_the_trial_is_over() {
    let (plan, control) = (plan(2, 1, Stop::DurationS(1.0)), Control::new());
    control.turns.ask();
    std::thread::scope(|scope| {
        let driven = scope.spawn(|| drive(&plan, None, &control, &mut || true).unwrap());
        let until = Instant::now() + Duration::from_secs(5);
        let connected = control.turns.rested(&mut || Instant::now() < until);
        control.turns.begin(0, 3_600 * SECOND, Vec::new());
        let turned = control.turns.rested(&mut || false);
        let over_in_its_turn = control.turns.is_over();
        control.stop();
        driven.join().unwrap();
        assert!(connected.is_some() && turned.is_none());
        assert!(!over_in_its_turn && control.turns.is_over());
    });
}

/// Runs one turn of 50 ms on these CPUs. The turn starts `after` all clients have connected and this time has passed.
/// Stops a trial that has not ended after 5 s.
fn of_one_turn(plan: &Plan, after: Duration, cpus: Vec<usize>) -> Summary {
    let control = Control::new();
    control.turns.ask();
    std::thread::scope(|scope| {
        let driven = scope.spawn(|| drive(plan, None, &control, &mut || true).unwrap());
        let until = Instant::now() + Duration::from_secs(5);
        let mut patient = || Instant::now() < until;
        control.turns.rested(&mut patient);
        std::thread::sleep(after);
        control.turns.begin(0, 50 * MILLISECOND, cpus);
        control.turns.rested(&mut patient);
        control.stop();
        driven.join().unwrap().summary
    })
}
