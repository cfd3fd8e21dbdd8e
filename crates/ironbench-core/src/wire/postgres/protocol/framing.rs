//! Cuts complete messages out of the bytes that have arrived, and rejects those that are too long.

use super::backend::tag;
use crate::wire::UNEXPECTED;

/// A reason why the received bytes are not a PostgreSQL message that the client accepts. The stream has become
/// unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the server sent data that is not a PostgreSQL message")]
    Invalid,
    #[error(
        "the server announced a message of {size} bytes (type {tag}); the limit is {most}",
        tag = char::from(*.tag), most = LONGEST[usize::from(*.tag)]
    )]
    TooLong { tag: u8, size: usize },
    #[error("{UNEXPECTED}")]
    Unexpected,
}

/// Maximum length of a row message that is kept, including its header. Kept rows contain results of ironbench's own
/// queries or of `\gset`. Rows that are not kept may have any length. PostgreSQL itself sends no row above 1 GB.
const LONGEST_ROW: usize = 64 << 20;
/// Maximum length of messages that contain text, and of descriptions of up to 65,535 columns or parameters.
const LONGEST_TEXT: usize = 8 << 20;
/// Maximum length of all other messages, which are short. The limit of libpq (fe-protocol3.c) is 30,000.
const LONGEST_OTHER: usize = 64 << 10;

/// Maximum length of messages with each tag. 0 if no message has this tag.
const LONGEST: [usize; 256] = {
    use tag::*;
    let mut longest = [0; 256];
    let mut tags: &[(u8, usize)] = &[
        (AUTHENTICATION, LONGEST_OTHER),
        (BACKEND_KEY_DATA, LONGEST_OTHER),
        (BIND_COMPLETE, LONGEST_OTHER),
        (CLOSE_COMPLETE, LONGEST_OTHER),
        (COMMAND_COMPLETE, LONGEST_OTHER),
        (COPY_BOTH_RESPONSE, LONGEST_OTHER),
        (COPY_DATA, LONGEST_ROW),
        (COPY_DONE, LONGEST_OTHER),
        (COPY_IN_RESPONSE, LONGEST_OTHER),
        (COPY_OUT_RESPONSE, LONGEST_OTHER),
        (DATA_ROW, LONGEST_ROW),
        (EMPTY_QUERY_RESPONSE, LONGEST_OTHER),
        (ERROR_RESPONSE, LONGEST_TEXT),
        (NEGOTIATE_PROTOCOL_VERSION, LONGEST_OTHER),
        (NO_DATA, LONGEST_OTHER),
        (NOTICE_RESPONSE, LONGEST_TEXT),
        (NOTIFICATION_RESPONSE, LONGEST_OTHER),
        (PARAMETER_DESCRIPTION, LONGEST_TEXT),
        (PARAMETER_STATUS, LONGEST_OTHER),
        (PARSE_COMPLETE, LONGEST_OTHER),
        (PORTAL_SUSPENDED, LONGEST_OTHER),
        (READY_FOR_QUERY, LONGEST_OTHER),
        (ROW_DESCRIPTION, LONGEST_TEXT),
    ];
    while let Some(((tag, most), rest)) = tags.split_first() {
        longest[*tag as usize] = *most;
        tags = rest;
    }
    longest
};

/// A message. `body` contains the bytes after its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    pub tag: u8,
    pub body: &'a [u8],
}

/// Whether DataRow and CopyData are returned or skipped. Skipped messages are not parsed and need no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Keep,
    Skip,
}

/// Size of the header: tag and length.
const HEAD: usize = 5;

/// Cuts messages out of a stream that arrives in pieces of any size.
///
/// The caller owns the buffer. The caller passes the unread bytes, takes messages until `None`, moves the rest to the
/// front and reads more. With `Rows::Skip`, rows take no memory, because their bytes are consumed as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct Framer {
    /// Number of bytes of a skipped message that have not arrived yet.
    owed: usize,
}

impl Framer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next complete message, and advances `input` past it. Returns None if `input` contains no complete
    /// message. The bytes must then be kept.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8], rows: Rows) -> Result<Option<Message<'a>>, Malformed> {
        let mut rest = *input;
        if self.owed > 0 {
            let passed = self.owed.min(rest.len());
            self.owed -= passed;
            rest = &rest[passed..];
        }
        loop {
            let Some(size) = message_size(rest)? else {
                *input = rest;
                return Ok(None);
            };
            let tag = rest[0];
            if rows == Rows::Skip && (tag == tag::DATA_ROW || tag == tag::COPY_DATA) {
                if size > rest.len() {
                    self.owed = size - rest.len();
                    *input = &rest[rest.len()..];
                    return Ok(None);
                }
                rest = &rest[size..];
                continue;
            }
            if size > LONGEST[usize::from(tag)] {
                return Err(refused(tag, size));
            }
            if size > rest.len() {
                *input = rest;
                return Ok(None);
            }
            *input = &rest[size..];
            return Ok(Some(Message { tag, body: &rest[HEAD..size] }));
        }
    }
}

#[cold]
fn refused(tag: u8, size: usize) -> Malformed {
    if LONGEST[usize::from(tag)] == 0 { Malformed::Invalid } else { Malformed::TooLong { tag, size } }
}

