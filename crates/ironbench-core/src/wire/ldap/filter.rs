//! Parses search filters (RFC 4515) into their encoded form.

use super::ber::tag;
use super::text::{Part, literal, words};
use super::writer::Writer;

/// Maximum nesting depth of filters.
const MAX_DEPTH: usize = 20;

/// Tags of filters (RFC 4511, 4.5.1).
mod kind {
    pub const AND: u8 = 0xa0;
    pub const OR: u8 = 0xa1;
    pub const NOT: u8 = 0xa2;
    pub const EQUAL: u8 = 0xa3;
    pub const SUBSTRINGS: u8 = 0xa4;
    pub const AT_LEAST: u8 = 0xa5;
    pub const AT_MOST: u8 = 0xa6;
    pub const PRESENT: u8 = 0x87;
    pub const ROUGHLY: u8 = 0xa8;
}

/// Writes the filter. An empty filter matches every entry.
pub fn write(filter: &[Part], out: &mut Writer) -> Result<(), String> {
    if filter.is_empty() {
        out.octets(kind::PRESENT, &literal("objectClass"))?;
        return Ok(());
    }
    let mut rest = filter;
    // A single comparison needs no parentheses, as in ldapsearch.
    if filter.first() != Some(&Part::Byte(b'(')) {
        return item(filter, out);
    }
    one(&mut rest, out, 0)?;
    if rest.is_empty() { Ok(()) } else { Err(format!("unexpected {} after the end of the filter", words(rest))) }
}

fn one(rest: &mut &[Part], out: &mut Writer, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("the filter is nested more than {MAX_DEPTH} levels deep"));
    }
    expect(rest, b'(')?;
    let several = match rest.first() {
        Some(Part::Byte(b'&')) => Some(kind::AND),
        Some(Part::Byte(b'|')) => Some(kind::OR),
        Some(Part::Byte(b'!')) => Some(kind::NOT),
        _ => None,
    };
    if let Some(tag) = several {
        *rest = &rest[1..];
        out.open(tag);
        let mut count = 0;
        while rest.first() == Some(&Part::Byte(b'(')) {
            one(rest, out, depth + 1)?;
            count += 1;
        }
        out.close();
        if tag == kind::NOT && count != 1 {
            return Err("(!…) must contain exactly one filter".to_owned());
        }
        return expect(rest, b')');
    }
    let end = rest.iter().position(|part| *part == Part::Byte(b')'));
    let (inside, after) = rest.split_at(end.ok_or("a parenthesis of the filter is not closed")?);
    *rest = &after[1..];
    item(inside, out)
}

fn expect(rest: &mut &[Part], byte: u8) -> Result<(), String> {
    if rest.first() != Some(&Part::Byte(byte)) {
        return Err(format!("the filter needs {} before {:?}", byte as char, words(rest)));
    }
    *rest = &rest[1..];
    Ok(())
}

/// Parses a comparison: `attribute=value`, `attribute=val*ue`, `attribute>=value`, …
fn item(text: &[Part], out: &mut Writer) -> Result<(), String> {
    let missing = || format!("{:?} is not a comparison: = is missing", words(text));
    let at = text.iter().position(|part| *part == Part::Byte(b'=')).ok_or_else(missing)?;
    let (mut attribute, value) = (&text[..at], &text[at + 1..]);
    let mut tag = kind::EQUAL;
    for (sign, other) in [(b'>', kind::AT_LEAST), (b'<', kind::AT_MOST), (b'~', kind::ROUGHLY)] {
        if attribute.last() == Some(&Part::Byte(sign)) {
            attribute = &attribute[..attribute.len() - 1];
            tag = other;
        }
    }
    if attribute.is_empty() {
        return Err(format!("{:?} has no attribute", words(text)));
    }
    if attribute.last() == Some(&Part::Byte(b':')) {
        return Err("comparisons with a matching rule (:=) are not supported".to_owned());
    }
    if tag == kind::EQUAL && value == [Part::Byte(b'*')] {
        return out.octets(kind::PRESENT, attribute);
    }
    if tag == kind::EQUAL && value.contains(&Part::Byte(b'*')) {
        return substrings(attribute, value, out);
    }
    out.open(tag);
    out.octets(tag::OCTETS, attribute)?;
    out.octets(tag::OCTETS, &unescaped(value)?)?;
    out.close();
    Ok(())
}

