//! Texts with the backslash sequences of JSON (RFC 8259, section 7). Strings of PostgreSQL with the prefix E have nearly the
//! same sequences.

/// How a text contains a character.
enum Written<'a> {
    Plain,
    /// `\uXXXX`, or two of these sequences for a character above U+FFFF.
    Code,
    /// Another sequence, such as `\n`.
    Sequence(&'a str),
}

/// Replaces the text for which `source` stands. Each character of the replacement is written as the character in its
/// place was. `replace` returns a text of the same length that contains the same control characters, quotes and
/// backslashes in the same places.
pub fn replaced(source: &str, replace: impl FnOnce(&str) -> String) -> String {
    let (mut text, mut written) = (String::with_capacity(source.len()), Vec::new());
    let mut rest = source;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        written.extend(rest[..at].chars().map(|_| Written::Plain));
        let (letter, length, way) = match code(&rest[at..]) {
            Some((letter, length)) => (letter, length, Written::Code),
            None => {
                let letter = rest[at + 1..].chars().next();
                let length = 1 + letter.map_or(0, char::len_utf8);
                let letter = match letter {
                    Some('b') => '\x08',
                    Some('f') => '\x0c',
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(mark @ ('"' | '\'' | '/')) => mark,
                    // Sequences that JSON does not have count as a backslash too, because masking keeps a backslash.
                    _ => '\\',
                };
                (letter, length, Written::Sequence(&rest[at..at + length]))
            }
        };
        text.push(letter);
        written.push(way);
        rest = &rest[at + length..];
    }
    text.push_str(rest);
    written.extend(rest.chars().map(|_| Written::Plain));
    let mut out = String::with_capacity(source.len());
    for (letter, written) in replace(&text).chars().zip(written) {
        match written {
            Written::Plain => out.push(letter),
            Written::Sequence(sequence) => out.push_str(sequence),
            Written::Code => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// Returns the character that the text begins with if it is written as `\uXXXX`, and the length of its sequences. A
/// surrogate without the other half of its pair is no character, and becomes U+FFFD.
fn code(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let letter = char::decode_utf16(unit(0).into_iter().chain(unit(6))).next()?.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((letter, 6 * letter.len_utf16()))
}
