//! Tests that a client assumes no state of the previous session after a reconnect.

use super::*;
use crate::drive::mysql::{MysqlScript, Statements as MysqlStatements};
use crate::drive::plan::Protocol;
use crate::drive::postgres::{PostgresScript, Statements};
use crate::drive::reconnector::Lifetime;
use crate::drive::script::Clients;
use crate::drive::transaction::{Step, Transaction};
use crate::measure::Tally;
use crate::wire::mysql::protocol::frontend;
use crate::wire::transport::Mailbox;
use pgbench_script::{Program, Source};

/// Number of transactions after which a client wants a new connection.
const LIFETIME: u64 = 2;

fn with_client(text: &str, act: impl FnOnce(&Program, &Clients)) {
    let program = Program::compile(&[Source { name: "s".into(), text: text.into(), weight: 1 }], &[]).unwrap();
    let (plan, control, active_clients) = (plan(1, 1, Stop::Transactions(1)), Control::new(), AtomicUsize::new(1));
    let context = DriveContext {
        plan: &plan,
        jobs: None,
        kinds: 1,
        client_ranges: client_ranges(1, 1),
        control: &control,
        active_clients,
    };
    act(&program, &Clients::new(&program, &context));
}

/// Runs three transactions. The client requests a reconnect after the second one. Returns the first byte that each
/// transaction sent.
fn begins<X: Transaction>(mut client: X, mut answer: impl FnMut(&mut Mailbox), first: usize) -> [u8; 3] {
    let (mut mailbox, mut tally) = (Mailbox::default(), Tally::new(1));
    let mut transact = |client: &mut X| {
        let mut step = client.begin(&mut mailbox, &mut tally);
        let begun = mailbox.outbox[first];
        while step == Step::Send {
            answer(&mut mailbox);
            step = client.reply(&mut mailbox, &mut tally);
        }
        assert!(matches!(step, Step::Ended(ending) if ending.well), "{step:?}");
        begun
    };
    let one = transact(&mut client);
    assert!(!client.wants_reconnect());
    let two = transact(&mut client);
    assert!(client.wants_reconnect());
    client.reconnected();
    assert!(!client.wants_reconnect());
    [one, two, transact(&mut client)]
}

/// Answers the client's message like PostgreSQL.
fn postgres(mailbox: &mut Mailbox) {
    if mailbox.outbox.first() == Some(&b'P') {
        mailbox.inbox.append(b"1\0\0\0\x04");
    }
    if mailbox.outbox.first() != Some(&b'Q') {
        mailbox.inbox.append(b"2\0\0\0\x04");
    }
    mailbox.inbox.append(b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I");
}

/// Answers the client's message like MySQL. Statement 1 has neither columns nor parameters.
fn mysql(mailbox: &mut Mailbox) {
    let answer: &[u8] = match mailbox.outbox[4] {
        0x16 => b"\x0c\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0",
        _ => b"\x07\0\0\x01\0\0\0\x02\0\0\0",
    };
    mailbox.inbox.append(answer);
}

#[test]
fn on_postgresql_a_new_session_is_told_every_prepared_statement_anew() {
    let of = |protocol| {
        let mut begun = [0; 3];
        with_client("SELECT 1;", |program, clients| {
            let statements = Statements::of(program);
            let client = PostgresScript::new(clients.client(0), protocol, &statements, false, LIFETIME);
            begun = begins(client, postgres, 0);
        });
        begun
    };
    assert_eq!(of(Protocol::Prepared), [b'P', b'B', b'P']);
    assert_eq!(of(Protocol::Simple), [b'Q'; 3]);
}

#[test]
fn on_mysql_a_new_session_is_told_every_prepared_statement_anew() {
    const PREPARE: u8 = 0x16;
    const EXECUTE: u8 = 0x17;
    const QUERY: u8 = 0x03;
    let of = |protocol| {
        let mut begun = [0; 3];
        with_client("DO 1;", |program, clients| {
            let statements = MysqlStatements::of(program);
            let client = MysqlScript::new(clients.client(0), protocol, &statements, &[], false, false, LIFETIME);
            begun = begins(client, mysql, 4);
        });
        begun
    };
    assert_eq!(of(Protocol::Prepared), [PREPARE, EXECUTE, PREPARE]);
    assert_eq!(of(Protocol::Simple), [QUERY; 3]);
}

#[test]
fn a_connection_that_is_never_given_up_has_no_end() {
    let mut lifetime = Lifetime::new(0);
    (0..1000).for_each(|_| lifetime.count_use());
    assert!(!lifetime.is_over());
}

#[test]
fn what_mysql_says_between_two_transactions_is_its_last_word_and_no_failed_transaction() {
    with_client("DO 1;", |program, clients| {
        let statements = MysqlStatements::of(program);
        let mut client = MysqlScript::new(clients.client(0), Protocol::Simple, &statements, &[], false, false, 0);
        let (mut mailbox, mut tally) = (Mailbox::default(), Tally::new(1));
        assert_eq!(client.begin(&mut mailbox, &mut tally), Step::Send);
        mysql(&mut mailbox);
        assert!(matches!(client.reply(&mut mailbox, &mut tally), Step::Ended(ending) if ending.well));
        let mut said = Vec::new();
        let error = b"\xff\xbf\x0f#HY000The client was disconnected by the server because of inactivity";
        frontend::packet(&mut said, 0, |out| out.extend_from_slice(error));
        mailbox.inbox.append(&said);
        let step = client.reply(&mut mailbox, &mut tally);
        assert!(matches!(step, Step::Broken(_)), "{step:?}");
        assert_eq!((tally.kinds[0].failed, tally.errors.len()), (0, 0));
        assert!(client.last_words(&mut mailbox).unwrap().contains("because of inactivity (error 4031"));
    });
}

#[test]
fn a_statement_whose_parameters_do_not_fit_is_prepared_once_in_a_session_and_closed() {
    const PREPARE: u8 = 0x16;
    const CLOSE_1: &[u8] = b"\x05\0\0\0\x19\x01\0\0\0";
    with_client("SELECT :a;", |program, clients| {
        let statements = MysqlStatements::of(program);
        let mut client = MysqlScript::new(clients.client(0), Protocol::Prepared, &statements, &[], false, false, 0);
        let (mut mailbox, mut tally) = (Mailbox::default(), Tally::new(1));
        let (mut prepared, mut closed) = (0, 0);
        for _ in 0..3 {
            let mut step = client.begin(&mut mailbox, &mut tally);
            while let Step::Send | Step::SendWithoutReply = step {
                prepared += usize::from(mailbox.outbox[4] == PREPARE);
                closed += usize::from(mailbox.outbox == CLOSE_1);
                if step == Step::SendWithoutReply {
                    step = client.message_sent(&mut mailbox, &mut tally);
                    continue;
                }
                // Statement 1 has no parameters; every other command succeeds.
                mysql(&mut mailbox);
                step = client.reply(&mut mailbox, &mut tally);
            }
            assert!(matches!(step, Step::Ended(ending) if !ending.well), "{step:?}");
        }
        assert_eq!((prepared, closed, tally.kinds[0].failed), (1, 1, 3));
    });
}
