use proptest::prelude::*;

use super::*;
use crate::wire::mysql::protocol::frontend;
use pgbench_script::{Automatic, Program, Source};

/// Compiles a program of one command, with the variables `a` and `b`.
fn program(text: &str) -> Program {
    let text = format!("\\set a 1\n\\set b 2\n{text}");
    Program::compile(&[Source { name: "s".into(), text, weight: 1 }], &[]).unwrap()
}

struct Session<'p> {
    program: &'p Program,
    reply: Reply<'p>,
    variables: Variables,
    tally: Tally,
    mailbox: Mailbox,
}

impl<'p> Session<'p> {
    fn new(program: &'p Program, statements: &'p Statements, cached: bool) -> Self {
        let variables = Variables::new(program, &[], &Automatic::default());
        let reply = Reply::new(statements, cached);
        Self { program, reply, variables, tally: Tally::new(1), mailbox: Mailbox::default() }
    }

    fn sql(&self) -> &'p Sql {
        self.program.sqls().next().unwrap().1
    }

    fn receive(&mut self, packets: &[&[u8]]) -> Result<Progress, Malformed> {
        let mut stream = Vec::new();
        for body in packets {
            frontend::packet(&mut stream, 1, |out| out.extend_from_slice(body));
        }
        self.mailbox.inbox.append(&stream);
        self.reply.read(&mut self.mailbox, &mut self.variables, &mut self.tally)
    }

    fn variable(&self, name: &str) -> String {
        let mut text = Vec::new();
        self.variables.write_text(self.program.symbols.get(name).unwrap(), &mut text);
        String::from_utf8(text).unwrap()
    }
}

fn done(status: u16) -> Vec<u8> {
    [&[0, 0, 0], &status.to_le_bytes()[..], &[0, 0]].concat()
}

fn end(status: u16) -> Vec<u8> {
    [&[0xfe, 0, 0], &status.to_le_bytes()[..], &[0, 0]].concat()
}

