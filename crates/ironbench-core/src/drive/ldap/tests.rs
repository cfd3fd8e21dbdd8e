use super::*;
use crate::drive::Control;
use crate::drive::plan::{Engine, Plan, Schedule, ScriptSource, Stop};
use crate::drive::script::Clients;
use crate::drive::threads::DriveContext;
use crate::measure::directory::Answers;
use crate::wire::ldap::ber::{self, tag};

use pgbench_script::{Program, Seeds, Source};
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;

fn plan() -> Plan {
    Plan {
        engine: Engine::Null { service_ns: 0 },
        scripts: Vec::<ScriptSource>::new(),
        work: None,
        jobs: None,
        variables: Vec::new(),
        clients: 1,
        threads: 1,
        client_cpus: Vec::new(),
        seed: 1,
        schedule: Schedule::Closed { think_time_s: 0.0 },
        stop: Stop::Transactions(1),
        warmup_s: 0.0,
        max_tries: 2,
        retried_errors: Vec::new(),
        on_error: crate::drive::plan::OnError::Continue,
        reconnect_on_loss: false,
        statements: false,
        observers: Vec::new(),
        part: None,
        log: None,
    }
}

fn program(text: &str) -> Program {
    Program::compile(&[Source { name: "s".into(), text: text.into(), weight: 1 }], &[]).unwrap()
}