/// Whether the received messages are allowed while no reply is expected. Only notices, changed settings, notifications,
/// and the error that ends the session are allowed. Any other message would be mistaken for the next reply.
pub fn is_unexpected_allowed(mut input: &[u8]) -> bool {
    use tag::{ERROR_RESPONSE, NOTICE_RESPONSE, NOTIFICATION_RESPONSE, PARAMETER_STATUS};
    while let Some(&tag) = input.first() {
        if !matches!(tag, ERROR_RESPONSE | NOTICE_RESPONSE | NOTIFICATION_RESPONSE | PARAMETER_STATUS) {
            return false;
        }
        match message_size(input) {
            Ok(Some(size)) => input = input.get(size..).unwrap_or_default(),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
    true
}

/// Returns the length of the message at the start of `input`, including its header. Returns None if the header is
/// incomplete. Callers use the length to size the buffer for a large message.
#[inline]
pub fn message_size(input: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(&[_, a, b, c, d]) = input.first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes([a, b, c, d]);
    if length < 4 { Err(Malformed::Invalid) } else { Ok(Some(1 + length as usize)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, body) in messages {
            out.push(*tag);
            out.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
            out.extend_from_slice(body);
        }
        out
    }

    /// Reads `stream` in pieces of the given sizes, like a transport. Returns the messages and the maximum number of
    /// bytes in the buffer.
    fn decoded(stream: &[u8], sizes: &[usize], rows: Rows) -> (Vec<(u8, Vec<u8>)>, usize) {
        let (mut framer, mut buffer, mut found, mut kept) = (Framer::new(), Vec::new(), Vec::new(), 0);
        let (mut at, mut turn) = (0, 0);
        while at < stream.len() {
            let size = sizes[turn % sizes.len()].min(stream.len() - at);
            turn += 1;
            buffer.extend_from_slice(&stream[at..at + size]);
            at += size;
            let mut unread = &buffer[..];
            while let Some(message) = framer.next(&mut unread, rows).unwrap() {
                found.push((message.tag, message.body.to_vec()));
            }
            let read = buffer.len() - unread.len();
            buffer.drain(..read);
            kept = kept.max(buffer.len());
        }
        assert!(buffer.is_empty());
        (found, kept)
    }

    fn messages() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        let tag = prop::sample::select(b"DdDCZTE12S".to_vec());
        prop::collection::vec((tag, prop::collection::vec(any::<u8>(), 0..40)), 0..20)
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_messages(
            messages in messages(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            prop_assert_eq!(decoded(&encoded(&messages), &sizes, Rows::Keep).0, messages);
        }

        #[test]
        fn skipped_rows_are_missing_and_nothing_else(
            messages in messages(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            let expected: Vec<_> = messages.iter().filter(|m| m.0 != b'D' && m.0 != b'd').cloned().collect();
            prop_assert_eq!(decoded(&encoded(&messages), &sizes, Rows::Skip).0, expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Framer::new().next(&mut &bytes[..], Rows::Skip);
        }
    }

    #[test]
    fn a_skipped_row_larger_than_the_buffer_takes_no_room() {
        let stream = encoded(&[(b'D', vec![7; 1_000_000]), (b'Z', b"I".to_vec())]);
        let (found, kept) = decoded(&stream, &[4096], Rows::Skip);
        assert_eq!(found, [(b'Z', b"I".to_vec())]);
        assert!(kept < 16, "{kept}");
    }

    #[test]
    fn only_what_a_server_sends_on_its_own_may_come_unasked() {
        let message = |tag: u8, body: &[u8]| encoded(&[(tag, body.to_vec())]);
        let notice = message(b'N', b"MHello\0\0");
        for tag in *b"NSAE" {
            let whole = [&notice[..], &message(tag, b"x\0")].concat();
            assert!((0..=whole.len()).all(|end| is_unexpected_allowed(&whole[..end])));
        }
        for tag in *b"ZCDTRK1x" {
            let whole = [&notice[..], &message(tag, b"I")].concat();
            let allowed = (0..=whole.len()).filter(|end| is_unexpected_allowed(&whole[..*end]));
            assert_eq!(allowed.max(), Some(notice.len()));
        }
        assert!(!is_unexpected_allowed(b"N\0\0\0\x03"));
    }

    #[test]
    fn a_length_below_four_is_malformed() {
        assert_eq!(Framer::new().next(&mut &b"Z\0\0\0\x03"[..], Rows::Keep), Err(Malformed::Invalid));
        assert_eq!(Framer::new().next(&mut &b"xTTP/1.1\xff"[..], Rows::Keep), Err(Malformed::Invalid));
        assert_eq!(Framer::new().next(&mut &b"Z\xff\0\0\x03"[..], Rows::Keep), Err(Malformed::Invalid));
    }

    #[test]
    fn a_message_longer_than_its_kind_may_be_is_refused_by_its_head() {
        for (tag, most) in [(b'D', LONGEST_ROW), (b'E', LONGEST_TEXT), (b'N', LONGEST_TEXT), (b'Z', LONGEST_OTHER)] {
            let announced = |size: usize| [&[tag][..], &(size as i32 - 1).to_be_bytes()[..]].concat();
            let next = |size| Framer::new().next(&mut &announced(size)[..], Rows::Keep).map(|found| found.is_some());
            assert_eq!(next(most), Ok(false));
            assert_eq!(next(most + 1), Err(Malformed::TooLong { tag, size: most + 1 }));
        }
        let words = Malformed::TooLong { tag: b'D', size: 2_147_483_648 }.to_string();
        assert_eq!(words, "the server announced a message of 2147483648 bytes (type D); the limit is 67108864");
    }
}