fn column(name: &str, kind: u8) -> Vec<u8> {
    let mut body = b"\x03def\0\0\0".to_vec();
    frontend::string(&mut body, name.as_bytes());
    body.push(0);
    body.extend_from_slice(&[12, 45, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
    body
}

const IDLE: u16 = 2;
const OPEN: u16 = 3;
const MORE: u16 = 8;

#[test]
fn text_and_binary_rows_become_variables_and_column_descriptions_are_cached() {
    let program = program("SELECT 1 AS a, 'x' AS b \\gset\n");
    let statements = Statements::of(&program);
    let mut session = Session::new(&program, &statements, true);
    let sql = session.sql();
    session.reply.expect(sql, false);
    let text: [&[u8]; 5] = [&[2], &column("a", 3), &column("b", 253), b"\x015\x01y", &end(IDLE)];
    assert_eq!(session.receive(&text), Ok(Progress::Answered));
    assert_eq!((session.variable("a"), session.variable("b")), ("5".to_owned(), "y".to_owned()));
    session.reply.expect_prepared(sql);
    let prepared: [&[u8]; 3] = [&[0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0], &column("a", 3), &column("b", 253)];
    assert_eq!(session.receive(&prepared), Ok(Progress::Answered));
    assert_eq!(session.reply.prepared().statement, 7);
    session.reply.expect(sql, true);
    let cached: [&[u8]; 3] = [&[2, 0], b"\0\0\x06\0\0\0\x01z", &end(IDLE)];
    assert_eq!(session.receive(&cached), Ok(Progress::Answered));
    assert_eq!((session.variable("a"), session.variable("b")), ("6".to_owned(), "z".to_owned()));
    assert_eq!(session.reply.result_fault(), None);
    assert_eq!(session.tally.commits, 2);
}

#[test]
fn gset_needs_exactly_one_row() {
    let program = program("SELECT 1 AS a \\gset\n");
    let statements = Statements::of(&program);
    let mut session = Session::new(&program, &statements, false);
    let sql = session.sql();
    session.reply.expect(sql, false);
    assert_eq!(session.receive(&[&[1], &column("a", 3), &end(IDLE)]), Ok(Progress::Answered));
    assert_eq!(session.reply.result_fault().unwrap(), "\\gset needs one row, but the server returned 0");
}

#[test]
fn gset_uses_the_row_of_the_last_statement_and_aset_the_rows_of_all() {
    for (command, a) in [("\\gset", "before"), ("\\aset", "5")] {
        let program = program(&format!("SELECT 5 AS a \\; SELECT 6 AS b {command}\n"));
        let statements = Statements::of(&program);
        let mut session = Session::new(&program, &statements, false);
        session.variables.set_text(program.symbols.get("a").unwrap(), b"before");
        let sql = session.sql();
        session.reply.expect(sql, false);
        let answers: [&[u8]; 8] =
            [&[1], &column("a", 3), b"\x015", &end(IDLE | MORE), &[1], &column("b", 3), b"\x016", &end(IDLE)];
        assert_eq!(session.receive(&answers), Ok(Progress::Answered));
        assert_eq!((session.variable("a"), session.variable("b")), (a.to_owned(), "6".to_owned()), "{command}");
        assert_eq!(session.reply.result_fault(), None);
    }
}

#[test]
fn a_commit_is_counted_once_and_a_rollback_never() {
    let cases: [(&str, &[u16], u64); 6] = [
        ("SELECT 1", &[IDLE], 1),
        ("BEGIN", &[OPEN], 0),
        ("BEGIN \\; SELECT 1 \\; COMMIT", &[OPEN | MORE, OPEN | MORE, IDLE], 1),
        ("SELECT 1 \\; SELECT 2", &[IDLE | MORE, IDLE], 1),
        ("BEGIN \\; ROLLBACK", &[OPEN | MORE, IDLE], 0),
        ("ROLLBACK", &[IDLE], 0),
    ];
    for (text, statuses, commits) in cases {
        let program = program(&format!("{text};\n"));
        let statements = Statements::of(&program);
        let mut session = Session::new(&program, &statements, false);
        let sql = session.sql();
        session.reply.expect(sql, false);
        let packets: Vec<Vec<u8>> = statuses.iter().map(|status| done(*status)).collect();
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        assert_eq!(session.receive(&packets), Ok(Progress::Answered), "{text}");
        assert_eq!(session.tally.commits, commits, "{text}");
    }
}

#[test]
fn a_file_request_of_a_failed_command_does_not_fail_the_next_command() {
    let program = program("SELECT 1;\n");
    let statements = Statements::of(&program);
    let mut session = Session::new(&program, &statements, false);
    let sql = session.sql();
    session.reply.expect(sql, false);
    assert!(matches!(session.receive(&[b"\xfbfile"]), Ok(Progress::WantsFile(_))));
    assert_eq!(session.receive(&[b"\xff\x48\x04#42000refused"]), Ok(Progress::Answered));
    assert!(session.reply.take_error().is_some());
    session.reply.expect(sql, false);
    assert_eq!(session.receive(&[&done(IDLE)]), Ok(Progress::Answered));
    assert_eq!(session.reply.result_fault(), None);
}

#[test]
fn a_failed_command_may_have_opened_a_transaction_unless_the_session_commits_by_itself() {
    const NO_AUTOCOMMIT: u16 = 0;
    let program = program("SELECT 1;\n");
    let statements = Statements::of(&program);
    let mut session = Session::new(&program, &statements, false);
    assert!(session.reply.commits.may_be_in_transaction(), "the first command of a session");
    for (status, open) in [(IDLE, false), (OPEN, true), (NO_AUTOCOMMIT, true)] {
        let sql = session.sql();
        session.reply.expect(sql, false);
        assert_eq!(session.receive(&[&done(status)]), Ok(Progress::Answered));
        assert_eq!(session.reply.commits.may_be_in_transaction(), open, "{status}");
    }
}

proptest! {
    #[test]
    fn arbitrary_answers_never_panic(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
        small in prop::collection::vec(prop::collection::vec(0u8..4, 1..20), 0..8),
        binary: bool, cached: bool, prepare: bool
    ) {
        let program = program("SELECT 1 AS a, 'x' AS b \\gset\n");
        let statements = Statements::of(&program);
        for bodies in [bodies, small] {
            let mut session = Session::new(&program, &statements, cached);
            let sql = session.sql();
            if prepare { session.reply.expect_prepared(sql) } else { session.reply.expect(sql, binary) }
            let packets: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            let _ = session.receive(&packets);
            let _ = session.reply.last_words(&session.mailbox);
        }
    }
}

#[test]
fn only_an_error_that_ends_the_session_may_follow_a_reply() {
    let program = program("SELECT 1\n");
    let statements = Statements::of(&program);
    for (following, result) in
        [(done(IDLE), Err(Malformed::Unexpected)), (vec![0xff, 0xd5, 0x07], Ok(Progress::Answered))]
    {
        let mut session = Session::new(&program, &statements, false);
        session.reply.expect(session.sql(), false);
        assert_eq!(session.receive(&[&done(IDLE), &following]), result);
    }
}

#[test]
fn rows_without_a_column_description_are_invalid() {
    let program = program("SELECT 1\n");
    let statements = Statements::of(&program);
    let mut session = Session::new(&program, &statements, false);
    session.reply.expect(session.sql(), false);
    assert_eq!(session.receive(&[&[1], b"\x011", &end(IDLE)]), Err(Malformed::Invalid));
}
