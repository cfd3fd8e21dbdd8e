//! Tests of how the transactions that are due inside the window are counted.

use super::*;

fn open(rate: f64, service_ns: u64, plan: Plan) -> Plan {
    let schedule = Schedule::Open { rate, arrivals: Arrivals::Fixed };
    Plan { engine: Engine::Null { service_ns }, schedule, ..plan }
}

/// Returns a plan whose first two clients never finish their first transaction. The engine answers all others.
fn two_are_stuck(plan: Plan) -> Plan {
    let text = "\\if :client_id < 2\n\\sleep 600 s\n\\endif\nSELECT 1;\n";
    Plan { scripts: vec![script("stuck", text, 1)], ..plan }
}

#[test]
fn every_transaction_due_in_the_window_is_done_unfinished_or_not_started() {
    // Two clients that need 30 ms per transaction cannot reach 200 transactions per second. Most transactions do not
    // start in time, but they are counted.
    let outcome = run(&open(200.0, 30_000_000, plan(2, 1, Stop::DurationS(0.5))));
    let summary = outcome.summary;
    assert_eq!(summary.due, Some(100));
    assert_eq!(summary.transactions + summary.unfinished + summary.not_started, 100);
    assert_eq!(summary.unfinished, 2);
    assert!(summary.not_started > 50);
    // The first transaction that did not start waited at least as long as those after it.
    assert!(summary.longest_wait_s > 0.25, "{}", summary.longest_wait_s);
}

#[test]
fn what_waits_at_the_end_of_an_open_loop_is_drained_and_recorded() {
    // The service time is 4 ms, and a transaction starts every 2.5 ms.
    let outcome = run(&open(400.0, 4_000_000, plan(1, 1, Stop::DurationS(0.25))));
    let (summary, response) = (&outcome.summary, &outcome.histograms["response_time"]);
    assert!(summary.not_started > 20, "{}", summary.not_started);
    assert_eq!((summary.due, response.count()), (Some(100), 100));
    assert!(summary.censored + summary.transactions < 100, "some ended while the trial drained");
    // The last of 100 waits for almost 0.15 s.
    assert!(response.max_s() > 0.14, "{}", response.max_s());
    assert_eq!(outcome.histograms["service_time"].count(), summary.transactions);
}

#[test]
fn what_has_not_ended_after_the_drain_is_censored_at_the_time_it_waited() {
    let outcome = run(&open(100.0, 600_000_000_000, plan(3, 2, Stop::DurationS(0.2))));
    let (summary, response) = (&outcome.summary, &outcome.histograms["response_time"]);
    assert_eq!((summary.due, summary.transactions), (Some(20), 0));
    assert_eq!((summary.censored, response.count(), summary.unfinished), (20, 20, 3));
    // In tests, the trial waits 2 s for transactions in progress.
    assert!(response.min_s() > 1.99 && response.max_s() > 2.15, "{} {}", response.min_s(), response.max_s());
    assert!(summary.longest_wait_s > 0.18, "{}", summary.longest_wait_s);
}

#[test]
fn any_free_client_takes_what_is_due_whichever_thread_it_is_on() {
    for threads in [1, 3] {
        let plan = two_are_stuck(plan(3, threads, Stop::DurationS(0.5)));
        let summary = run(&open(200.0, 0, plan)).summary;
        assert_eq!((summary.due, summary.censored), (Some(100), 2), "{threads} threads");
        assert_eq!(summary.transactions + summary.unfinished + summary.not_started, 100, "{threads} threads");
        assert!(summary.not_started < 50, "{threads} threads: {}", summary.not_started);
    }
}

#[test]
fn clients_of_a_closed_loop_that_wait_at_the_end_are_counted_with_their_time() {
    let engine = Engine::Null { service_ns: 1_000_000 };
    let outcome = run(&Plan { engine, ..two_are_stuck(plan(3, 2, Stop::DurationS(0.4))) });
    let summary = &outcome.summary;
    assert_eq!(summary.due, None);
    assert!(summary.cut_off >= 2 && summary.cut_off <= summary.unfinished, "{}", summary.cut_off);
    assert!(summary.cut_off_s > 0.4 && summary.longest_wait_s > 0.2, "{}", summary.cut_off_s);
    assert_eq!(summary.censored, 2);
    assert!(outcome.histograms["response_time"].max_s() > 2.0, "the time it had waited when the trial gave up");
    assert!(outcome.histograms["service_time"].max_s() < 2.0);
}

#[test]
fn the_time_between_two_waits_and_the_replies_of_each_are_recorded() {
    let outcome = run(&plan(8, 1, Stop::DurationS(0.1)));
    let (delay, replies) = (&outcome.histograms["loop_delay"], &outcome.histograms["replies_per_wait"]);
    assert!(delay.count() > 0 && delay.count() == replies.count());
    // The engine answers all eight at the same time.
    assert_eq!((replies.quantile_s(0.5) * 1e9).round() as u64, 8);
    assert!(outcome.summary.loop_wait_s > 0.0);
}

