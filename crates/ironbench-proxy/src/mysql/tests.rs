use proptest::prelude::*;

use super::*;

struct Session {
    tracker: MysqlTracker,
    now: Instant,
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[sequence], body].concat()
}

fn ok(affected: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    packet(1, &[0, affected, 0, low, high, 0, 0])
}

/// Returns the OK packet that ends rows.
fn end(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    packet(1, &[0xfe, 0, 0, low, high, 0, 0])
}

fn eof(status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    packet(1, &[0xfe, 0, 0, low, high])
}

fn error(code: &str) -> Vec<u8> {
    packet(1, &[b"\xff\x2a\x04#", code.as_bytes(), b"no"].concat())
}

fn query(text: &str) -> Vec<u8> {
    packet(0, format!("\x03{text}").as_bytes())
}

fn rows(count: usize) -> Vec<Vec<u8>> {
    let columns = [packet(1, &[2]), packet(2, b"\x03def"), packet(3, b"\x03def")];
    columns.into_iter().chain((0..count).map(|_| packet(4, b"\x01a\x01b"))).collect()
}

impl Session {
    fn new(deprecate_eof: bool) -> Self {
        let names = SessionNames { user: b"ann".to_vec(), database: b"shop".to_vec(), application: Vec::new() };
        let capabilities = Capabilities { deprecate_eof, secure: true };
        let mut session = Self { tracker: MysqlTracker::new(1, names, capabilities, WallClock { zero_ns: 0 }), now: 0 };
        session.client(&[packet(3, b"hunter2\0")]);
        session.server(&[packet(4, b"\x01\x03"), ok(0, 2)]);
        session
    }

    fn client(&mut self, packets: &[Vec<u8>]) {
        self.now += 1_000_000;
        self.tracker.client_sent(&packets.concat(), self.now);
    }

    fn server(&mut self, packets: &[Vec<u8>]) {
        self.now += 1_000_000;
        self.tracker.server_sent(&packets.concat(), self.now);
    }

    fn ended(&mut self) -> Vec<Observed> {
        assert!(!self.tracker.is_lost());
        let events = std::mem::take(self.tracker.events());
        let statement = |event| if let Event::Statement(one) = event { Some(*one) } else { None };
        events.into_iter().filter_map(statement).collect()
    }
}

#[test]
fn rows_of_all_results_are_counted_with_both_ends() {
    for deprecate_eof in [true, false] {
        let mut session = Session::new(deprecate_eof);
        session.client(&[query("select 1; update t set a = 1; select 2")]);
        let mut result = rows(3);
        if !deprecate_eof {
            result.insert(3, eof(2));
        }
        session.server(&result);
        session.server(&[if deprecate_eof { end(8) } else { eof(8) }, ok(4, 8)]);
        assert!(session.ended().is_empty());
        session.server(&result);
        session.server(&[if deprecate_eof { end(1) } else { eof(1) }]);
        let [one] = &session.ended()[..] else { panic!() };
        assert_eq!((one.rows, one.leaves_block, one.error), (Some(10), Some(true), None), "{deprecate_eof}");
        assert_eq!((one.at_us, one.duration_us), (3000, Some(4000)));
    }
}

#[test]
fn a_client_that_does_not_wait_for_answers_needs_little_memory() {
    let mut session = Session::new(true);
    let long = "x".repeat(LONGEST / 2);
    for _ in 0..100 {
        session.client(&[query(&format!("select '{long}'")), packet(0, format!("\x16select '{long}'").as_bytes())]);
        session.client(&[packet(0, format!("\x02{long}").as_bytes()), query(&format!("use {long}"))]);
    }
    let bytes = |command: &Command| match command {
        Command::Statement(running, database) => running.text.len() + database.as_ref().map_or(0, Vec::len),
        Command::Prepare(text, ..) => text.len(),
        Command::Simple(database) => database.as_ref().map_or(0, Vec::len),
        Command::Fields | Command::ChangeUser(..) => 0,
    };
    let kept: usize = session.tracker.pending.iter().map(bytes).sum();
    assert!((MAX_PENDING_BYTES / 2..2 * MAX_PENDING_BYTES).contains(&kept), "{kept}");
    session.server(&[ok(0, 2)]);
    assert_eq!(session.ended()[0].obstacle, None);
    while session.tracker.pop().is_some() {}
    assert_eq!(session.tracker.pending_bytes, 0);
}

