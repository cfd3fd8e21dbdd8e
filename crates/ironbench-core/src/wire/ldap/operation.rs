//! Operations as people write them, compiled once to what is sent of them. A line has the parts of an LDAP URL (RFC 4516), cut
//! by `?`, with `%3F` for a character that cuts:
//!
//! ```text
//! search DN ? attributes ? base|one|sub ? filter ? sizelimit=N,timelimit=N,typesonly
//! compare DN ? attribute=value
//! modify DN ? replace attribute=value ? add attribute=value ? delete attribute ? increment attribute=1
//! add DN ? attribute=value ? attribute=value
//! delete DN
//! rename DN ? new RDN ? DN of the new parent
//! bind DN ? password
//! ```
//!
//! A DN that ends with a comma is completed by the base of the connection; `,` alone is that base.
//! `[a-z]{80}` in a value stands for so many letters at random; `a-z`, `A-Z`, `0-9` may stand together.

use pgbench_script::{Piece as Text, Random, Slot, Variables};

use super::ber::{self, tag};
use super::filter;
use super::message::{code, op};

/// Elements in elements, at most.
const DEEPEST: usize = 64;
/// Letters at random in one place.
const MOST_LETTERS: usize = 1 << 20;

/// A byte, or what stands for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Byte(u8),
    Variable(Slot),
    Letters { of: Vec<u8>, count: usize },
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Search,
    Compare,
    Modify,
    Add,
    Delete,
    Rename,
    Bind,
}

const VERBS: [(&str, Verb); 7] = [
    ("search", Verb::Search),
    ("compare", Verb::Compare),
    ("modify", Verb::Modify),
    ("add", Verb::Add),
    ("delete", Verb::Delete),
    ("rename", Verb::Rename),
    ("bind", Verb::Bind),
];

impl Verb {
    pub fn name(self) -> &'static str {
        VERBS.iter().find(|(_, verb)| *verb == self).expect("all are there").0
    }

    /// Whether it changes the directory.
    #[inline]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Search | Self::Compare | Self::Bind)
    }

    /// The operation that answers it at last.
    #[inline]
    pub fn answer(self) -> u8 {
        match self {
            Self::Search => op::SEARCHED,
            Self::Compare => op::COMPARE + 1,
            Self::Modify => op::MODIFY + 1,
            Self::Add => op::ADD + 1,
            Self::Delete => 0x6b,
            Self::Rename => op::RENAME + 1,
            Self::Bind => op::BOUND,
        }
    }
}

/// A step of writing a request.
#[derive(Debug, Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Variable(Slot),
    Letters { of: Vec<u8>, count: usize },
    Open(u8),
    Close,
}

/// Collects the steps; elements without variables become plain bytes at once.
#[derive(Debug, Default)]
pub struct Writer {
    pieces: Vec<Piece>,
    depth: usize,
}

impl Writer {
    pub fn open(&mut self, tag: u8) {
        self.depth += 1;
        self.pieces.push(Piece::Open(tag));
    }