mod sqlite {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn clients_that_block_drain_what_was_due_as_well() {
        let folder = Folder::new();
        let path = folder.0.join("test.db").to_str().unwrap().to_owned();
        std::fs::write(&path, "").unwrap();
        let open = Plan {
            engine: Engine::Sqlite { path, pragmas: Vec::new() },
            scripts: vec![script("slow", "\\sleep 4 ms\nSELECT 1;\n", 1)],
            ..open(400.0, 0, plan(1, 1, Stop::DurationS(0.25)))
        };
        let outcome = run(&open);
        let (summary, response) = (&outcome.summary, &outcome.histograms["response_time"]);
        assert_eq!(summary.due, Some(100));
        assert_eq!(summary.transactions + summary.unfinished + summary.not_started, 100);
        assert_eq!(response.count(), 100);
        assert!(summary.censored + summary.transactions < 100, "some ended while the trial drained");
    }
}

mod recorded {
    use super::*;
    use crate::drive::jobs::Next;
    use crate::drive::kind::Kind;
    use crate::drive::transaction::{Ending, Step, Transaction};
    use crate::drive::{compile, engines};
    use crate::measure::Tally;
    use crate::measure::clock::MILLISECOND;
    use crate::wire::transport::Mailbox;

    /// A client that follows its own recorded schedule, with a transaction every 10 ms.
    struct Recorded {
        client: usize,
        origin: u64,
        begun: u64,
        of: u64,
    }

    impl Recorded {
        fn due(&self, number: u64) -> u64 {
            self.origin + number * 10 * MILLISECOND
        }
    }

    impl Transaction for Recorded {
        fn start(&mut self, origin: u64) {
            self.origin = origin;
        }

        fn begin(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            self.begun += 1;
            Step::Send
        }

        fn resume(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            Step::Receive
        }

        fn reply(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            Step::Ended(Ending { kind: 0, well: true, retries: 0 })
        }

        fn job_queue(&self) -> Option<usize> {
            Some(self.client)
        }

        fn claim(&mut self, now: u64) -> Next {
            match self.due(self.begun) {
                _ if self.begun == self.of => Next::Over,
                due if due <= now => Next::Job { script: 0, due },
                due => Next::NotBefore(due),
            }
        }

        fn not_started(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new((self.begun..self.of).map(|number| self.due(number)))
        }
    }

    /// Runs two clients for 0.5 s, in which 50 recorded transactions of each client are due.
    fn replay(service_ns: u64) -> Outcome {
        let plan = plan(2, 2, Stop::DurationS(0.5));
        let kinds = Kind::of_program(&compile(&plan, None).unwrap());
        work(&plan, &Control::new(), plan.threads, &kinds, |context| {
            let client = |client| Recorded { client, origin: 0, begun: 0, of: 60 };
            engines::run_null(context, service_ns, client, &mut || true)
        })
        .unwrap()
    }

    #[test]
    fn what_waits_at_the_end_is_drained_and_its_service_time_is_not_its_response_time() {
        let outcome = replay(20 * MILLISECOND);
        let (summary, response) = (&outcome.summary, &outcome.histograms["response_time"]);
        assert_eq!(summary.transactions + summary.unfinished + summary.not_started, 100);
        assert!(summary.not_started > 40, "{}", summary.not_started);
        assert_eq!((response.count(), summary.completed, summary.censored), (100, 100, 0));
        // The last of 50 transactions of a client starts 49 times 10 ms late.
        assert!(response.max_s() > 0.5 && response.max_s() < 0.7, "{}", response.max_s());
        assert!(summary.longest_wait_s > 0.2, "{}", summary.longest_wait_s);
        assert!(outcome.histograms["service_time"].quantile_s(0.5) < 0.03);
    }

    #[test]
    fn what_never_starts_is_censored_at_the_time_it_waited() {
        let outcome = replay(600_000 * MILLISECOND);
        let (summary, response) = (&outcome.summary, &outcome.histograms["response_time"]);
        assert_eq!((summary.transactions, summary.unfinished, summary.not_started), (0, 2, 98));
        assert_eq!((summary.censored, response.count()), (100, 100));
        // In tests, the trial waits 2 s for transactions in progress. The last one was due 10 ms before the end.
        assert!(response.min_s() > 2.0 && response.min_s() < 2.2, "{}", response.min_s());
        assert!(response.max_s() > 2.49, "{}", response.max_s());
        assert!(summary.longest_wait_s > 0.49, "{}", summary.longest_wait_s);
    }
}
