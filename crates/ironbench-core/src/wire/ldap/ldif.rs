//! Entries as text (RFC 2849, content records): what a bulk load takes.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use super::ber::{self, tag};
use super::message::op;

/// Entries of `text`, one after the other; what stands before a mistake comes first.
pub struct Entries<'a> {
    rest: &'a str,
    /// Of the next line, from 1.
    line: usize,
}

/// Attributes in the order in which they came, each with its values.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub dn: Vec<u8>,
    pub attributes: Vec<(String, Vec<Vec<u8>>)>,
}

impl<'a> Entries<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// A line with its continuations; None at the end.
    fn line(&mut self) -> Option<String> {
        let mut found: Option<String> = None;
        while !self.rest.is_empty() {
            if found.is_some() && !self.rest.starts_with(' ') {
                break;
            }
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            let line = line.strip_suffix('\r').unwrap_or(line);
            self.rest = rest;
            self.line += 1;
            match &mut found {
                Some(text) => text.push_str(&line[1..]),
                None => found = Some(line.to_owned()),
            }
        }
        found
    }

    fn read(&mut self) -> Result<Option<Entry>, String> {
        let mut entry = Entry::default();
        let mut begun = false;
        while let Some(line) = self.line() {
            if line.is_empty() {
                if begun {
                    break;
                }
                continue;
            }
            if line.starts_with('#') || (!begun && line.starts_with("version:")) {
                continue;
            }
            let (name, value) = attribute(&line)?;
            if !begun {
                if !name.eq_ignore_ascii_case("dn") {
                    return Err(format!("an entry begins with dn:, and not with {name}:"));
                }
                entry.dn = value;
                begun = true;
                continue;
            }
            if name.eq_ignore_ascii_case("changetype") {
                return Err("these are changes, and entries are wanted".to_owned());
            }
            match entry.attributes.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, values)) => values.push(value),
                None => entry.attributes.push((name.to_owned(), vec![value])),
            }
        }
        Ok(begun.then_some(entry))
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, String>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(entry) => entry.map(Ok),
            Err(cause) => {
                let line = self.line - 1;
                self.rest = "";
                Some(Err(format!("line {line}: {cause}")))
            }
        }
    }
}

fn attribute(line: &str) -> Result<(&str, Vec<u8>), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} has no colon"))?;
    let text = match value.as_bytes().first() {
        Some(b':') => {
            let decoded = BASE64.decode(value[1..].trim());
            return Ok((name, decoded.map_err(|_| format!("the value of {name} is no base64"))?));
        }
        Some(b'<') => return Err(format!("the value of {name} is in another file, and only values are taken")),
        _ => value.trim_start_matches(' '),
    };
    Ok((name, text.as_bytes().to_vec()))
}

impl Entry {
    /// Appends the request that adds it.
    pub fn request(&self, id: i32, out: &mut Vec<u8>) {
        ber::nested(out, tag::SEQUENCE, |out| {
            ber::integer(out, tag::INTEGER, id);
            ber::nested(out, op::ADD, |out| {
                ber::octets(out, tag::OCTETS, &self.dn);
                ber::nested(out, tag::SEQUENCE, |out| {
                    for (name, values) in &self.attributes {
                        ber::nested(out, tag::SEQUENCE, |out| {
                            ber::octets(out, tag::OCTETS, name.as_bytes());
                            ber::nested(out, tag::SET, |out| {
                                values.iter().for_each(|value| ber::octets(out, tag::OCTETS, value));
                            });
                        });
                    }
                });
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_read_with_comments_continuations_and_base64() {
        let text =
            "version: 1\n# c\ndn: dc=x\nobjectClass: top\nobjectclass: domain\ncn:: aGk=\n\n\ndn: dc=\n y\r\ndc: y\r\n";
        let found: Vec<_> = Entries::new(text).collect::<Result<_, _>>().unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].attributes[0], ("objectClass".to_owned(), vec![b"top".to_vec(), b"domain".to_vec()]));
        assert_eq!(found[0].attributes[1].1, [b"hi".to_vec()]);
        assert_eq!(found[1].dn, b"dc=y");
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, words) in [
            ("cn: x\n", "line 1: an entry begins with dn:"),
            ("dn: a=b\nno colon\n", "line 2: \"no colon\""),
            ("dn: a=b\nchangetype: modify\n", "line 2: these are changes"),
            ("dn: a=b\nc:: ???\n", "line 2: the value of c is no base64"),
        ] {
            let found = Entries::new(text).find_map(Result::err).unwrap();
            assert!(found.starts_with(words), "{found}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[dn:a= \n\r#<é]{0,60}") {
            Entries::new(&text).for_each(drop);
        }
    }
}