    pub fn close(&mut self) {
        self.depth -= 1;
        self.pieces.push(Piece::Close);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    pub fn octets(&mut self, tag: u8, value: &[Part]) -> Result<(), String> {
        if self.depth >= DEEPEST {
            return Err("it is nested too deep".to_owned());
        }
        if let Some(plain) = plain(value) {
            let mut out = Vec::new();
            ber::octets(&mut out, tag, &plain);
            self.bytes(&out);
            return Ok(());
        }
        self.open(tag);
        for part in value {
            match part {
                Part::Byte(byte) => self.bytes(&[*byte]),
                Part::Variable(slot) => self.pieces.push(Piece::Variable(*slot)),
                Part::Letters { of, count } => self.pieces.push(Piece::Letters { of: of.clone(), count: *count }),
            }
        }
        self.close();
        Ok(())
    }

    /// What is sent where there is no variable.
    #[cfg(test)]
    pub fn plain(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(&self.pieces, &mut out, |_, _| unreachable!("no variable"), |_, _, _| {}).unwrap();
        out
    }

    /// Parts without variables in one piece.
    fn folded(self) -> Vec<Piece> {
        let fixed =
            |pieces: &[Piece]| pieces.iter().all(|piece| !matches!(piece, Piece::Variable(_) | Piece::Letters { .. }));
        let mut out: Vec<Piece> = Vec::new();
        let mut at = 0;
        while at < self.pieces.len() {
            let piece = &self.pieces[at];
            if let Piece::Open(_) = piece {
                let end = closing(&self.pieces, at);
                if fixed(&self.pieces[at..=end]) {
                    let mut bytes = Vec::new();
                    write(&self.pieces[at..=end], &mut bytes, |_, _| true, |_, _, _| {}).expect("no variable");
                    push(&mut out, Piece::Bytes(bytes));
                    at = end + 1;
                    continue;
                }
            }
            push(&mut out, piece.clone());
            at += 1;
        }
        out
    }
}

fn push(out: &mut Vec<Piece>, piece: Piece) {
    match (out.last_mut(), piece) {
        (Some(Piece::Bytes(last)), Piece::Bytes(more)) => last.extend_from_slice(&more),
        (_, piece) => out.push(piece),
    }
}

fn closing(pieces: &[Piece], open: usize) -> usize {
    let mut depth = 0;
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        match piece {
            Piece::Open(_) => depth += 1,
            Piece::Close if depth == 1 => return at,
            Piece::Close => depth -= 1,
            _ => {}
        }
    }
    unreachable!("every element is closed")
}

/// Writes the pieces; the first variable that `variable` says no to ends it.
#[inline]
fn write(
    pieces: &[Piece],
    out: &mut Vec<u8>,
    variable: impl Fn(Slot, &mut Vec<u8>) -> bool,
    mut letters: impl FnMut(&[u8], usize, &mut Vec<u8>),
) -> Result<(), Slot> {
    let (mut starts, mut depth) = ([0; DEEPEST], 0);
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Variable(slot) if variable(*slot, out) => {}
            Piece::Variable(slot) => return Err(*slot),
            Piece::Letters { of, count } => letters(of, *count, out),
            Piece::Open(tag) => {
                starts[depth] = ber::open(out, *tag);
                depth += 1;
            }
            Piece::Close => {
                depth -= 1;
                ber::close(out, starts[depth]);
            }
        }
    }
    Ok(())
}

/// One operation, ready to be sent any number of times.
#[derive(Debug)]
pub struct Operation {
    pub verb: Verb,
    pieces: Vec<Piece>,
    /// A search that is content with its first entries.
    limited: bool,
    /// Attributes that a search asks for by name.
    pub attributes: Vec<String>,
}

impl Operation {
    /// Compiles a line. The error says what is wrong with it.
    pub fn compile(line: &[Text], base: &str) -> Result<Self, String> {
        let parts = trimmed(&scanned(line)?).to_vec();
        let end = parts.iter().position(|part| matches!(part, Part::Byte(byte) if byte.is_ascii_whitespace()));
        let (first, rest) = parts.split_at(end.unwrap_or(parts.len()));
        let first = words(first).to_ascii_lowercase();
        let Some((_, verb)) = VERBS.iter().find(|(name, _)| *name == first) else {
            let known: Vec<_> = VERBS.iter().map(|(name, _)| *name).collect();
            return Err(format!("{first:?} is no operation; known: {}", known.join(", ")));
        };
        let fields = rest.split(|part| *part == Part::Byte(b'?')).map(|field| Ok(decoded(trimmed(field))));
        let mut fields: Vec<Vec<Part>> = fields.collect::<Result<_, String>>()?;
        complete(&mut fields[0], base);
        if let (Verb::Rename, Some(parent)) = (verb, fields.get_mut(2)) {
            complete(parent, base);
        }
        let mut made = Self { verb: *verb, pieces: Vec::new(), limited: false, attributes: Vec::new() };
        let mut out = Writer::default();
        made.write(&fields, &mut out)?;
        made.pieces = out.folded();
        Ok(made)
    }