fn substrings(attribute: &[Part], value: &[Part], out: &mut Writer) -> Result<(), String> {
    let pieces: Vec<_> = value.split(|part| *part == Part::Byte(b'*')).collect();
    out.open(kind::SUBSTRINGS);
    out.octets(tag::OCTETS, attribute)?;
    out.open(tag::SEQUENCE);
    for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
        let place = match number {
            0 => 0x80,
            last if last == pieces.len() - 1 => 0x82,
            _ => 0x81,
        };
        out.octets(place, &unescaped(piece)?)?;
    }
    out.close();
    out.close();
    Ok(())
}

/// Replaces escapes such as `\2a` by the byte with that number.
fn unescaped(value: &[Part]) -> Result<Vec<Part>, String> {
    let digit = |part: Option<&Part>| match part {
        Some(Part::Byte(byte)) => (*byte as char).to_digit(16),
        _ => None,
    };
    let (mut found, mut at) = (Vec::with_capacity(value.len()), 0);
    while let Some(part) = value.get(at) {
        at += 1;
        if *part != Part::Byte(b'\\') {
            found.push(part.clone());
            continue;
        }
        let (high, low) = (digit(value.get(at)), digit(value.get(at + 1)));
        let (Some(high), Some(low)) = (high, low) else {
            return Err("in a filter, a backslash must be followed by two hexadecimal digits, as in \\2a".to_owned());
        };
        found.push(Part::Byte((high * 16 + low) as u8));
        at += 2;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(text: &str) -> Result<Vec<u8>, String> {
        let mut out = Writer::default();
        write(&literal(text), &mut out)?;
        Ok(out.plain())
    }

    #[test]
    fn filters_are_sent_as_the_standard_encodes_them() {
        assert_eq!(sent("").unwrap(), b"\x87\x0bobjectClass");
        assert_eq!(sent("(cn=*)").unwrap(), b"\x87\x02cn");
        assert_eq!(sent("cn=a").unwrap(), b"\xa3\x07\x04\x02cn\x04\x01a");
        assert_eq!(sent("(cn=\\2a)").unwrap(), b"\xa3\x07\x04\x02cn\x04\x01*");
        assert_eq!(sent("(n>=5)").unwrap(), b"\xa5\x06\x04\x01n\x04\x015");
        assert_eq!(sent("(cn=a*b*c)").unwrap(), b"\xa4\x0f\x04\x02cn\x30\x09\x80\x01a\x81\x01b\x82\x01c");
        assert_eq!(
            sent("(&(cn=a)(!(cn=b)))").unwrap(),
            b"\xa0\x14\xa3\x07\x04\x02cn\x04\x01a\xa2\x09\xa3\x07\x04\x02cn\x04\x01b"
        );
    }

    #[test]
    fn a_filter_that_is_none_is_refused_with_its_reason() {
        for (text, word) in [
            ("(cn=a", "not closed"),
            ("(cn=a))", "after the end"),
            ("(cn)", "= is missing"),
            ("(=a)", "no attribute"),
            ("(!(a=b)(c=d))", "exactly one"),
            ("(cn=\\zz)", "hexadecimal"),
            ("(cn:=a)", "matching rule"),
        ] {
            assert!(sent(text).unwrap_err().contains(word), "{text}");
        }
        assert!(sent(&format!("{}(a=b){}", "(!".repeat(30), ")".repeat(30))).unwrap_err().contains("nested"));
    }

    proptest! {
        #[test]
        fn arbitrary_filters_never_panic(text in "[()&|!=*<>~:\\\\a2]{0,40}") {
            let _ = sent(&text);
        }
    }
}
