//! Parses the English log messages about statements (`postgres.c` of PostgreSQL: `exec_simple_query` and its
//! neighbours).

use std::ops::Range;

use memchr::memmem;

/// The content of a message of severity LOG.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A statement of the simple protocol, with its duration if it has ended.
    Statement {
        text: &'a [u8],
        duration_us: Option<u64>,
    },
    /// A Parse or Bind of the extended protocol.
    Prepared {
        is_bind: bool,
        is_named: bool,
        duration_us: u64,
    },
    /// An Execute of the extended protocol.
    Execute {
        name: &'a [u8],
        text: &'a [u8],
        duration_us: Option<u64>,
        fetches: bool,
    },
    /// The duration of the statement in the preceding entry of the session.
    Duration(u64),
    /// The beginning of a session. If connections are logged, it is the session's first entry.
    Connected,
    Disconnected,
    Other,
}

impl<'a> Message<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        if let Some(rest) = message.strip_prefix(b"duration: ") {
            return Self::timed(rest).unwrap_or(Self::Other);
        }
        if message.starts_with(b"connection received: ") {
            return Self::Connected;
        }
        if message.starts_with(b"disconnection: ") {
            return Self::Disconnected;
        }
        Self::work(message, None).unwrap_or(Self::Other)
    }

    fn timed(rest: &'a [u8]) -> Option<Self> {
        let (number, rest) = rest.split_at(memmem::find(rest, b" ms")?);
        let duration_us = microseconds(number)?;
        match &rest[3..] {
            [] => Some(Self::Duration(duration_us)),
            [b' ', b' ', work @ ..] => Self::work(work, Some(duration_us)),
            _ => None,
        }
    }

    fn work(text: &'a [u8], duration_us: Option<u64>) -> Option<Self> {
        if let Some(text) = text.strip_prefix(b"statement: ") {
            return Some(Self::Statement { text, duration_us });
        }
        if let Some(rest) = text.strip_prefix(b"execute ") {
            let rest_of_fetch = rest.strip_prefix(b"fetch from ");
            let (name, text) = named(rest_of_fetch.unwrap_or(rest))?;
            return Some(Self::Execute { name, text, duration_us, fetches: rest_of_fetch.is_some() });
        }
        let (is_bind, rest) = match (text.strip_prefix(b"bind "), text.strip_prefix(b"parse ")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return None,
        };
        let (name, _) = named(rest)?;
        Some(Self::Prepared { is_bind, is_named: !name.is_empty(), duration_us: duration_us? })
    }
}

/// Splits `NAME/PORTAL: STATEMENT` into the name of the prepared statement and the text. The unnamed statement has an
/// empty name.
fn named(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memmem::find(text, b": ")?;
    let name = &text[..end];
    let name = memchr::memchr(b'/', name).map_or(name, |slash| &name[..slash]);
    Some((if name == b"<unnamed>" { b"" } else { name }, &text[end + 2..]))
}

/// Parses a number of milliseconds with three decimals.
fn microseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = !fraction.is_empty() && fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let micros =
        if is_number { fraction.parse::<u64>().ok()? * 10u64.pow(3 - fraction.len() as u32) } else { return None };
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(micros)
}

/// Returns the list of parameters and everything after it. The list is in a DETAIL (`Parameters: $1 = …`, in version 18
/// also in lower case), or in the CONTEXT of an error (`unnamed portal with parameters: $1 = …`).
pub fn parameters(text: &[u8]) -> Option<&[u8]> {
    let is_detail = text.len() > 12 && text[..12].eq_ignore_ascii_case(b"parameters: ");
    let start = if is_detail { 12 } else { memmem::find(text, b"with parameters: ")? + 17 };
    text.get(start..).filter(|list| list.starts_with(b"$"))
}

/// A value in a list of parameters: its range, and whether it contains doubled quotes. NULL is stored as None.
pub type Value = Option<(Range<usize>, bool)>;

/// Splits a list such as `$1 = '9', $2 = NULL`. Returns false if the list is damaged.
pub fn split_parameters(list: &[u8], values: &mut Vec<Value>) -> bool {
    values.clear();
    let mut at = 0;
    while at < list.len() {
        let digits = list[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&list[at + 1..at + 1 + digits]).ok().and_then(|text| text.parse().ok());
        if list[at] != b'$' || number != Some(values.len() + 1) || !list[at + 1 + digits..].starts_with(b" = ") {
            return false;
        }
        at += 1 + digits + 3;
        if list[at..].starts_with(b"NULL") {
            values.push(None);
            at += 4;
        } else if list.get(at) == Some(&b'\'') {
            let (start, mut doubled) = (at + 1, false);
            at += 1;
            loop {
                let Some(quote) = memchr::memchr(b'\'', &list[at..]) else { return false };
                at += quote + 1;
                if list.get(at) != Some(&b'\'') {
                    break;
                }
                (doubled, at) = (true, at + 1);
            }
            values.push(Some((start..at - 1, doubled)));
        } else {
            return false;
        }
        match &list[at..] {
            [] => return true,
            [b',', b' ', b'$', ..] => at += 2,
            // In the context of an error, other text may follow the parameters.
            [b'\n', ..] => return true,
            _ => return false,
        }
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_of_both_protocols_are_read() {
        let execute = |name, text, duration_us, fetches| Message::Execute { name, text, duration_us, fetches };
        for (text, expected) in [
            ("statement: select 1", Message::Statement { text: b"select 1", duration_us: None }),
            (
                "duration: 12.5 ms  statement: select 1",
                Message::Statement { text: b"select 1", duration_us: Some(12_500) },
            ),
            ("duration: 16.139 ms", Message::Duration(16_139)),
            ("execute <unnamed>: select $1", execute(b"", b"select $1", None, false)),
            ("execute S_1/C_2: a: b", execute(b"S_1", b"a: b", None, false)),
            ("duration: 0.070 ms  execute fetch from S_1/C_2: a", execute(b"S_1", b"a", Some(70), true)),
            (
                "duration: 0.129 ms  parse P_0: BEGIN;",
                Message::Prepared { is_bind: false, is_named: true, duration_us: 129 },
            ),
            (
                "duration: 0.049 ms  bind <unnamed>: x",
                Message::Prepared { is_bind: true, is_named: false, duration_us: 49 },
            ),
            ("disconnection: session time: 0:00:01", Message::Disconnected),
            ("duration: 5 ms  plan:\nQuery Text: x", Message::Other),
            ("checkpoint starting: time", Message::Other),
            ("Anweisung: select 1", Message::Other),
        ] {
            assert_eq!(Message::of(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_split_at_their_quotes() {
        let mut values = Vec::new();
        let list = parameters(b"Parameters: $1 = '9', $2 = NULL, $3 = 'it''s, $4 = ''x'''").unwrap();
        assert!(split_parameters(list, &mut values));
        assert_eq!(values, [Some((6..7, false)), None, Some((27..44, true))]);
        let context = parameters(b"unnamed portal with parameters: $1 = 'a'\nmore").unwrap();
        assert!(split_parameters(context, &mut values) && values.len() == 1);
        for damaged in ["$1 = 'open", "$2 = 'a'", "$1 = 'a' x", "$1 = ", "$1 = 'a', $3 = 'b'"] {
            assert!(!split_parameters(damaged.as_bytes(), &mut values), "{damaged}");
        }
        assert_eq!(parameters(b"prepare: PREPARE a AS select 1"), None);
    }

    proptest! {
        #[test]
        fn any_list_is_split_or_refused(text in "[$0-9 ='NUL,\\n]{0,40}") {
            split_parameters(text.as_bytes(), &mut Vec::new());
        }
    }
}
