use super::*;

const SEARCH: &str = "search dc=x";

fn replay() -> AccessLogReplay {
    AccessLogReplay {
        operations: vec![SEARCH.to_owned(), "delete cn=a,dc=x".to_owned()],
        clients: vec![vec![(10, 0, false), (20, 1, false), (30, 0, true)]],
    }
}

#[test]
fn an_operation_is_due_at_its_time_and_the_next_connection_begins_between_two() {
    let (replay, mut mailbox, mut tally) = (replay(), Mailbox::default(), Tally::new(VERBS.len()));
    let operations = replay.compiled("").unwrap();
    let verbs = verbs(&operations);
    let mut client = Replayer::new(0, &replay.clients[0], &operations, &verbs, Seeds::new(1, 1, true).client(0));
    client.start(1000);
    assert_eq!(client.claim(1009), Next::NotBefore(1010));
    assert_eq!(client.claim(1015), Next::Job { script: 0, due: 1010 });
    assert_eq!(client.not_started().collect::<Vec<_>>(), [1010, 1020, 1030]);
    assert_eq!(client.begin(&mut mailbox, &mut tally), Step::Send);
    assert_eq!(client.not_started().collect::<Vec<_>>(), [1020, 1030], "the first is in progress");
    mailbox.inbox.append(&crate::drive::ldap::tests::answer(client.id, op::SEARCHED, 0));
    assert_eq!(client.reply(&mut mailbox, &mut tally), Step::Ended(Ending { kind: 0, well: true, retries: 0 }));
    assert!(!client.wants_reconnect());
    assert_eq!(client.begin(&mut mailbox, &mut tally), Step::Send);
    mailbox.inbox.append(&crate::drive::ldap::tests::answer(client.id, 0x6b, 32));
    let ended = client.reply(&mut mailbox, &mut tally);
    assert_eq!(ended, Step::Ended(Ending { kind: 1, well: false, retries: 0 }));
    assert_eq!((tally.errors["noSuchObject"], tally.kinds[1].failed), (1, 1));
    assert!(client.wants_reconnect());
    client.reconnected();
    assert!(!client.wants_reconnect());
}

#[test]
fn a_client_that_waits_needs_a_connection_only_where_its_log_had_the_same_one() {
    let (replay, mut mailbox, mut tally) = (replay(), Mailbox::default(), Tally::new(VERBS.len()));
    let operations = replay.compiled("").unwrap();
    let verbs = verbs(&operations);
    let mut client = Replayer::new(0, &replay.clients[0], &operations, &verbs, Seeds::new(1, 1, true).client(0));
    let mut transact = |client: &mut Replayer, tag| {
        assert_eq!(client.begin(&mut mailbox, &mut tally), Step::Send);
        mailbox.inbox.append(&crate::drive::ldap::tests::answer(client.id, tag, 0));
        assert!(matches!(client.reply(&mut mailbox, &mut tally), Step::Ended(_)));
    };
    let anew = |client: &mut Replayer| {
        assert!(client.lost_waiting() && client.wants_reconnect());
        client.reconnected();
    };
    anew(&mut client);
    transact(&mut client, op::SEARCHED);
    assert!(!client.lost_waiting(), "the next operation was one of the same connection");
    transact(&mut client, 0x6b);
    anew(&mut client);
    transact(&mut client, op::SEARCHED);
    assert!(client.lost_waiting() && !client.wants_reconnect(), "there is nothing more to do");
}

#[test]
fn what_a_server_says_while_nothing_is_under_way_is_told() {
    let (replay, mut mailbox, mut tally) = (replay(), Mailbox::default(), Tally::new(VERBS.len()));
    let operations = replay.compiled("").unwrap();
    let verbs = verbs(&operations);
    let seeds = Seeds::new(1, 1, true);
    let mut client = Replayer::new(0, &replay.clients[0][..1], &operations, &verbs, seeds.client(0));
    client.begin(&mut mailbox, &mut tally);
    mailbox.inbox.append(&crate::drive::ldap::tests::answer(client.id, op::SEARCHED, 0));
    assert!(matches!(client.reply(&mut mailbox, &mut tally), Step::Ended(_)));
    assert_eq!(client.reply(&mut mailbox, &mut tally), Step::Receive);
    mailbox.inbox.append(&crate::drive::ldap::tests::answer(0, op::EXTENDED_ANSWER, 52));
    let step = client.reply(&mut mailbox, &mut tally);
    assert!(matches!(&step, Step::Broken(cause) if cause.contains("unavailable (52): words")), "{step:?}");
    assert_eq!(tally.kinds[0].failed, 0);
}

#[test]
fn what_is_no_operation_is_complained_of() {
    assert_eq!(complaint(SEARCH), "");
    assert!(complaint("search dc=x??sub?(a=").contains("is not closed"));
    let mut wrong = replay();
    wrong.clients[0].push((40, 2, false));
    assert_eq!(wrong.compiled("").unwrap_err().cause, "operation 2 does not exist");
}
