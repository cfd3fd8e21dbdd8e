#![allow(clippy::single_range_in_vec_init)] // a client with one range of transactions
use super::*;
use crate::drive::jobs::Next;
use crate::drive::transaction::{Ending, Step, Transaction};
use crate::measure::Tally;
use crate::wire::transport::Mailbox;

fn capture(mode: Mode) -> Capture {
    let kind = TransactionKind { name: "a".into(), statements: vec!["select ?".into(), "update t".into()] };
    Capture { tape: PathBuf::new(), clients: Vec::new(), kinds: vec![kind], mode, speed: 1.0, rate: 1.0, keys: 0 }
}

/// Returns a tape of statements, given as flags, time, name and text.
fn tape(statements: &[(u16, u64, &str, &str)]) -> Vec<u8> {
    let mut tape = Vec::new();
    for (flags, at_ns, name, text) in statements {
        let (name, text) = (name.as_bytes(), text.as_bytes());
        let statement = Statement {
            flags: *flags,
            at_ns: *at_ns,
            pause_ns: 5,
            kind: 0,
            template: 0,
            name,
            text,
            parameters: u16::from(!name.is_empty()),
            types: b"",
            values: if name.is_empty() { b"" } else { b"\0\0\0\x01x" },
            keys: b"",
        };
        statement.write(&mut tape).unwrap();
    }
    tape
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn complete(words: &str) -> Vec<u8> {
    message(b'C', &[words.as_bytes(), b"\0"].concat())
}

fn error(sqlstate: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{sqlstate}\0Mno\0\0").as_bytes())
}

struct Client<'p> {
    replayer: Replayer<'p, PostgresDialogue<'p>>,
    mailbox: Mailbox,
    tally: Tally,
}

impl<'p> Client<'p> {
    fn new(capture: &'p Capture, tape: &'p [u8], templates: &'p [(usize, &'p str)], figures: &'p Figures) -> Self {
        let keys = Box::leak(Box::new(Keys::new(capture.keys).unwrap()));
        let replay = ReplayContext { mode: capture.mode, speed: capture.speed, templates, keys, figures };
        let replayer = Replayer::new(0, PostgresDialogue::default(), tape, Box::leak(Box::new(replay)));
        Self { replayer, mailbox: Mailbox::default(), tally: Tally::new(1) }
    }

    fn begin(&mut self) -> Step {
        self.replayer.begin(&mut self.mailbox, &mut self.tally)
    }

    fn reply(&mut self, messages: &[Vec<u8>]) -> Step {
        self.mailbox.inbox.append(&messages.concat());
        self.replayer.reply(&mut self.mailbox, &mut self.tally)
    }

    /// Returns the tags of the messages in the outbox.
    fn sent(&self) -> String {
        let (mut tags, mut rest) = (String::new(), &self.mailbox.outbox[..]);
        while let Some((tag, after)) = rest.split_first() {
            tags.push(char::from(*tag));
            let length = u32::from_be_bytes(after[..4].try_into().unwrap()) as usize;
            rest = &after[length..];
        }
        tags
    }
}

const WELL: Step = Step::Ended(Ending { kind: 0, well: true, retries: 0 });
const BADLY: Step = Step::Ended(Ending { kind: 0, well: false, retries: 0 });
const ALONE: u16 = flag::BEGINS | flag::ENDS;

#[test]
fn a_named_statement_is_prepared_once_in_each_session() {
    let (capture, figures) = (capture(Mode::Fast), Figures::default());
    let extended = ALONE | flag::EXTENDED;
    let tape = tape(&[
        (extended | flag::OPENS, 0, "s", "select $1"),
        (extended, 0, "s", "select $1"),
        (extended, 0, "s", "select $1 + 1"),
        (extended | flag::OPENS, 0, "s", "select $1"),
    ]);
    let templates = capture.templates();
    let mut client = Client::new(&capture, &tape, &templates, &figures);
    let ready = || message(b'Z', b"I");
    let done =
        |client: &mut Client| client.reply(&[message(b'1', b""), message(b'2', b""), complete("SELECT 3"), ready()]);
    assert_eq!((client.begin(), client.sent().as_str()), (Step::Send, "PBDES"));
    assert_eq!(done(&mut client), WELL);
    assert_eq!((client.begin(), client.sent().as_str()), (Step::Send, "BDES"));
    assert_eq!(client.reply(&[message(b'2', b""), complete("SELECT 1"), ready()]), WELL);
    assert_eq!((client.begin(), client.sent().as_str()), (Step::Send, "CPBDES"));
    assert_eq!(done(&mut client), WELL);
    assert!(client.replayer.wants_reconnect());
    client.replayer.reconnected();
    assert_eq!((client.begin(), client.sent().as_str()), (Step::Send, "PBDES"));
    assert_eq!(done(&mut client), WELL);
    assert_eq!(client.replayer.claim(0), Next::Over);
    assert_eq!((client.tally.commits, client.tally.reply_times[0].count), (4, 4));
    drop(client);
    assert_eq!((figures.statements.load(Relaxed), figures.rows.load(Relaxed)), (4, 10));
}