    fn write(&mut self, fields: &[Vec<Part>], out: &mut Writer) -> Result<(), String> {
        let most = match self.verb {
            Verb::Search => 5,
            Verb::Compare | Verb::Bind => 2,
            Verb::Delete => 1,
            Verb::Rename => 3,
            Verb::Modify | Verb::Add => usize::MAX,
        };
        if fields.len() > most {
            return Err(format!("{} has at most {most} parts between its ?", self.verb.name()));
        }
        let dn = &fields[0];
        let empty = Vec::new();
        let field = |number: usize| fields.get(number).unwrap_or(&empty);
        match self.verb {
            Verb::Search => self.search(dn, field(1), &words(field(2)), field(3), &words(field(4)), out),
            Verb::Compare => {
                out.open(op::COMPARE);
                out.octets(tag::OCTETS, dn)?;
                let (name, value) = pair(field(1))?;
                out.open(tag::SEQUENCE);
                out.octets(tag::OCTETS, name)?;
                out.octets(tag::OCTETS, value)?;
                out.close();
                out.close();
                Ok(())
            }
            Verb::Modify => modify(dn, &fields[1..], out),
            Verb::Add => add(dn, &fields[1..], out),
            Verb::Delete => out.octets(op::DELETE, dn),
            Verb::Rename => {
                out.open(op::RENAME);
                out.octets(tag::OCTETS, dn)?;
                if field(1).is_empty() {
                    return Err("a rename has a new RDN behind the first ?".to_owned());
                }
                out.octets(tag::OCTETS, field(1))?;
                let mut bytes = Vec::new();
                ber::boolean(&mut bytes, true); // the old RDN goes
                out.bytes(&bytes);
                if fields.len() > 2 {
                    out.octets(0x80, field(2))?;
                }
                out.close();
                Ok(())
            }
            Verb::Bind => {
                out.open(op::BIND);
                out.bytes(&[tag::INTEGER, 1, 3]);
                out.octets(tag::OCTETS, dn)?;
                out.octets(0x80, field(1))?;
                out.close();
                Ok(())
            }
        }
    }

    fn search(
        &mut self,
        dn: &[Part],
        attributes: &[Part],
        scope: &str,
        filter: &[Part],
        limits: &str,
        out: &mut Writer,
    ) -> Result<(), String> {
        let scope = match scope {
            "" | "base" => 0,
            "one" => 1,
            "sub" => 2,
            "children" => 3,
            other => return Err(format!("scope {other:?} is none of base, one, sub, children")),
        };
        let (mut size, mut time, mut types_only) = (0, 0, false);
        for limit in limits.split(',').map(str::trim).filter(|limit| !limit.is_empty()) {
            let number = |text: &str| {
                let number = text.parse::<i32>().ok().filter(|number| *number >= 0);
                number.ok_or_else(|| format!("{limit:?} is no limit; write for example sizelimit=10"))
            };
            match limit.split_once('=') {
                Some(("sizelimit", text)) => size = number(text)?,
                Some(("timelimit", text)) => time = number(text)?,
                None if limit == "typesonly" => types_only = true,
                _ => return Err(format!("{limit:?} is none of sizelimit=N, timelimit=N, typesonly")),
            }
        }
        self.limited = size > 0;
        out.open(op::SEARCH);
        out.octets(tag::OCTETS, dn)?;
        let mut bytes = vec![tag::ENUMERATED, 1, scope, tag::ENUMERATED, 1, 0]; // aliases stay what they are
        ber::integer(&mut bytes, tag::INTEGER, size);
        ber::integer(&mut bytes, tag::INTEGER, time);
        ber::boolean(&mut bytes, types_only);
        out.bytes(&bytes);
        filter::write(filter, out)?;
        out.open(tag::SEQUENCE);
        for attribute in attributes.split(|part| *part == Part::Byte(b',')).map(trimmed) {
            if !attribute.is_empty() {
                out.octets(tag::OCTETS, attribute)?;
                self.attributes.push(words(attribute));
            }
        }
        out.close();
        out.close();
        Ok(())
    }

    /// Appends the request; `Err`: the variable of this slot has no value.
    #[inline]
    pub fn request(&self, id: i32, variables: &Variables, random: &mut Random, out: &mut Vec<u8>) -> Result<(), Slot> {
        let start = ber::open(out, tag::SEQUENCE);
        ber::integer(out, tag::INTEGER, id);
        let letters = |of: &[u8], count: usize, out: &mut Vec<u8>| {
            let highest = of.len() as u64 - 1;
            out.extend((0..count).map(|_| of[random.up_to(highest) as usize]));
        };
        write(&self.pieces, out, |slot, out| variables.write_text(slot, out), letters)?;
        ber::close(out, start);
        Ok(())
    }