#[test]
fn prepared_statements_keep_text_and_parameters() {
    let mut session = Session::new(true);
    session.client(&[packet(0, b"\x16select ?, ?, ?")]);
    session.server(&[packet(1, b"\0\x07\0\0\0\x01\0\x03\0\0\0\0")]);
    session.server(&[packet(2, b"\x03def"), packet(3, b"\x03def"), packet(4, b"\x03def"), packet(5, b"\x03def")]);
    let head = b"\x17\x07\0\0\0\0\x01\0\0\0";
    let types = b"\x01\x03\0\xfd\0\x08\x80";
    let values = [&(-5_i32).to_le_bytes()[..], b"\x02it"].concat();
    session.client(&[packet(0, &[&head[..], b"\x04", types, &values].concat())]);
    session.server(&[rows(1), vec![end(2)]].concat());
    // The message contains no types, so those of the first Execute apply.
    session.client(&[packet(0, &[&head[..], b"\x06\0", &7_i32.to_le_bytes()].concat())]);
    session.server(&[error("22003")]);
    let [first, second] = &session.ended()[..] else { panic!() };
    assert_eq!(first.values, [Some(b"-5".to_vec()), Some(b"it".to_vec()), None]);
    assert_eq!(
        (&first.text[..], first.prepared.as_deref(), first.rows),
        (&b"select ?, ?, ?"[..], Some(&b"7"[..]), Some(1))
    );
    assert_eq!((second.values.clone(), second.error), (vec![Some(b"7".to_vec()), None, None], Some(*b"22003")));
    session.client(&[packet(0, b"\x18\x07\0\0\0\0\0long"), packet(0, &[&head[..], b"\x06\0"].concat())]);
    session.server(&[ok(1, 2)]);
    assert_eq!(session.ended()[0].obstacle, Some(Obstacle::LongText));
    session.client(&[packet(0, b"\x19\x07\0\0\0"), packet(0, &[&head[..], b"\x06\0"].concat())]);
    session.server(&[error("HY000")]);
    assert_eq!(session.ended()[0].obstacle, Some(Obstacle::NoParameters));
}

#[test]
fn a_cursor_is_opened_without_rows_and_fetched() {
    let mut session = Session::new(false);
    session.client(&[packet(0, b"\x16select n")]);
    session.server(&[packet(1, b"\0\x01\0\0\0\x01\0\0\0\0\0\0"), packet(2, b"\x03def"), eof(2)]);
    session.client(&[packet(0, b"\x17\x01\0\0\0\x01\x01\0\0\0")]);
    session.server(&[packet(1, &[1]), packet(2, b"\x03def"), eof(0x42)]);
    session.client(&[packet(0, b"\x1c\x01\0\0\0\x0a\0\0\0")]);
    session.server(&[packet(1, b"\0\0a"), packet(2, b"\0\0b"), eof(0x82)]);
    let [opened, fetched] = &session.ended()[..] else { panic!() };
    assert_eq!((opened.rows, opened.obstacle), (Some(0), None));
    assert_eq!((fetched.rows, fetched.obstacle), (Some(2), Some(Obstacle::Fetch)));
}

#[test]
fn the_rows_of_a_file_are_no_commands() {
    let mut session = Session::new(true);
    session.client(&[query("load data local infile 'f' into table t")]);
    session.server(&[packet(1, b"\xfbf")]);
    session.client(&[packet(2, b"1\n"), packet(0, b"\x03select 'a row of the file'"), packet(1, b"")]);
    session.server(&[ok(2, 2)]);
    session.client(&[query("select 1")]);
    session.server(&[ok(0, 2)]);
    let texts: Vec<_> = session.ended().iter().map(|one| (one.text.len(), one.rows)).collect();
    assert_eq!(texts, [(39, Some(2)), (8, Some(0))]);
}