#[test]
fn a_statement_that_failed_only_now_ends_its_transaction_with_a_rollback() {
    let (capture, figures) = (capture(Mode::Fast), Figures::default());
    let tape = tape(&[
        (flag::BEGINS, 0, "", "begin"),
        (flag::FAILED, 0, "", "select nosuch"),
        (0, 0, "", "select 1"),
        (0, 0, "", "update t"),
        (flag::ENDS, 0, "", "commit"),
        (ALONE, 0, "", "select 2"),
    ]);
    let templates = capture.templates();
    let mut client = Client::new(&capture, &tape, &templates, &figures);
    let inside = || message(b'Z', b"T");
    assert_eq!(client.begin(), Step::Send);
    assert_eq!(client.reply(&[complete("BEGIN"), inside()]), Step::Send);
    assert_eq!(client.reply(&[error("42703"), message(b'Z', b"E")]), Step::Send, "as recorded");
    assert_eq!(client.reply(&[error("42P01"), message(b'Z', b"E")]), Step::Send);
    assert!(client.mailbox.outbox.windows(8).any(|words| words == b"ROLLBACK"));
    assert_eq!(client.reply(&[complete("ROLLBACK"), message(b'Z', b"I")]), BADLY);
    assert_eq!((client.tally.kinds[0].failed, client.tally.errors["42P01"]), (1, 1));
    assert_eq!(client.tally.errors.len(), 1);
    assert_eq!(client.begin(), Step::Send);
    assert_eq!(client.reply(&[complete("SELECT 1"), message(b'Z', b"I")]), WELL);
    drop(client);
    let counts = [&figures.failed_again, &figures.failed_only_then, &figures.skipped].map(|count| count.load(Relaxed));
    assert_eq!(counts, [1, 0, 2]);
}

#[test]
fn a_transaction_without_a_recorded_end_is_rolled_back() {
    let (capture, figures) = (capture(Mode::Fast), Figures::default());
    let tape = tape(&[(flag::BEGINS, 0, "", "begin"), (flag::ENDS, 0, "", "select 1")]);
    let templates = capture.templates();
    let mut client = Client::new(&capture, &tape, &templates, &figures);
    assert_eq!(client.begin(), Step::Send);
    assert_eq!(client.reply(&[complete("BEGIN"), message(b'Z', b"T")]), Step::Send);
    assert_eq!(client.reply(&[complete("SELECT 1"), message(b'Z', b"T")]), Step::Send);
    assert_eq!(client.reply(&[complete("ROLLBACK"), message(b'Z', b"I")]), WELL);
}

#[test]
fn each_mode_has_its_own_start() {
    let tape = tape(&[(flag::BEGINS, 100, "", "begin"), (flag::ENDS, 300, "", "commit"), (ALONE, 400, "", "select 1")]);
    let figures = Figures::default();
    for (mode, first) in [
        (Mode::Schedule, Next::NotBefore(1100)),
        (Mode::Rate, Next::NotBefore(1100)),
        (Mode::Think, Next::NotBefore(1005)),
        (Mode::Fast, Next::Job { script: 0, due: 1001 }),
    ] {
        let capture = capture(mode);
        let templates = capture.templates();
        let mut client = Client::new(&capture, &tape, &templates, &figures);
        client.replayer.start(1000);
        assert_eq!(client.replayer.claim(1001), first, "{mode:?}");
        assert_eq!(client.begin(), Step::Send);
        let next = client.reply(&[complete("BEGIN"), message(b'Z', b"T")]);
        match mode {
            // The replay's start lies far in the past, so the statement is due already.
            Mode::Schedule | Mode::Rate | Mode::Fast => assert_eq!(next, Step::Send),
            Mode::Think => assert_eq!(next, Step::Sleep(5)),
        }
        let later: &[u64] = if matches!(mode, Mode::Schedule | Mode::Rate) { &[1400] } else { &[] };
        assert_eq!(client.replayer.not_started().collect::<Vec<_>>(), later, "{mode:?}");
    }
}

