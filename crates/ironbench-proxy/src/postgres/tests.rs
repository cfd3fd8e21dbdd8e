use proptest::prelude::*;

use super::requests::MAX_PENDING_BYTES;
use super::*;
use crate::framing::{BEGINNING, LONGEST};
use crate::reserved::Reserved;

/// A session, with the messages of both sides.
struct Session {
    tracker: PostgresTracker,
    now: Instant,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as i32 + 4).to_be_bytes(), body].concat()
}

fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{text}\0").into_bytes();
    body.extend_from_slice(&(types.len() as i16).to_be_bytes());
    body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    message(b'P', &body)
}

fn bind(name: &str, formats: &[i16], values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = format!("\0{name}\0").into_bytes();
    body.extend_from_slice(&(formats.len() as i16).to_be_bytes());
    body.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
    body.extend_from_slice(&(values.len() as i16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default());
    }
    body.extend_from_slice(&[0, 0]);
    message(b'B', &body)
}

fn execute() -> Vec<u8> {
    message(b'E', b"\0\0\0\0\0")
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn ready(state: &str) -> Vec<u8> {
    message(b'Z', state.as_bytes())
}

fn error(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{code}\0Mno\0\0").as_bytes())
}

fn answers(tags: &[u8]) -> Vec<u8> {
    tags.iter().flat_map(|tag| message(*tag, b"")).collect()
}

impl Session {
    fn new() -> Self {
        let mut session =
            Self { tracker: PostgresTracker::new(1, SessionNames::default(), WallClock { zero_ns: 0 }), now: 0 };
        session.server(&[message(b'R', b"\0\0\0\0"), ready("I")]);
        session
    }

    /// Sends messages from the client, a millisecond after the previous event.
    fn client(&mut self, messages: &[Vec<u8>]) {
        self.now += 1_000_000;
        self.tracker.client_sent(&messages.concat(), self.now);
    }

    fn server(&mut self, messages: &[Vec<u8>]) {
        self.now += 1_000_000;
        self.tracker.server_sent(&messages.concat(), self.now);
    }

    /// Returns the statements that have ended.
    fn ended(&mut self) -> Vec<Observed> {
        assert!(!self.tracker.is_lost());
        let events = std::mem::take(self.tracker.events());
        let statement = |event| if let Event::Statement(one) = event { Some(*one) } else { None };
        events.into_iter().filter_map(statement).collect()
    }

    fn texts(&mut self) -> Vec<String> {
        self.ended().iter().map(|one| String::from_utf8_lossy(&one.text).into_owned()).collect()
    }
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

#[test]
fn a_query_lasts_until_the_server_is_ready() {
    let mut session = Session::new();
    session.client(&[query("insert into t values (1); select 1")]);
    session.server(&[complete("INSERT 0 3"), message(b'T', b""), message(b'D', b"\0\0"), complete("SELECT 2")]);
    assert!(session.ended().is_empty());
    session.server(&[ready("T")]);
    let [one] = &session.ended()[..] else { panic!() };
    assert_eq!((one.rows, one.duration_us, one.at_us, one.leaves_block), (Some(5), Some(2000), 2000, Some(true)));
    assert_eq!((&one.prepared, one.error, one.in_block), (&None, None, false));
}

#[test]
fn a_prepared_statement_keeps_its_text_and_types() {
    let mut session = Session::new();
    session.client(&[parse("s", "select $1, $2, $3", &[0, 25]), message(b'D', b"Ss\0"), sync()]);
    let types = [&[0, 3][..], &23_u32.to_be_bytes(), &25_u32.to_be_bytes(), &600_u32.to_be_bytes()].concat();
    session.server(&[answers(b"1"), message(b't', &types), message(b'T', b""), ready("I")]);
    session.client(&[bind("s", &[1, 0, 1], &[Some(&7_i32.to_be_bytes()), Some(b"a"), None]), execute(), sync()]);
    session.server(&[answers(b"2D"), complete("SELECT 1"), ready("I")]);
    session.client(&[bind("s", &[1], &[None, None, Some(&[0; 16])]), execute(), sync()]);
    session.server(&[answers(b"2"), complete("SELECT 0"), ready("I")]);
    let [known, unknown] = &session.ended()[..] else { panic!() };
    assert_eq!(known.values, [text("7"), text("a"), None]);
    assert_eq!((known.prepared.as_deref(), known.rows, known.obstacle), (Some(&b"s"[..]), Some(1), None));
    assert_eq!(unknown.obstacle, Some(Obstacle::BinaryParameters));
}

#[test]
fn statements_of_a_pipeline_follow_one_another() {
    let mut session = Session::new();
    let one = |text: &str| [parse("", text, &[]), bind("", &[], &[]), execute()].concat();
    session.client(&[one("select 1"), one("select 2"), sync()]);
    session.server(&[answers(b"12"), complete("SELECT 1")]);
    session.server(&[answers(b"12"), complete("SELECT 1")]);
    session.server(&[ready("I")]);
    let [first, second] = &session.ended()[..] else { panic!() };
    assert_eq!((first.at_us, first.duration_us, first.leaves_block), (2000, Some(1000), None));
    assert_eq!((second.at_us, second.duration_us, second.leaves_block), (3000, Some(2000), Some(false)));
    assert_eq!(first.request, second.request);
}

#[test]
fn after_an_error_the_rest_of_the_pipeline_did_not_run() {
    let mut session = Session::new();
    session.client(&[parse("a", "select 1", &[]), sync()]);
    session.server(&[answers(b"1"), ready("I")]);
    session.client(&[
        bind("a", &[], &[]),
        execute(),
        parse("a", "select wrong", &[]),
        parse("b", "select 2", &[]),
        bind("b", &[], &[]),
        execute(),
        sync(),
        bind("a", &[], &[]),
        execute(),
        sync(),
    ]);
    session.server(&[answers(b"2"), complete("SELECT 1"), error("42P05"), ready("I")]);
    session.server(&[answers(b"2"), complete("SELECT 1"), ready("I")]);
    let ended = session.ended();
    let found: Vec<_> = ended.iter().map(|one| (String::from_utf8_lossy(&one.text), one.error)).collect();
    // The Parse failed, so the Execute after it is reported with the error of the Parse.
    assert_eq!(found[0], ("select 1".into(), None));
    assert_eq!(found[1].1, Some(*b"42P05"));
    session.client(&[bind("a", &[], &[]), execute(), sync()]);
    session.server(&[answers(b"2"), complete("SELECT 1"), ready("I")]);
    assert_eq!(session.texts(), ["select 1"], "the name stands for the same statement as before the error");
}

#[test]
fn a_failed_parse_is_a_statement_and_an_error_without_sync_skips_what_follows() {
    let mut session = Session::new();
    session.client(&[parse("", "selekt", &[]), message(b'D', b"S\0"), message(b'H', b"")]);
    session.server(&[error("42601")]);
    session.client(&[parse("", "select 1", &[]), sync()]);
    session.server(&[ready("I")]);
    let [one] = &session.ended()[..] else { panic!() };
    assert_eq!((&one.text[..], one.error), (&b"selekt"[..], Some(*b"42601")));
    session.client(&[query("select 2")]);
    session.server(&[complete("SELECT 1"), ready("I")]);
    assert_eq!(session.texts(), ["select 2"]);
}

#[test]
fn an_error_at_sync_is_that_of_the_last_statement() {
    let mut session = Session::new();
    session.client(&[parse("", "insert", &[]), bind("", &[], &[]), execute(), sync()]);
    session.server(&[answers(b"12"), complete("INSERT 0 1"), error("23503"), ready("I")]);
    assert_eq!(session.ended()[0].error, Some(*b"23503"));
}

#[test]
fn a_copy_of_the_client_may_contain_syncs_that_the_server_ignores() {
    for early in [true, false] {
        let mut session = Session::new();
        session.client(&[parse("", "copy t from stdin", &[]), bind("", &[], &[]), execute(), sync()]);
        let rows = [message(b'd', b"1\n"), message(b'c', b""), sync()];
        if early {
            session.client(&rows);
        }
        session.server(&[answers(b"12"), message(b'G', b"\0\0\0")]);
        if !early {
            session.client(&rows);
        }
        session.server(&[complete("COPY 1"), ready("I")]);
        let [one] = &session.ended()[..] else { panic!("{early}") };
        assert_eq!((one.rows, one.leaves_block), (Some(1), Some(false)));
        session.client(&[query("select 2")]);
        session.server(&[complete("SELECT 1"), ready("I")]);
        assert_eq!(session.texts(), ["select 2"], "{early}");
    }
}

#[test]
fn a_copy_that_fails_ends_with_the_error() {
    let mut session = Session::new();
    session.client(&[query("copy t from stdin")]);
    session.server(&[message(b'G', b"\0\0\0")]);
    session.client(&[message(b'd', b"x\n")]);
    session.server(&[error("22P02"), ready("I")]);
    session.client(&[message(b'd', b"y\n"), message(b'c', b""), query("select 1")]);
    session.server(&[complete("SELECT 1"), ready("I")]);
    assert_eq!(session.texts(), ["copy t from stdin", "select 1"]);
}

#[test]
fn fetching_the_rest_of_a_portal_is_not_a_new_statement() {
    let mut session = Session::new();
    session.client(&[parse("", "select n", &[]), bind("", &[], &[]), execute(), message(b'H', b"")]);
    session.server(&[answers(b"12DDs")]);
    session.client(&[execute(), sync()]);
    session.server(&[answers(b"D"), complete("SELECT 1"), ready("I")]);
    let [first, rest] = &session.ended()[..] else { panic!() };
    assert_eq!((first.rows, first.obstacle), (Some(2), None));
    assert_eq!((rest.rows, rest.obstacle), (Some(1), Some(Obstacle::Fetch)));
}

#[test]
fn a_statement_longer_than_the_limit_is_cut_and_marked() {
    let mut session = Session::new();
    let long = format!("select '{}'", "é".repeat(LONGEST));
    session.client(&[query(&long)]);
    session.server(&[complete("SELECT 1"), ready("I")]);
    let [one] = &session.ended()[..] else { panic!() };
    assert_eq!(one.obstacle, Some(Obstacle::LongText));
    assert!(one.text.len() <= BEGINNING && long.as_bytes().starts_with(&one.text));
    assert!(std::str::from_utf8(&one.text).is_ok());
}

#[test]
fn a_server_that_closes_the_connection_fails_the_running_statement() {
    let mut session = Session::new();
    session.client(&[query("select pg_sleep(9)")]);
    session.tracker.close(true, 9_000_000_000);
    assert_eq!(session.ended()[0].error, Some(CONNECTION_FAILURE));
    let mut session = Session::new();
    session.client(&[query("select pg_sleep(9)")]);
    session.tracker.close(false, 9_000_000_000);
    assert!(session.ended().is_empty(), "whether it has ended is not known");
}

#[test]
fn passwords_are_not_kept() {
    let mut session =
        Session { tracker: PostgresTracker::new(1, SessionNames::default(), WallClock { zero_ns: 0 }), now: 0 };
    let password = message(b'p', b"hunter2\0");
    for part in password.chunks(3) {
        session.client(&[part.to_vec()]);
    }
    assert!(!format!("{:?}", session.tracker).contains(&format!("{:?}", b"hun").replace(['[', ']'], "")));
}

#[test]
fn settings_change_names_and_encoding() {
    let mut session = Session::new();
    session.server(&[message(b'S', b"application_name\0shop\0"), message(b'S', b"client_encoding\0LATIN1\0")]);
    session.client(&[message(b'Q', b"select '\xe9'\0")]);
    session.server(&[complete("SELECT 1"), ready("I")]);
    let [one] = &session.ended()[..] else { panic!() };
    assert_eq!((&one.names.application[..], one.obstacle), (&b"shop"[..], Some(Obstacle::Encoding)));
}

#[test]
fn a_client_that_does_not_wait_for_answers_is_slowed_down() {
    let mut session = Session::new();
    session.client(&[query("select 1").repeat(MAX_PENDING)]);
    assert!(session.tracker.is_congested());
    assert!(session.tracker.pending_bytes <= MAX_PENDING_BYTES + MAX_PENDING * (size_of::<Running>() + BEGINNING));
    session.server(&[[complete("SELECT 1"), ready("I")].concat()]);
    assert!(!session.tracker.is_congested());
}

#[test]
fn portals_that_are_never_executed_need_little_memory() {
    let mut session = Session::new();
    session.client(&[parse("s", "select $1", &[])]);
    let values = "x".repeat(LONGEST / 2);
    for number in 0..100 {
        let head = format!("portal{number}\0s\0\0\0\0\x01").into_bytes();
        let body = [&head, &(values.len() as i32).to_be_bytes()[..], values.as_bytes(), b"\0\0"];
        session.client(&[message(b'B', &body.concat())]);
    }
    let kept = |portal: &Portal| {
        if let Portal::Bound(running) = portal { running.values.iter().flatten().map(Vec::len).sum() } else { 0 }
    };
    let bytes: usize = session.tracker.portals.values().map(kept).sum();
    assert!((MAX_PENDING_BYTES / 2..=MAX_PENDING_BYTES).contains(&bytes), "{bytes}");
    // Executed, closed and replaced portals do not count.
    session.client(&[message(b'E', b"portal0\0\0\0\0\0"), message(b'C', b"Pportal1\0")]);
    for number in 0..200 {
        session.client(&[message(b'B', format!("portal{}\0s\0\0\0\0\0", number % 100).as_bytes())]);
    }
    assert!(session.tracker.portal_bytes <= 100 * size_of::<Running>());
    session.server(&[answers(b"12"), answers(&[b'2'; 99]), complete("SELECT 1")]);
    assert_eq!(session.ended().len(), 0, "the statement is reported with the next one");
}

#[test]
fn types_of_prepared_statements_count_as_memory() {
    let types = vec![0_u32; 65_535];
    let prepared = Prepared::new(b"select 1", types.clone().into(), false);
    assert_eq!(prepared.reserved.bytes(), 8 + 4 * 65_535);
    prepared.describe(types.into());
    assert_eq!(prepared.described.get().map(|(_, reserved)| reserved.bytes()), Some(4 * 65_535));
    assert!(Reserved::new(usize::MAX).is_none());
}

#[test]
fn unknown_messages_end_the_capture_of_the_session_only() {
    let mut session = Session::new();
    session.client(&[message(b'?', b"")]);
    assert!(session.tracker.is_lost());
    session.client(&[query("select 1")]);
    session.tracker.close(true, 1);
    assert!(matches!(session.tracker.events()[..], [Event::Ended(1)]));
}

proptest! {
    #[test]
    fn arbitrary_messages_never_panic(
        messages in prop::collection::vec(
            (any::<bool>(), prop::sample::select(b"QPBEDCSFHcdfX123tTnDCIsEGHZVSNA".to_vec()),
                prop::collection::vec(prop::sample::select(vec![0_u8, 1, b'S', b'I', 255]), 0..24)), 0..60
        ),
    ) {
        let mut session = Session::new();
        for (by_client, tag, body) in messages {
            let bytes = [message(tag, &body)];
            if by_client { session.client(&bytes) } else { session.server(&bytes) }
        }
        session.tracker.close(true, session.now);
    }
}
