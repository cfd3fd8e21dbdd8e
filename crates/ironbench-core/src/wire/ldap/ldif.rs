//! Parses LDIF (RFC 2849), the input of a bulk load: entries to add, and changes (modify, delete, modrdn).

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use super::ber::{self, tag};
use super::message::op;
use super::operation::Verb;

/// Iterates over the records of `text`. If there is a syntax error, the records before it are returned first.
pub struct Records<'a> {
    rest: &'a str,
    /// Number of the next line, from 1.
    line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub dn: Vec<u8>,
    pub change: Change,
}

type Attribute = (String, Vec<Vec<u8>>);

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Attributes in their original order, each with its values.
    Add(Vec<Attribute>),
    /// Changed attributes, each with a number for the type of change (RFC 4511 and RFC 4525).
    Modify(Vec<(u8, Attribute)>),
    Delete,
    Rename {
        rdn: Vec<u8>,
        removes_old: bool,
        parent: Option<Vec<u8>>,
    },
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Reads a line with its continuations. Returns None at the end.
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

    /// Reads the lines of the next record, without comments. Returns None at the end.
    fn lines(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            if line.is_empty() {
                if !lines.is_empty() {
                    break;
                }
            } else if !(line.starts_with('#') || lines.is_empty() && line.starts_with("version:")) {
                lines.push(line);
            }
        }
        (!lines.is_empty()).then_some(lines)
    }
}

fn record(lines: &[String]) -> Result<Record, String> {
    let (name, dn) = attribute(&lines[0])?;
    if !name.eq_ignore_ascii_case("dn") {
        return Err(format!("an entry must start with dn:, not with {name}:"));
    }
    let mut rest = &lines[1..];
    let mut kind = b"add".to_vec();
    if let Some((first, more)) = rest.split_first()
        && let (name, value) = attribute(first)?
        && name.eq_ignore_ascii_case("changetype")
    {
        (kind, rest) = (value.to_ascii_lowercase(), more);
    }
    let change = match &kind[..] {
        b"add" => Change::Add(attributes(rest)?),
        b"delete" if rest.is_empty() => Change::Delete,
        b"modify" => Change::Modify(
            rest.split(|line| line == "-").filter(|one| !one.is_empty()).map(modification).collect::<Result<_, _>>()?,
        ),
        b"modrdn" | b"moddn" => renaming(rest)?,
        _ => {
            return Err(format!(
                "changetype {} is unknown, or has lines that are not allowed",
                String::from_utf8_lossy(&kind)
            ));
        }
    };
    Ok(Record { dn, change })
}

fn attributes(lines: &[String]) -> Result<Vec<Attribute>, String> {
    let mut found: Vec<Attribute> = Vec::new();
    for line in lines {
        let (name, value) = attribute(line)?;
        match found.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, values)) => values.push(value),
            None => found.push((name.to_owned(), vec![value])),
        }
    }
    Ok(found)
}

/// Parses a modification, such as `replace: mail` followed by the values of `mail`.
fn modification(lines: &[String]) -> Result<(u8, Attribute), String> {
    let (how, name) = attribute(&lines[0])?;
    let number = match &how.to_ascii_lowercase()[..] {
        "add" => 0,
        "delete" => 1,
        "replace" => 2,
        "increment" => 3,
        _ => {
            return Err(format!(
                "a modification must start with add:, delete:, replace: or increment:, not with {how}:"
            ));
        }
    };
    let name = String::from_utf8_lossy(&name).into_owned();
    let values = lines[1..].iter().map(|line| match attribute(line)? {
        (of, value) if of.eq_ignore_ascii_case(&name) => Ok(value),
        (of, _) => Err(format!("a value of {of} was found in a modification of {name}")),
    });
    let values = values.collect::<Result<_, _>>()?;
    Ok((number, (name, values)))
}

fn renaming(lines: &[String]) -> Result<Change, String> {
    let (mut rdn, mut removes_old, mut parent) = (None, true, None);
    for line in lines {
        let (name, value) = attribute(line)?;
        match &name.to_ascii_lowercase()[..] {
            "newrdn" => rdn = Some(value),
            "deleteoldrdn" => removes_old = value != b"0",
            "newsuperior" => parent = Some(value),
            _ => return Err(format!("{name}: is not allowed in a rename")),
        }
    }
    let rdn = rdn.ok_or("newrdn: is missing")?;
    Ok(Change::Rename { rdn, removes_old, parent })
}

impl Iterator for Records<'_> {
    type Item = Result<Record, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let lines = self.lines()?;
        let found = record(&lines);
        Some(found.map_err(|cause| {
            let line = self.line - 1;
            self.rest = "";
            format!("the record that ends at line {line}: {cause}")
        }))
    }
}

fn attribute(line: &str) -> Result<(&str, Vec<u8>), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} has no colon"))?;
    let text = match value.as_bytes().first() {
        Some(b':') => {
            let decoded = BASE64.decode(value[1..].trim());
            return Ok((name, decoded.map_err(|_| format!("the value of {name} is not base64"))?));
        }
        Some(b'<') => return Err(format!("the value of {name} is in another file, which is not supported here")),
        _ => value.trim_start_matches(' '),
    };
    Ok((name, text.as_bytes().to_vec()))
}