#[test]
fn user_and_database_change_with_the_commands_for_that() {
    let mut session = Session::new(true);
    session.client(&[packet(0, b"\x02store"), query("select 1")]);
    session.server(&[ok(0, 2), ok(0, 2)]);
    session.client(&[query("use `other`;")]);
    session.server(&[ok(0, 2)]);
    session.client(&[packet(0, b"\x11bob\0\x02hhthird\0"), query("select 2")]);
    session.server(&[packet(1, b"\xfemysql_native_password\0")]);
    session.client(&[packet(3, b"proof")]);
    session.server(&[ok(0, 2), ok(0, 2)]);
    let databases: Vec<_> = session.ended().iter().map(|one| one.names.database.clone()).collect();
    assert_eq!(databases, [b"store".to_vec(), b"other".to_vec(), b"third".to_vec()]);
    assert_eq!(session.tracker.names.user, b"bob");
}

#[test]
fn a_password_that_the_server_asks_for_is_never_kept() {
    let names = SessionNames { user: b"ann".to_vec(), ..SessionNames::default() };
    let capabilities = Capabilities { deprecate_eof: true, secure: true };
    let tracker = MysqlTracker::new(1, names, capabilities, WallClock { zero_ns: 0 });
    let mut session = Session { tracker, now: 0 };
    // Over TLS: another method, the full authentication of caching_sha2_password, and the password itself.
    session.server(&[packet(3, b"\xfecaching_sha2_password\0nonce-nonce-nonce-no\0")]);
    session.client(&[packet(4, b"proof")]);
    session.server(&[packet(5, b"\x01\x04")]);
    session.client(&[packet(6, b"hunter2\0")]);
    session.server(&[packet(7, &[0, 0, 0, 2, 0, 0, 0])]);
    session.client(&[packet(0, b"\x11bob\0\0shop\0\x2d\0mysql_clear_password\0")]);
    session.server(&[packet(1, b"\xfemysql_clear_password\0")]);
    session.client(&[packet(2, b"hunter2\0"), query("select 1")]);
    session.server(&[packet(3, &[0, 0, 0, 2, 0, 0, 0]), ok(0, 2)]);
    let kept = format!("{:?}", session.tracker);
    assert!(!kept.contains("hunter2") && !kept.contains(&format!("{:?}", b"hunter2")[1..20]), "{kept}");
    assert_eq!(session.ended().len(), 1);
}

#[test]
fn other_commands_have_answers_and_no_statements() {
    let mut session = Session::new(true);
    session.client(&[packet(0, b"\x0e"), packet(0, b"\x09"), packet(0, b"\x1b\0\0"), packet(0, b"\x04t\0")]);
    session.server(&[ok(0, 2), packet(1, b"Uptime: 1"), eof(2), packet(1, b"\x03def"), eof(2)]);
    session.client(&[packet(0, b"\x1f"), query("select 1")]);
    session.server(&[ok(0, 2), ok(0, 2)]);
    assert_eq!(session.ended().len(), 1);
    session.client(&[packet(0, b"\x12\0\0\0\0")]);
    assert!(session.tracker.is_lost(), "a replica");
}

#[test]
fn a_server_that_closes_the_connection_fails_the_running_statement() {
    let mut session = Session::new(true);
    session.client(&[query("select sleep(9)")]);
    session.tracker.close(true, 9_000_000_000);
    assert_eq!(session.ended()[0].error, Some(CONNECTION_FAILURE));
}

proptest! {
    #[test]
    fn arbitrary_packets_never_panic(
        deprecate_eof: bool,
        packets in prop::collection::vec(
            (any::<bool>(), prop::sample::select(vec![0_u8, 1]),
                prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 3, 7, 0x16, 0x17, 0x1c, 0xfb, 0xfe, 0xff]), 0..24)),
            0..60
        ),
    ) {
        let mut session = Session::new(deprecate_eof);
        for (by_client, sequence, body) in packets {
            let bytes = [packet(sequence, &body)];
            if by_client { session.client(&bytes) } else { session.server(&bytes) }
        }
        session.tracker.close(true, session.now);
    }
}