    /// Appends the request of an operation without variables.
    pub fn plain(&self, id: i32, out: &mut Vec<u8>) -> Result<(), String> {
        let start = ber::open(out, tag::SEQUENCE);
        ber::integer(out, tag::INTEGER, id);
        let letters = |of: &[u8], count: usize, out: &mut Vec<u8>| out.extend((0..count).map(|_| of[0]));
        write(&self.pieces, out, |_, _| false, letters).map_err(|_| "it has a variable".to_owned())?;
        ber::close(out, start);
        Ok(())
    }

    /// Whether the server did what was asked.
    #[inline]
    pub fn succeeded(&self, code: i32) -> bool {
        code == code::SUCCESS
            || match self.verb {
                Verb::Compare => matches!(code, code::COMPARE_FALSE | code::COMPARE_TRUE),
                Verb::Search => self.limited && code == code::SIZE_LIMIT_EXCEEDED,
                _ => false,
            }
    }
}

fn modify(dn: &[Part], changes: &[Vec<Part>], out: &mut Writer) -> Result<(), String> {
    if changes.is_empty() {
        return Err("a modify has a change behind its first ?, such as replace description=x".to_owned());
    }
    out.open(op::MODIFY);
    out.octets(tag::OCTETS, dn)?;
    out.open(tag::SEQUENCE);
    for change in changes {
        let space = change.iter().position(|part| *part == Part::Byte(b' '));
        let (how, rest) = change.split_at(space.unwrap_or(change.len()));
        let number = match words(how).as_str() {
            "add" => 0,
            "delete" => 1,
            "replace" => 2,
            "increment" => 3,
            other => return Err(format!("change {other:?} is none of add, delete, replace, increment")),
        };
        out.open(tag::SEQUENCE);
        out.bytes(&[tag::ENUMERATED, 1, number]);
        out.open(tag::SEQUENCE);
        values(trimmed(rest), number == 1 || number == 2, out)?;
        out.close();
        out.close();
    }
    out.close();
    out.close();
    Ok(())
}

fn add(dn: &[Part], attributes: &[Vec<Part>], out: &mut Writer) -> Result<(), String> {
    if attributes.is_empty() {
        return Err("an add has attributes behind its first ?, such as objectClass=person".to_owned());
    }
    out.open(op::ADD);
    out.octets(tag::OCTETS, dn)?;
    out.open(tag::SEQUENCE);
    // Values of one attribute stand together, as the protocol wants it.
    let mut rest: Vec<(&[Part], &[Part])> = attributes.iter().map(|one| pair(one)).collect::<Result<_, _>>()?;
    while let Some(&(name, _)) = rest.first() {
        out.open(tag::SEQUENCE);
        out.octets(tag::OCTETS, name)?;
        out.open(tag::SET);
        for (_, value) in rest.iter().filter(|(other, _)| *other == name) {
            out.octets(tag::OCTETS, value)?;
        }
        out.close();
        out.close();
        rest.retain(|(other, _)| *other != name);
    }
    out.close();
    out.close();
    Ok(())
}

/// `name=value`; `bare`: the value may be missing, which means all of the attribute.
fn values(text: &[Part], bare: bool, out: &mut Writer) -> Result<(), String> {
    let (name, value) = match pair(text) {
        Ok((name, value)) => (name, Some(value)),
        Err(_) if bare && !text.is_empty() => (text, None),
        Err(cause) => return Err(cause),
    };
    out.octets(tag::OCTETS, name)?;
    out.open(tag::SET);
    if let Some(value) = value {
        out.octets(tag::OCTETS, value)?;
    }
    out.close();
    Ok(())
}

fn pair(text: &[Part]) -> Result<(&[Part], &[Part]), String> {
    match text.iter().position(|part| *part == Part::Byte(b'=')) {
        Some(at) if at > 0 => Ok((trimmed(&text[..at]), trimmed(&text[at + 1..]))),
        _ => Err(format!("{:?} is no attribute=value", words(text))),
    }
}

/// A DN below the base.
fn complete(dn: &mut Vec<Part>, base: &str) {
    if dn.last() == Some(&Part::Byte(b',')) {
        if dn.len() == 1 || base.is_empty() {
            dn.pop();
        }
        dn.extend(literal(base));
    }
}

