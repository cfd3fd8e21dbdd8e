//! Operations in text form, compiled once into their encoded form.
//! A line has the parts of an LDAP URL (RFC 4516), separated by `?`; `%3F` stands for a literal `?`:
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
//! A DN that ends with a comma is completed with the base DN of the connection; `,` by itself is that base DN.
//! `[a-z]{80}` in a value stands for 80 random letters; `a-z`, `A-Z` and `0-9` may be combined.

use pgbench_script::{Piece as Text, Random, Slot, Variables};

use super::ber::{self, tag};
use super::filter;
use super::message::{code, op};
use super::text::{Part, complete, decoded, pair, scanned, trimmed, words};
use super::writer::{Piece, Writer, write};

/// The type of an operation.
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

/// Names of the types, in the order of `Verb`.
pub const VERBS: [(&str, Verb); 7] = [
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

    /// Whether the operation changes the directory.
    #[inline]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Search | Self::Compare | Self::Bind)
    }

    /// Returns the tag of the final answer.
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

/// An operation that can be sent any number of times.
#[derive(Debug)]
pub struct Operation {
    pub verb: Verb,
    pieces: Vec<Piece>,
    /// Whether a search sets a size limit. Such a search succeeds even if it returns only its first entries.
    limited: bool,
    /// Attributes that a search requests by name.
    pub attributes: Vec<String>,
}

impl Operation {
    /// Compiles a line. The error describes what is wrong with the line.
    pub fn compile(line: &[Text], base: &str) -> Result<Self, String> {
        let parts = trimmed(&scanned(line)?).to_vec();
        let end = parts.iter().position(|part| matches!(part, Part::Byte(byte) if byte.is_ascii_whitespace()));
        let (first, rest) = parts.split_at(end.unwrap_or(parts.len()));
        let first = words(first).to_ascii_lowercase();
        let Some((_, verb)) = VERBS.iter().find(|(name, _)| *name == first) else {
            let known: Vec<_> = VERBS.iter().map(|(name, _)| *name).collect();
            return Err(format!("{first:?} is not an operation; known: {}", known.join(", ")));
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
            return Err(format!("{} has at most {most} parts separated by ?", self.verb.name()));
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
                    return Err("a rename needs a new RDN after the first ?".to_owned());
                }
                out.octets(tag::OCTETS, field(1))?;
                let mut bytes = Vec::new();
                ber::boolean(&mut bytes, true); // delete the old RDN
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
            other => return Err(format!("unknown scope {other:?}; known: base, one, sub, children")),
        };
        let (mut size, mut time, mut types_only) = (0, 0, false);
        for limit in limits.split(',').map(str::trim).filter(|limit| !limit.is_empty()) {
            let number = |text: &str| {
                let number = text.parse::<i32>().ok().filter(|number| *number >= 0);
                number.ok_or_else(|| format!("{limit:?} is not a limit; write for example sizelimit=10"))
            };
            match limit.split_once('=') {
                Some(("sizelimit", text)) => size = number(text)?,
                Some(("timelimit", text)) => time = number(text)?,
                None if limit == "typesonly" => types_only = true,
                _ => return Err(format!("unknown limit {limit:?}; known: sizelimit=N, timelimit=N, typesonly")),
            }
        }
        self.limited = size > 0;
        out.open(op::SEARCH);
        out.octets(tag::OCTETS, dn)?;
        let mut bytes = vec![tag::ENUMERATED, 1, scope, tag::ENUMERATED, 1, 0]; // do not dereference aliases
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

    /// Appends the request. If a variable has no value, the error is the variable's slot.
    #[inline]
    pub fn request(&self, id: i32, variables: &Variables, random: &mut Random, out: &mut Vec<u8>) -> Result<(), Slot> {
        let text = |slot, out: &mut Vec<u8>| variables.write_text(slot, out);
        self.append(id, out, text, |of, count, out| letters(random, of, count, out))
    }

    /// Appends the request of an operation without variables.
    pub fn drawn(&self, id: i32, random: &mut Random, out: &mut Vec<u8>) -> Result<(), Slot> {
        self.append(id, out, |_, _| false, |of, count, out| letters(random, of, count, out))
    }

    /// Appends the request of an operation without variables, with one fixed letter in place of random ones.
    pub fn plain(&self, id: i32, out: &mut Vec<u8>) -> Result<(), String> {
        let one = |of: &[u8], count: usize, out: &mut Vec<u8>| out.extend((0..count).map(|_| of[0]));
        self.append(id, out, |_, _| false, one).map_err(|_| "the operation has a variable".to_owned())
    }

    #[inline]
    fn append(
        &self,
        id: i32,
        out: &mut Vec<u8>,
        variable: impl Fn(Slot, &mut Vec<u8>) -> bool,
        letters: impl FnMut(&[u8], usize, &mut Vec<u8>),
    ) -> Result<(), Slot> {
        let start = ber::open(out, tag::SEQUENCE);
        ber::integer(out, tag::INTEGER, id);
        write(&self.pieces, out, variable, letters)?;
        ber::close(out, start);
        Ok(())
    }

    /// Whether the operation succeeded.
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

#[inline]
fn letters(random: &mut Random, of: &[u8], count: usize, out: &mut Vec<u8>) {
    let highest = of.len() as u64 - 1;
    out.extend((0..count).map(|_| of[random.up_to(highest) as usize]));
}

fn modify(dn: &[Part], changes: &[Vec<Part>], out: &mut Writer) -> Result<(), String> {
    if changes.is_empty() {
        return Err("a modify needs a change after the first ?, such as replace description=x".to_owned());
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
            other => return Err(format!("unknown change {other:?}; known: add, delete, replace, increment")),
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
        return Err("an add needs attributes after the first ?, such as objectClass=person".to_owned());
    }
    out.open(op::ADD);
    out.octets(tag::OCTETS, dn)?;
    out.open(tag::SEQUENCE);
    // The protocol requires that all values of an attribute are sent together.
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

/// Writes `name=value`. If `bare`, the value may be missing, which means the whole attribute.
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

#[cfg(test)]
mod tests;