#[test]
fn statements_of_a_pipeline_are_sent_together() {
    let (capture, figures) = (capture(Mode::Fast), Figures::default());
    let extended = flag::EXTENDED;
    let tape = tape(&[
        (flag::BEGINS | extended | flag::PIPELINED, 0, "a", "select $1"),
        (flag::ENDS | extended, 0, "b", "update t set a = $1"),
    ]);
    let templates = capture.templates();
    let mut client = Client::new(&capture, &tape, &templates, &figures);
    assert_eq!((client.begin(), client.sent().as_str()), (Step::Send, "PBDEPBDES"));
    let replies = [message(b'1', b""), message(b'2', b""), complete("SELECT 1"), error("23505"), message(b'Z', b"I")];
    assert_eq!(client.reply(&replies), BADLY);
    assert_eq!((client.tally.reply_times[0].count, client.tally.reply_times[0].failed), (2, 1));
}

#[test]
fn a_tape_that_does_not_fit_its_plan_is_refused() {
    let path = std::env::temp_dir().join(format!("ironbench-tape-{}", std::process::id()));
    std::fs::write(&path, tape(&[(ALONE, 0, "", "select 1")])).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let mut capture = Capture { tape: path.clone(), clients: vec![0..length], ..capture(Mode::Fast) };
    let mapped = Tape::open(&path).unwrap();
    assert_eq!(capture.checked_kinds(&mapped).unwrap().len(), 1);
    for clients in [vec![0..length + 1], vec![0..length - 1], vec![3..length]] {
        capture.clients = clients;
        assert!(capture.checked_kinds(&mapped).is_err());
    }
    (capture.clients, capture.kinds) = (vec![0..length], Vec::new());
    assert!(capture.checked_kinds(&mapped).is_err());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_generated_key_takes_the_place_of_the_recorded_one() {
    let (capture, figures) = (Capture { keys: 3, ..capture(Mode::Fast) }, Figures::default());
    let keys = |returned, replaced: &[keys::Replaced]| {
        let mut bytes = Vec::new();
        StatementKeys::write(&mut bytes, returned, replaced.iter().copied());
        bytes
    };
    let returns = keys(Some(keys::Returned { slot: 1, column: 1, rows: 2 }), &[]);
    let missing = keys(None, &[keys::Replaced { position: 12, length: 2, slot: 0 }]);
    let literal = keys(None, &[keys::Replaced { position: 12, length: 2, slot: 1 }]);
    let parameter = keys(None, &[keys::Replaced { position: 2, length: 2, slot: 2 }]);
    let statement = |flags, text, values, keys| Statement {
        flags: flags | flag::KEYS,
        at_ns: 0,
        pause_ns: 0,
        kind: 0,
        template: 0,
        name: b"",
        text,
        parameters: 2,
        types: b"",
        values,
        keys,
    };
    let mut tape = Vec::new();
    for one in [
        statement(flag::BEGINS, &b"insert returning a, id"[..], &b""[..], &returns[..]),
        statement(0, b"delete from 41;", b"", &missing),
        statement(0, b"delete from 42;", b"", &literal),
        statement(flag::ENDS | flag::EXTENDED, b"delete $1 $2", b"\xff\xff\xff\xff\0\0\0\x0242", &parameter),
    ] {
        one.write(&mut tape).unwrap();
    }
    let templates = capture.templates();
    let mut client = Client::new(&capture, &tape, &templates, &figures);
    let inside = || message(b'Z', b"T");
    let contains = |client: &Client, bytes: &[u8]| client.mailbox.outbox.windows(bytes.len()).any(|part| part == bytes);
    let row = |id: &[u8]| message(b'D', &[b"\0\x02\0\0\0\x011\0\0\0\x04", id].concat());
    assert_eq!(client.begin(), Step::Send);
    // A row arrives in two pieces. A third row follows, which is skipped.
    let first = row(b"1007");
    client.mailbox.inbox.append(&first[..9]);
    assert_eq!(client.replayer.reply(&mut client.mailbox, &mut client.tally), Step::Receive);
    client.mailbox.inbox.append(&first[9..]);
    assert_eq!(client.reply(&[row(b"1008"), row(b"1009"), complete("INSERT 0 3"), inside()]), Step::Send);
    assert!(contains(&client, b"delete from 41;"), "its key was never returned");
    assert_eq!(client.reply(&[complete("DELETE 0"), inside()]), Step::Send);
    assert!(contains(&client, b"delete from 1007;"));
    assert_eq!(client.reply(&[complete("DELETE 1"), inside()]), Step::Send);
    assert!(contains(&client, b"\0\x02\xff\xff\xff\xff\0\0\0\x041008"));
    assert_eq!(client.reply(&[complete("DELETE 1"), message(b'Z', b"I")]), WELL);
    drop(client);
    assert_eq!((figures.keys.load(Relaxed), figures.keys_missing.load(Relaxed)), (2, 1));
}
