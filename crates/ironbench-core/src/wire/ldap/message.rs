//! Messages of LDAP (RFC 4511, 4.1.1): cut out of a stream, and parsed.

use super::ber::{self, Malformed, Reader, tag};
use crate::wire::display::said;

/// Tags of the operations.
pub mod op {
    pub const BIND: u8 = 0x60;
    pub const BOUND: u8 = 0x61;
    pub const UNBIND: u8 = 0x42;
    pub const SEARCH: u8 = 0x63;
    pub const ENTRY: u8 = 0x64;
    pub const SEARCHED: u8 = 0x65;
    pub const REFERENCE: u8 = 0x73;
    pub const MODIFY: u8 = 0x66;
    pub const ADD: u8 = 0x68;
    pub const DELETE: u8 = 0x4a;
    pub const RENAME: u8 = 0x6c;
    pub const COMPARE: u8 = 0x6e;
    pub const ABANDON: u8 = 0x50;
    pub const EXTENDED: u8 = 0x77;
    pub const EXTENDED_ANSWER: u8 = 0x78;
    pub const INTERMEDIATE: u8 = 0x79;
}

/// Result codes that ironbench interprets (RFC 4511, appendix A).
pub mod code {
    pub const SUCCESS: i32 = 0;
    pub const SIZE_LIMIT_EXCEEDED: i32 = 4;
    pub const COMPARE_FALSE: i32 = 5;
    pub const COMPARE_TRUE: i32 = 6;
    pub const REFERRAL: i32 = 10;
    pub const CONFIDENTIALITY_REQUIRED: i32 = 13;
    pub const SASL_BIND_IN_PROGRESS: i32 = 14;
    pub const INVALID_CREDENTIALS: i32 = 49;
    pub const BUSY: i32 = 51;
}

/// A complete message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    pub id: i32,
    /// Tag of the operation.
    pub tag: u8,
    pub body: &'a [u8],
}

/// Returns the next complete message, and advances `input` past it. Returns None if `input` contains no complete
/// message. The bytes must then be kept.
#[inline]
pub fn next<'a>(input: &mut &'a [u8]) -> Result<Option<Message<'a>>, Malformed> {
    match input.first() {
        None => return Ok(None),
        Some(&tag::SEQUENCE) => {}
        Some(_) => return Err(Malformed::Invalid),
    }
    let Some((start, length)) = ber::header(input)? else { return Ok(None) };
    let Some(body) = input.get(start..start + length) else { return Ok(None) };
    let mut reader = Reader(body);
    let id = reader.number(tag::INTEGER)?;
    let (tag, body) = reader.element()?;
    // Controls may follow, although ironbench requests none. These controls are skipped.
    *input = &input[start + length..];
    Ok(Some(Message { id, tag, body }))
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub code: i32,
    /// The server's message, and the nearest existing entry.
    pub words: String,
    /// Addresses of other servers to which this server refers.
    pub referral: String,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", name(self.code), self.code)?;
        for more in [&self.words, &self.referral] {
            if !more.is_empty() {
                write!(f, ": {more}")?;
            }
        }
        Ok(())
    }
}

/// Parses only the result code, for the hot path.
#[inline]
pub fn code_of(body: &[u8]) -> Result<i32, Malformed> {
    Reader(body).number(tag::ENUMERATED)
}

pub fn done(body: &[u8]) -> Result<Done, Malformed> {
    let mut reader = Reader(body);
    let code = reader.number(tag::ENUMERATED)?;
    let matched = said(reader.expect(tag::OCTETS)?);
    let mut words = said(reader.expect(tag::OCTETS)?);
    if !matched.is_empty() {
        let nearest = format!("the nearest entry above is {matched}");
        words = if words.is_empty() { nearest } else { format!("{words}; {nearest}") };
    }
    let referral = if reader.peek() == Some(REFERRALS) { urls(reader.expect(REFERRALS)?) } else { String::new() };
    Ok(Done { code, words, referral })
}

const REFERRALS: u8 = 0xa3;
const SASL_CREDENTIALS: u8 = 0x87;

/// Returns the server's SASL credentials. The credentials are empty if the server sent none.
pub fn sasl_credentials(body: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader(body);
    while !reader.is_empty() {
        if let (SASL_CREDENTIALS, found) = reader.element()? {
            return Ok(found.to_vec());
        }
    }
    Ok(Vec::new())
}

/// Maximum number of a referral's addresses in an error message.
const MAX_URLS: usize = 10;

/// Returns the addresses in a referral or a reference.
pub fn urls(body: &[u8]) -> String {
    let mut reader = Reader(body);
    let mut found = Vec::new();
    while let Ok((_, url)) = reader.element()
        && found.len() < MAX_URLS
    {
        found.push(said(url));
    }
    found.join(" ")
}

/// Parses an entry and returns its DN. Calls `take` with the attribute's name and the value, for each value.
pub fn entry<'a>(body: &'a [u8], mut take: impl FnMut(&'a [u8], &'a [u8])) -> Result<&'a [u8], Malformed> {
    let mut reader = Reader(body);
    let dn = reader.expect(tag::OCTETS)?;
    let mut attributes = Reader(reader.expect(tag::SEQUENCE)?);
    while !attributes.is_empty() {
        let mut attribute = Reader(attributes.expect(tag::SEQUENCE)?);
        let name = attribute.expect(tag::OCTETS)?;
        let mut values = Reader(attribute.expect(tag::SET)?);
        while !values.is_empty() {
            take(name, values.expect(tag::OCTETS)?);
        }
    }
    Ok(dn)
}

