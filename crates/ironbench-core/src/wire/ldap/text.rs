//! The text of an operation: bytes, variables, and random letters.

use pgbench_script::{Piece as Text, Slot};

/// Maximum number of random letters in one place.
const MAX_LETTERS: usize = 1 << 20;

/// A part of a text: a byte, a variable, or random letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Byte(u8),
    Variable(Slot),
    Letters { of: Vec<u8>, count: usize },
}

pub fn pair(text: &[Part]) -> Result<(&[Part], &[Part]), String> {
    match text.iter().position(|part| *part == Part::Byte(b'=')) {
        Some(at) if at > 0 => Ok((trimmed(&text[..at]), trimmed(&text[at + 1..]))),
        _ => Err(format!("{:?} is not attribute=value", words(text))),
    }
}

/// Completes a DN that ends with a comma by appending `base`.
pub fn complete(dn: &mut Vec<Part>, base: &str) {
    if dn.last() == Some(&Part::Byte(b',')) {
        if dn.len() == 1 || base.is_empty() {
            dn.pop();
        }
        dn.extend(literal(base));
    }
}

/// Converts text without variables.
pub fn literal(text: &str) -> Vec<Part> {
    text.bytes().map(Part::Byte).collect()
}

/// Formats the parts for messages.
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

pub fn plain(value: &[Part]) -> Option<Vec<u8>> {
    let byte = |part: &Part| match part {
        Part::Byte(byte) => Some(*byte),
        _ => None,
    };
    value.iter().map(byte).collect()
}

pub fn trimmed(parts: &[Part]) -> &[Part] {
    let is_space = |part: &Part| matches!(part, Part::Byte(byte) if byte.is_ascii_whitespace());
    let start = parts.iter().position(|part| !is_space(part)).unwrap_or(parts.len());
    let end = parts.iter().rposition(|part| !is_space(part)).map_or(start, |last| last + 1);
    &parts[start..end]
}

/// Splits a line into parts, recognising random letters.
pub fn scanned(line: &[Text]) -> Result<Vec<Part>, String> {
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

/// Parses random letters such as `[a-z0-9]{80}` at the start of `bytes`.
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
    let count = text.parse().ok().filter(|count| (1..=MAX_LETTERS).contains(count));
    let count = count.ok_or_else(|| format!("{{{text}}} is not a number of letters from 1 to {MAX_LETTERS}"))?;
    Ok(Some((Part::Letters { of, count }, 1 + end + 2 + close + 1)))
}

/// Decodes `%3F` as in a URL. Text that is not such an escape stays unchanged.
pub fn decoded(field: &[Part]) -> Vec<Part> {
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