/// Bytes without variables.
pub fn literal(text: &str) -> Vec<Part> {
    text.bytes().map(Part::Byte).collect()
}

/// For messages.
pub fn words(parts: &[Part]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Byte(byte) => bytes.push(*byte),
            Part::Variable(_) => bytes.extend_from_slice(b":variable"),
            Part::Letters { count, .. } => bytes.extend_from_slice(format!("[…]{{{count}}}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn plain(value: &[Part]) -> Option<Vec<u8>> {
    let byte = |part: &Part| match part {
        Part::Byte(byte) => Some(*byte),
        _ => None,
    };
    value.iter().map(byte).collect()
}

fn trimmed(parts: &[Part]) -> &[Part] {
    let is_space = |part: &Part| matches!(part, Part::Byte(byte) if byte.is_ascii_whitespace());
    let start = parts.iter().position(|part| !is_space(part)).unwrap_or(parts.len());
    let end = parts.iter().rposition(|part| !is_space(part)).map_or(start, |last| last + 1);
    &parts[start..end]
}

/// The line with its variables, letters at random recognised.
fn scanned(line: &[Text]) -> Result<Vec<Part>, String> {
    let mut out = Vec::new();
    for piece in line {
        match piece {
            Text::Variable(slot) => out.push(Part::Variable(*slot)),
            Text::Text(text) => {
                let bytes = text.trim_end_matches(';').as_bytes();
                let mut at = 0;
                while at < bytes.len() {
                    if let Some((part, length)) = letters(&bytes[at..])? {
                        out.push(part);
                        at += length;
                    } else {
                        out.push(Part::Byte(bytes[at]));
                        at += 1;
                    }
                }
            }
        }
    }
    Ok(out)
}

/// `[a-z0-9]{80}` at the start of `bytes`.
fn letters(bytes: &[u8]) -> Result<Option<(Part, usize)>, String> {
    let Some(rest) = bytes.strip_prefix(b"[") else { return Ok(None) };
    let Some(end) = rest.windows(2).position(|pair| pair == b"]{") else { return Ok(None) };
    let mut of = Vec::new();
    for range in rest[..end].chunks(3) {
        match range {
            b"a-z" => of.extend(b'a'..=b'z'),
            b"A-Z" => of.extend(b'A'..=b'Z'),
            b"0-9" => of.extend(b'0'..=b'9'),
            _ => return Ok(None),
        }
    }
    if of.is_empty() {
        return Ok(None);
    }
    let count = &rest[end + 2..];
    let Some(close) = count.iter().position(|byte| *byte == b'}') else { return Ok(None) };
    let text = String::from_utf8_lossy(&count[..close]);
    let count = text.parse().ok().filter(|count| (1..=MOST_LETTERS).contains(count));
    let count = count.ok_or_else(|| format!("{{{text}}} is no count of letters from 1 to {MOST_LETTERS}"))?;
    Ok(Some((Part::Letters { of, count }, 1 + end + 2 + close + 1)))
}

/// `%3F` is the character of that number, as in an URL; what is none stays as it is.
fn decoded(field: &[Part]) -> Vec<Part> {
    let digit = |part: Option<&Part>| match part {
        Some(Part::Byte(byte)) => (*byte as char).to_digit(16),
        _ => None,
    };
    let (mut out, mut at) = (Vec::with_capacity(field.len()), 0);
    while let Some(part) = field.get(at) {
        match (part, digit(field.get(at + 1)), digit(field.get(at + 2))) {
            (Part::Byte(b'%'), Some(high), Some(low)) => {
                out.push(Part::Byte((high * 16 + low) as u8));
                at += 3;
            }
            _ => {
                out.push(part.clone());
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
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
            ("select 1", "no operation"),
            ("delete a=b?c", "at most 1"),
            ("search a=b??far", "scope"),
            ("search a=b???(c=d)?size=1", "sizelimit=N"),
            ("compare a=b?c", "attribute=value"),
            ("modify a=b", "has a change"),
            ("modify a=b?swap c=d", "none of add"),
            ("add a=b", "has attributes"),
            ("rename a=b", "new RDN"),
            ("add a=b?c=[a-z]{0}", "count of letters"),
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
}