/// Appends a request. `value` is the encoded content of its operation.
pub fn request(out: &mut Vec<u8>, id: i32, tag: u8, value: &[u8]) {
    ber::nested(out, ber::tag::SEQUENCE, |out| {
        ber::integer(out, ber::tag::INTEGER, id);
        ber::octets(out, tag, value);
    });
}

/// Appends an unbind, which ends the session and is not answered.
pub fn unbind(out: &mut Vec<u8>) {
    request(out, i32::MAX, op::UNBIND, b"");
}

/// Appends a request to abandon the request with the ID `of`. The server does not answer an abandon request.
pub fn abandon(out: &mut Vec<u8>, id: i32, of: i32) {
    ber::nested(out, ber::tag::SEQUENCE, |out| {
        ber::integer(out, ber::tag::INTEGER, id);
        ber::integer(out, op::ABANDON, of);
    });
}

/// Returns the name of a result code in the RFC.
pub fn name(code: i32) -> &'static str {
    match code {
        0 => "success",
        1 => "operationsError",
        2 => "protocolError",
        3 => "timeLimitExceeded",
        4 => "sizeLimitExceeded",
        5 => "compareFalse",
        6 => "compareTrue",
        7 => "authMethodNotSupported",
        8 => "strongerAuthRequired",
        10 => "referral",
        11 => "adminLimitExceeded",
        12 => "unavailableCriticalExtension",
        13 => "confidentialityRequired",
        14 => "saslBindInProgress",
        16 => "noSuchAttribute",
        17 => "undefinedAttributeType",
        18 => "inappropriateMatching",
        19 => "constraintViolation",
        20 => "attributeOrValueExists",
        21 => "invalidAttributeSyntax",
        32 => "noSuchObject",
        33 => "aliasProblem",
        34 => "invalidDNSyntax",
        36 => "aliasDereferencingProblem",
        48 => "inappropriateAuthentication",
        49 => "invalidCredentials",
        50 => "insufficientAccessRights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwillingToPerform",
        54 => "loopDetect",
        64 => "namingViolation",
        65 => "objectClassViolation",
        66 => "notAllowedOnNonLeaf",
        67 => "notAllowedOnRDN",
        68 => "entryAlreadyExists",
        69 => "objectClassModsProhibited",
        71 => "affectsMultipleDSAs",
        80 => "other",
        _ => "result code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(id: i32, code: i32, words: &str) -> Vec<u8> {
        let mut out = Vec::new();
        ber::nested(&mut out, tag::SEQUENCE, |out| {
            ber::integer(out, tag::INTEGER, id);
            ber::nested(out, op::SEARCHED, |out| {
                ber::integer(out, tag::ENUMERATED, code);
                ber::octets(out, tag::OCTETS, b"dc=com");
                ber::octets(out, tag::OCTETS, words.as_bytes());
                ber::nested(out, REFERRALS, |out| ber::octets(out, tag::OCTETS, b"ldap://other/"));
            });
        });
        out
    }

    #[test]
    fn an_answer_tells_code_words_and_referral() {
        let bytes = answer(7, 10, "elsewhere");
        let message = next(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!((message.id, message.tag), (7, op::SEARCHED));
        assert_eq!(code_of(message.body), Ok(10));
        let told = done(message.body).unwrap().to_string();
        assert_eq!(told, "referral (10): elsewhere; the nearest entry above is dc=com: ldap://other/");
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_messages(ids in prop::collection::vec(1i32.., 1..8), size in 1usize..50) {
            let stream: Vec<u8> = ids.iter().flat_map(|&id| answer(id, 0, &"x".repeat(id as usize % 300))).collect();
            let (mut buffer, mut found) = (Vec::new(), Vec::new());
            for piece in stream.chunks(size) {
                buffer.extend_from_slice(piece);
                let mut unread = &buffer[..];
                while let Some(message) = next(&mut unread).unwrap() {
                    found.push(message.id);
                }
                let read = buffer.len() - unread.len();
                buffer.drain(..read);
            }
            prop_assert_eq!(found, ids);
        }

        #[test]
        fn a_spoilt_answer_never_panics(id: i32, at in 0usize..60, byte: u8, cut in 0usize..60) {
            let mut bytes = answer(id, 32, "no such object");
            let length = bytes.len();
            bytes[at % length] = byte;
            bytes.truncate(length - cut % length);
            let mut input = &bytes[..];
            while let Ok(Some(message)) = next(&mut input) {
                let _ = done(message.body);
                let _ = sasl_credentials(message.body);
                let _ = entry(message.body, |_, _| {});
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(first) = bytes.first_mut() {
                *first = tag::SEQUENCE;
            }
            let mut input = &bytes[..];
            while let Ok(Some(message)) = next(&mut input) {
                let _ = (done(message.body), entry(message.body, |_, _| {}), urls(message.body));
            }
        }
    }
}
