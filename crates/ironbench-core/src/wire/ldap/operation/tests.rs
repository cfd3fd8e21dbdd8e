use super::*;
use proptest::prelude::*;

fn compiled(text: &str) -> Result<Operation, String> {
    Operation::compile(&[Text::Text(text.to_owned())], "o=z")
}

fn sent(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    compiled(text).unwrap().plain(5, &mut out).unwrap();
    out
}

#[test]
fn operations_are_sent_as_the_standard_encodes_them() {
    assert_eq!(sent("delete dc=x;"), b"\x30\x09\x02\x01\x05\x4a\x04dc=x");
    assert_eq!(sent("delete dc=x,"), b"\x30\x0d\x02\x01\x05\x4a\x08dc=x,o=z");
    assert_eq!(sent("delete ,"), b"\x30\x08\x02\x01\x05\x4a\x03o=z");
    assert_eq!(sent("bind"), b"\x30\x0c\x02\x01\x05\x60\x07\x02\x01\x03\x04\x00\x80\x00");
    assert_eq!(sent("compare a=b ? c=d%3F"), b"\x30\x13\x02\x01\x05\x6e\x0e\x04\x03a=b\x30\x07\x04\x01c\x04\x02d?");
    assert_eq!(
        sent("search a=b?cn, sn?sub?(c=d)?sizelimit=1")[5..],
        *b"\x63\x26\x04\x03a=b\x0a\x01\x02\x0a\x01\x00\x02\x01\x01\x02\x01\x00\x01\x01\x00\xa3\x06\x04\x01c\x04\x01d\x30\x08\x04\x02cn\x04\x02sn"
    );
    assert_eq!(
        sent("modify a=b?replace c=d?delete e")[5..],
        *b"\x66\x22\x04\x03a=b\x30\x1b\x30\x0d\x0a\x01\x02\x30\x08\x04\x01c\x31\x03\x04\x01d\x30\x0a\x0a\x01\x01\x30\x05\x04\x01e\x31\x00"
    );
    assert_eq!(sent("rename a=b?a=c")[5..], *b"\x6c\x0d\x04\x03a=b\x04\x03a=c\x01\x01\xff");
}

#[test]
fn values_of_one_attribute_stand_together_in_an_add() {
    assert_eq!(
        sent("add a=b?c=1?d=2?c=3")[5..],
        *b"\x68\x1e\x04\x03a=b\x30\x17\x30\x0b\x04\x01c\x31\x06\x04\x011\x04\x013\x30\x08\x04\x01d\x31\x03\x04\x012"
    );
}

#[test]
fn letters_at_random_are_as_many_as_asked_for() {
    let operation = compiled("compare a=b?c=[a-z0-9]{300}").unwrap();
    let (mut out, mut random) = (Vec::new(), pgbench_script::Seeds::new(1, 1, true).client(0));
    let program = pgbench_script::Program::compile(
        &[pgbench_script::Source { name: "s".into(), text: "x;".into(), weight: 1 }],
        &[],
    );
    let variables = Variables::new(&program.unwrap(), &[], &pgbench_script::Automatic::default());
    operation.request(5, &variables, &mut random, &mut out).unwrap();
    let letters: Vec<_> = out.iter().rev().take(300).collect();
    assert!(letters.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    assert!(letters.iter().any(|byte| *byte != letters[0]));
    let mut input = &out[..];
    assert_eq!(super::super::message::next(&mut input).unwrap().unwrap().id, 5);
    assert!(input.is_empty());
}

#[test]
fn a_line_that_is_no_operation_is_refused_with_its_reason() {
    for (text, word) in [
        ("select 1", "is not an operation"),
        ("delete a=b?c", "at most 1"),
        ("search a=b??far", "scope"),
        ("search a=b???(c=d)?size=1", "sizelimit=N"),
        ("compare a=b?c", "attribute=value"),
        ("modify a=b", "needs a change"),
        ("modify a=b?swap c=d", "known: add"),
        ("add a=b", "needs attributes"),
        ("rename a=b", "new RDN"),
        ("add a=b?c=[a-z]{0}", "number of letters"),
    ] {
        assert!(compiled(text).unwrap_err().contains(word), "{text}");
    }
}

#[test]
fn a_search_with_a_limit_may_reach_it() {
    assert!(compiled("search a=b????sizelimit=1").unwrap().succeeded(4));
    assert!(!compiled("search a=b").unwrap().succeeded(4));
    assert!(compiled("compare a=b?c=d").unwrap().succeeded(5));
    assert!(!compiled("delete a=b").unwrap().succeeded(32));
}

proptest! {
    #[test]
    fn arbitrary_lines_never_panic(text in "(search|add|modify|rename|bind|compare|delete)[ ?=()%\\[\\]{}a-z0-9,*&]{0,60}") {
        if let Ok(operation) = compiled(&text) {
            operation.plain(1, &mut Vec::new()).unwrap();
        }
    }
}