impl Record {
    pub fn verb(&self) -> Verb {
        match self.change {
            Change::Add(_) => Verb::Add,
            Change::Modify(_) => Verb::Modify,
            Change::Delete => Verb::Delete,
            Change::Rename { .. } => Verb::Rename,
        }
    }

    /// Appends the request.
    pub fn request(&self, id: i32, out: &mut Vec<u8>) {
        ber::nested(out, tag::SEQUENCE, |out| {
            ber::integer(out, tag::INTEGER, id);
            match &self.change {
                Change::Add(attributes) => ber::nested(out, op::ADD, |out| {
                    ber::octets(out, tag::OCTETS, &self.dn);
                    ber::nested(out, tag::SEQUENCE, |out| attributes.iter().for_each(|one| put(one, out)));
                }),
                Change::Modify(modifications) => ber::nested(out, op::MODIFY, |out| {
                    ber::octets(out, tag::OCTETS, &self.dn);
                    ber::nested(out, tag::SEQUENCE, |out| {
                        for (how, attribute) in modifications {
                            ber::nested(out, tag::SEQUENCE, |out| {
                                out.extend_from_slice(&[tag::ENUMERATED, 1, *how]);
                                put(attribute, out);
                            });
                        }
                    });
                }),
                Change::Delete => ber::octets(out, op::DELETE, &self.dn),
                Change::Rename { rdn, removes_old, parent } => ber::nested(out, op::RENAME, |out| {
                    ber::octets(out, tag::OCTETS, &self.dn);
                    ber::octets(out, tag::OCTETS, rdn);
                    ber::boolean(out, *removes_old);
                    if let Some(parent) = parent {
                        ber::octets(out, 0x80, parent);
                    }
                }),
            }
        });
    }
}

fn put((name, values): &Attribute, out: &mut Vec<u8>) {
    ber::nested(out, tag::SEQUENCE, |out| {
        ber::octets(out, tag::OCTETS, name.as_bytes());
        ber::nested(out, tag::SET, |out| values.iter().for_each(|value| ber::octets(out, tag::OCTETS, value)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_read_with_comments_continuations_and_base64() {
        let text =
            "version: 1\n# c\ndn: dc=x\nobjectClass: top\nobjectclass: domain\ncn:: aGk=\n\n\ndn: dc=\n y\r\ndc: y\r\n";
        let found: Vec<_> = Records::new(text).collect::<Result<_, _>>().unwrap();
        assert_eq!(found.len(), 2);
        let Change::Add(attributes) = &found[0].change else { panic!("it is added") };
        assert_eq!(attributes[0], ("objectClass".to_owned(), vec![b"top".to_vec(), b"domain".to_vec()]));
        assert_eq!(attributes[1].1, [b"hi".to_vec()]);
        assert_eq!(found[1].dn, b"dc=y");
    }

    #[test]
    fn changes_are_read_as_the_rfc_writes_them() {
        let text = "dn: a=b\nchangetype: modify\nadd: c\nc: 1\nC: 2\n-\ndelete: d\n-\n\ndn: a=b\nchangetype: delete\n\n\
                    dn: a=b\nchangetype: modrdn\nnewrdn: a=c\ndeleteoldrdn: 0\nnewsuperior: o=x\n";
        let found: Vec<_> = Records::new(text).map(|one| one.unwrap().change).collect();
        let added = ("c".to_owned(), vec![b"1".to_vec(), b"2".to_vec()]);
        assert_eq!(found[0], Change::Modify(vec![(0, added), (1, ("d".to_owned(), Vec::new()))]));
        assert_eq!(found[1], Change::Delete);
        let parent = Some(b"o=x".to_vec());
        assert_eq!(found[2], Change::Rename { rdn: b"a=c".to_vec(), removes_old: false, parent });
    }

    #[test]
    fn a_mistake_is_told() {
        for (text, words) in [
            ("cn: x\n", "an entry must start with dn:"),
            ("dn: a=b\nno colon\n", "\"no colon\""),
            ("dn: a=b\nchangetype: sort\n", "changetype sort"),
            ("dn: a=b\nchangetype: modify\nadd: c\nd: 1\n", "a value of d"),
            ("dn: a=b\nchangetype: modify\nc: 1\n", "a modification must start"),
            ("dn: a=b\nchangetype: modrdn\n", "newrdn: is missing"),
            ("dn: a=b\nc:: ???\n", "the value of c is not base64"),
        ] {
            let found = Records::new(text).find_map(Result::err).unwrap();
            assert!(found.contains(words), "{found}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[dn:a= \n\r#<é-]{0,60}", kind in "(modify|delete|modrdn|add)") {
            Records::new(&text).for_each(drop);
            Records::new(&format!("dn: a=b\nchangetype: {kind}\n{text}")).flatten().for_each(|one| one.request(1, &mut Vec::new()));
        }
    }
}