fn own(user: &str) -> OwnBind {
    let text = format!(
        r#"{{"host":"h","port":1,"ldaps":false,"tls":"disable","base":"","mechanism":"simple","user":"{user}"}}"#
    );
    OwnBind::of(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Runs the script `text`. Each item of `answers` arrives before one step. Returns the steps and the counts.
fn run(text: &str, answers: &[Vec<u8>]) -> (Vec<Step>, Tally) {
    run_as(None, text, answers)
}

/// Does the same as `run`. If `own` is given, the client binds as its own user again after it has bound as another
/// user.
fn run_as(own: Option<&OwnBind>, text: &str, answers: &[Vec<u8>]) -> (Vec<Step>, Tally) {
    let (plan, control, program) = (plan(), Control::new(), program(text));
    let client_ranges = crate::drive::threads::client_ranges(1, 1);
    let active_clients = AtomicUsize::new(1);
    let orders = DriveContext { plan: &plan, jobs: None, kinds: 1, client_ranges, control: &control, active_clients };
    let operations = Operations::of(&program, "").unwrap();
    let clients = Clients::new(&program, &orders);
    let random = Seeds::new(1, 1, true).client(0);
    let mut client = LdapScript::new(clients.client(0), &operations, random, false, 0).binding_back(own);
    let (mut mailbox, mut tally) = (Mailbox::default(), Tally::new(1));
    let mut steps = vec![client.begin(&mut mailbox, &mut tally)];
    for answer in answers {
        mailbox.inbox.append(answer);
        steps.push(client.reply(&mut mailbox, &mut tally));
    }
    (steps, tally)
}

pub fn answer(id: i32, tag: u8, code: i32) -> Vec<u8> {
    let mut out = Vec::new();
    ber::nested(&mut out, tag::SEQUENCE, |out| {
        ber::integer(out, tag::INTEGER, id);
        ber::nested(out, tag, |out| {
            ber::integer(out, tag::ENUMERATED, code);
            ber::octets(out, tag::OCTETS, b"");
            ber::octets(out, tag::OCTETS, b"words");
        });
    });
    out
}

fn entry(id: i32, dn: &str, attributes: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    ber::nested(&mut out, tag::SEQUENCE, |out| {
        ber::integer(out, tag::INTEGER, id);
        ber::nested(out, op::ENTRY, |out| {
            ber::octets(out, tag::OCTETS, dn.as_bytes());
            ber::nested(out, tag::SEQUENCE, |out| {
                for (name, value) in attributes {
                    ber::nested(out, tag::SEQUENCE, |out| {
                        ber::octets(out, tag::OCTETS, name.as_bytes());
                        ber::nested(out, tag::SET, |out| ber::octets(out, tag::OCTETS, value.as_bytes()));
                    });
                }
            });
        });
    });
    out
}

const WELL: Step = Step::Ended(Ending { kind: 0, well: true, retries: 0 });
const BADLY: Step = Step::Ended(Ending { kind: 0, well: false, retries: 0 });

#[test]
fn the_entry_that_a_search_finds_gives_the_next_operation_its_name() {
    let text = "search dc=x?CN?sub?(a=b)\n\\gset\nmodify :dn?replace a=:cn;";
    let found = [entry(100, "cn=y", &[("cn", "z"), ("cn", "other")]), answer(100, op::SEARCHED, 0)].concat();
    let (steps, tally) = run(text, &[found, answer(101, op::MODIFY + 1, 0)]);
    assert_eq!(steps, [Step::Send, Step::Send, WELL]);
    assert_eq!((tally.commits, tally.errors.len()), (1, 0));
}

#[test]
fn entries_and_result_codes_are_counted() {
    let found = [entry(100, "cn=y", &[]), entry(100, "cn=z", &[]), answer(100, op::SEARCHED, 0)].concat();
    let empty = answer(101, op::SEARCHED, 0);
    let limited = [entry(102, "cn=y", &[]), answer(102, op::SEARCHED, code::SIZE_LIMIT_EXCEEDED)].concat();
    let compared = answer(103, op::COMPARE + 1, code::COMPARE_FALSE);
    let text = "search dc=x;\nsearch dc=x;\nsearch dc=x??sub??sizelimit=1;\ncompare dc=x?a=b;";
    let (steps, tally) = run(text, &[found, empty, limited, compared]);
    assert_eq!(steps.last(), Some(&WELL));
    let expected = Answers {
        success: 2,
        searches: 3,
        empty_searches: 1,
        entries: 3,
        size_limited: 1,
        compare_true: 0,
        compare_false: 1,
    };
    assert_eq!(tally.directory, expected);
}

#[test]
fn a_search_for_one_entry_that_finds_none_fails() {
    let (steps, tally) = run("search dc=x?cn?sub?(a=b)\n\\gset\ndelete :dn;", &[answer(100, op::SEARCHED, 0)]);
    assert_eq!(steps, [Step::Send, BADLY]);
    assert!(tally.failures[0].as_ref().unwrap().contains("needs one entry, but the server returned 0"));
}

#[test]
fn a_result_code_that_is_no_success_fails_the_transaction_and_is_counted_by_its_name() {
    let (steps, tally) = run("delete dc=x;\ndelete dc=y;", &[answer(100, 0x6b, 32)]);
    assert_eq!(steps, [Step::Send, BADLY]);
    assert_eq!((tally.errors["noSuchObject"], tally.kinds[0].failed, tally.commits), (1, 1, 0));
    assert!(tally.failures[0].as_ref().unwrap().contains("noSuchObject (32): words"));
}

#[test]
fn changes_that_the_server_refused_are_counted() {
    let (_, tally) = run("modify dc=x?replace a=b;", &[answer(100, op::MODIFY + 1, 50)]);
    assert_eq!((tally.refused_changes, tally.commits), (1, 0));
    assert_eq!(run("bind dc=x?p;", &[answer(100, op::BOUND, 49)]).1.refused_changes, 0);
}

#[test]
fn after_a_bind_as_somebody_else_the_connection_is_its_own_users_again() {
    let text = "bind dc=x?p;\ndelete dc=y;";
    let (admin, nobody) = (own("cn=admin"), own(""));
    let well = [answer(100, op::BOUND, 0), answer(101, op::BOUND, 0), answer(102, 0x6b, 0)];
    assert_eq!(run_as(Some(&admin), text, &well).0, [Step::Send, Step::Send, Step::Send, WELL]);
    // A failed bind leaves the connection anonymous, so the client must bind again (RFC 4513, 4).
    let badly = [answer(100, op::BOUND, 49), answer(101, op::BOUND, 0)];
    assert_eq!(run_as(Some(&admin), text, &badly).0, [Step::Send, Step::Send, BADLY]);
    let refused = [answer(100, op::BOUND, 0), answer(101, op::BOUND, 49)];
    let (steps, _) = run_as(Some(&admin), text, &refused);
    assert!(matches!(&steps[2], Step::Broken(cause) if cause.contains("own user again")), "{steps:?}");
    assert_eq!(run_as(Some(&nobody), text, &refused).0, [Step::Send, Step::Send, Step::Send]);
}

#[test]
fn a_busy_server_is_asked_again() {
    let (steps, tally) = run("delete dc=x;", &[answer(100, 0x6b, 51), answer(101, 0x6b, 0)]);
    let once_more = Step::Ended(Ending { kind: 0, well: true, retries: 1 });
    assert_eq!(steps, [Step::Send, Step::Send, once_more]);
    assert_eq!((tally.errors["busy"], tally.kinds[0].retries), (1, 1));
}

#[test]
fn operations_of_a_pipeline_may_be_answered_in_any_order() {
    let text = "\\startpipeline\ndelete dc=x;\ncompare dc=y?a=b;\n\\endpipeline";
    let (steps, tally) = run(text, &[answer(101, op::COMPARE + 1, 5), answer(100, 0x6b, 0)]);
    assert_eq!(steps, [Step::Send, Step::Receive, WELL]);
    assert_eq!(tally.commits, 1);
}

#[test]
fn a_reference_to_another_server_is_a_failure_and_not_followed() {
    let mut reference = Vec::new();
    ber::nested(&mut reference, tag::SEQUENCE, |out| {
        ber::integer(out, tag::INTEGER, 100);
        ber::nested(out, op::REFERENCE, |out| ber::octets(out, tag::OCTETS, b"ldap://other/"));
    });
    let (steps, tally) = run("search dc=x;", &[[reference, answer(100, op::SEARCHED, 0)].concat()]);
    assert_eq!(steps, [Step::Send, BADLY]);
    assert!(tally.messages["referral"].contains("ldap://other/"));
}

#[test]
fn a_notice_that_the_session_ends_breaks_the_connection_with_the_servers_words() {
    let (steps, _) = run("delete dc=x;", &[answer(0, op::EXTENDED_ANSWER, 52)]);
    assert!(matches!(&steps[1], Step::Broken(cause) if cause.contains("unavailable (52): words")), "{steps:?}");
    let (steps, _) = run("delete dc=x;", &[answer(7, 0x6b, 0)]);
    assert!(matches!(&steps[1], Step::Broken(cause) if cause.contains("unexpected answer")), "{steps:?}");
}

#[test]
fn a_command_that_is_no_operation_is_refused_with_its_place() {
    let refused = |text| Operations::of(&program(text), "").unwrap_err().to_string();
    assert!(refused("\\set a 1\nselect 1;").starts_with("s:2: \"select\" is not an operation"));
    assert!(refused("delete dc=x\n\\gset").contains("returns no entries"));
}

proptest! {
    #[test]
    fn whatever_a_server_sends_a_client_ends_or_breaks(
        at in 0usize..80, byte: u8, bytes in prop::collection::vec(any::<u8>(), 0..30), size in 1usize..40
    ) {
        let mut stream = [entry(100, "cn=y", &[("cn", "z")]), answer(100, op::SEARCHED, 0)].concat();
        let length = stream.len();
        stream[at % length] = byte;
        stream.extend(bytes);
        let pieces: Vec<_> = stream.chunks(size).map(<[u8]>::to_vec).collect();
        // The client is not called again when it has ended or its connection is broken.
        for count in 0..=pieces.len() {
            let (steps, _) = run("search dc=x?cn?sub?(a=b)\n\\aset\nsearch dc=x;", &pieces[..count]);
            if !matches!(steps.last().unwrap(), Step::Receive | Step::Send) {
                break;
            }
        }
    }
}
