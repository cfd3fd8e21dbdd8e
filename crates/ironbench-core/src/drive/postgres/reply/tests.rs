use super::*;
use crate::drive::plan::Protocol;
use crate::drive::postgres::Statements;
use crate::wire::postgres::protocol::framing::message_size;
use pgbench_script::{Automatic, Program, Source};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u32;
    [&[tag][..], &length.to_be_bytes()[..], body].concat()
}

/// Returns the reply to a statement with one result column. Each of `values` is a row.
fn rows(column: &str, values: &[&str]) -> Vec<u8> {
    let described = [&[0, 1][..], column.as_bytes(), &[0; 19][..]].concat();
    let mut answer = message(tag::ROW_DESCRIPTION, &described);
    for value in values {
        let length = value.len() as u32;
        answer.extend(message(tag::DATA_ROW, &[&[0, 1][..], &length.to_be_bytes()[..], value.as_bytes()].concat()));
    }
    answer.extend(message(tag::COMMAND_COMPLETE, b"SELECT\0"));
    answer
}

/// Returns the values of `a` and `b` after `text` was answered with `answers`. Also returns the error if the number of
/// rows is wrong.
fn stored_values(text: &str, answers: &[Vec<u8>]) -> (String, String, Option<String>) {
    let text = format!("\\set a 1\n\\set b 2\n{text}\n");
    let program = Program::compile(&[Source { name: "s".into(), text, weight: 1 }], &[]).unwrap();
    let statements = Statements::of(&program);
    let mut requests = Requests::new(Protocol::Simple, &statements);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    for name in ["a", "b"] {
        variables.set_text(program.symbols.get(name).unwrap(), b"before");
    }
    let (mut reply, mut mailbox) = (Reply::new(), Mailbox::default());
    reply.expect(program.sqls().next().unwrap().1);
    mailbox.inbox.append(&answers.concat());
    mailbox.inbox.append(&message(tag::READY_FOR_QUERY, b"I"));
    let all = reply.read(&mut mailbox, &mut requests, &mut variables, &mut Tally::new(1)).unwrap();
    assert!(all && !reply.has_error());
    let value = |name: &str| {
        let mut text = Vec::new();
        variables.write_text(program.symbols.get(name).unwrap(), &mut text);
        String::from_utf8(text).unwrap()
    };
    (value("a"), value("b"), reply.result_fault())
}

#[test]
fn of_joined_statements_gset_takes_the_last_ones_row_and_aset_those_of_all() {
    let both = [rows("a", &["5"]), rows("b", &["6"])];
    let joined = "SELECT 5 AS a \\; SELECT 6 AS b";
    assert_eq!(stored_values(&format!("{joined} \\gset"), &both), ("before".to_owned(), "6".to_owned(), None));
    assert_eq!(stored_values(&format!("{joined} \\aset"), &both), ("5".to_owned(), "6".to_owned(), None));
    let alone = stored_values("SELECT 5 AS a \\gset", &both[..1]);
    assert_eq!(alone, ("5".to_owned(), "before".to_owned(), None));
}

#[test]
fn of_joined_statements_gset_wants_one_row_of_the_last_and_takes_none_otherwise() {
    let [one, two] = [rows("a", &["5"]), rows("b", &["6", "7"])];
    let fault = |count| Some(format!("\\gset needs one row, but the server returned {count}"));
    let last = stored_values("SELECT 5 AS a \\; SELECT b FROM t \\gset", &[one.clone(), two]);
    assert_eq!(last, ("before".to_owned(), "before".to_owned(), fault(2)));
    let none =
        stored_values("SELECT 5 AS a \\; CHECKPOINT \\gset", &[one, message(tag::COMMAND_COMPLETE, b"CHECKPOINT\0")]);
    assert_eq!(none, ("before".to_owned(), "before".to_owned(), fault(0)));
}

/// Reads `answer` after one command was sent.
fn read(answer: &[u8]) -> Result<bool, String> {
    let source = Source { name: "s".into(), text: "SELECT 5 AS a \\gset\n".into(), weight: 1 };
    let program = Program::compile(&[source], &[]).unwrap();
    let statements = Statements::of(&program);
    let mut requests = Requests::new(Protocol::Simple, &statements);
    let mut variables = Variables::new(&program, &[], &Automatic::default());
    let (mut reply, mut mailbox) = (Reply::new(), Mailbox::default());
    reply.expect(program.sqls().next().unwrap().1);
    mailbox.inbox.append(answer);
    reply.read(&mut mailbox, &mut requests, &mut variables, &mut Tally::new(1)).map_err(|trouble| match trouble {
        Trouble::Malformed(malformed) => malformed.to_string(),
        Trouble::Refuse => "refused".to_owned(),
    })
}

#[test]
fn what_comes_behind_an_answer_must_be_what_a_server_sends_on_its_own() {
    let answer = [rows("a", &["5"]), message(tag::READY_FOR_QUERY, b"I")].concat();
    let notice = message(tag::NOTICE_RESPONSE, b"Mbusy\0\0");
    assert_eq!(read(&answer), Ok(true));
    assert_eq!(read(&[&answer[..], &notice].concat()), Ok(true));
    let unasked = Err(crate::wire::UNEXPECTED.to_owned());
    assert_eq!(read(&[&answer[..], &answer].concat()), unasked);
    assert_eq!(read(&[&answer[..], &notice, &answer[..1]].concat()), unasked);
}

#[test]
fn an_answer_must_complete_its_command_and_describe_its_rows() {
    let (answer, ready) = (rows("a", &["5"]), message(tag::READY_FOR_QUERY, b"I"));
    let nonsense = Err(Malformed::Invalid.to_string());
    assert_eq!(read(&ready), nonsense);
    let described = message_size(&answer).unwrap().unwrap();
    assert_eq!(read(&[&answer[described..], &ready].concat()), nonsense);
    let wider = message(tag::DATA_ROW, b"\0\x02\0\0\0\x015\0\0\0\x016");
    assert_eq!(read(&[&answer[..described], &wider, &ready].concat()), nonsense);
    assert_eq!(read(&[&message(tag::AUTHENTICATION, &[0; 4])[..], &answer, &ready].concat()), nonsense);
    let begun = message(tag::COMMAND_COMPLETE, b"BEGIN\0");
    assert_eq!(read(&[&begun[..], &ready].concat()), nonsense);
    assert_eq!(read(&[&begun[..], &message(tag::READY_FOR_QUERY, b"T")].concat()), Ok(true));
    let refused = [message(tag::ERROR_RESPONSE, b"C42601\0Mno\0\0"), ready].concat();
    assert_eq!(read(&refused), Ok(true));
}
