//! Cuts complete packets out of the bytes that have arrived, and rejects those that are too long.

use super::backend::head::ERROR;
use crate::wire::UNEXPECTED;

/// A reason why the received bytes are not a packet that the client accepts. The stream has become unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the server sent data that is not a packet of MySQL's protocol")]
    Invalid,
    #[error("the server announced a packet of 16 MiB or more; the limit is {LONGEST} bytes")]
    TooLong,
    #[error("{UNEXPECTED}")]
    Unexpected,
}

/// Maximum length of an accepted packet. Only skipped rows may be longer. Such packets arrive in several parts.
pub const LONGEST: usize = PART - 1;
/// Length of a part that is followed by another part.
pub(super) const PART: usize = 0xff_ffff;
/// Size of the header: length and sequence number.
pub const HEAD: usize = 4;

/// A packet without its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Sequence number of this packet. A reply to the packet has the next number.
    pub sequence: u8,
    pub body: &'a [u8],
}

/// Whether rows are returned or skipped. Skipped rows are not parsed and need no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Keep,
    /// Rows are skipped. This is valid only while rows are expected, because the first byte of other packets has other
    /// meanings.
    Skip,
}

/// Whether the received bytes are allowed while no reply is expected. Only the error with which a server ends the
/// session is allowed. Any other packet would be mistaken for the next reply.
pub fn is_unexpected_allowed(input: &[u8]) -> bool {
    input.get(HEAD).is_none_or(|first| *first == ERROR)
}

/// Cuts packets out of a stream that arrives in pieces of any size.
///
/// The caller owns the buffer. The caller passes the unread bytes, takes packets until `None`, moves the rest to the
/// front and reads more. With `Rows::Skip`, rows take no memory, because their bytes are consumed as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct Framer {
    /// Number of bytes of a skipped row that have not arrived yet.
    owed: usize,
    /// Whether another part of the same row follows.
    continued: bool,
    /// Number of rows that were skipped.
    pub skipped: u64,
}

impl Framer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next complete packet, and advances `input` past it. Returns None if `input` contains no complete
    /// packet. The bytes must then be kept.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8], rows: Rows) -> Result<Option<Packet<'a>>, Malformed> {
        let mut rest = *input;
        if self.owed > 0 {
            let passed = self.owed.min(rest.len());
            self.owed -= passed;
            rest = &rest[passed..];
        }
        loop {
            *input = rest;
            let Some(&[a, b, c, sequence]) = rest.first_chunk::<HEAD>() else { return Ok(None) };
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            let size = HEAD + length;
            if rows == Rows::Skip || self.continued {
                match self.is_row(length, rest.get(HEAD)) {
                    None => return Ok(None),
                    Some(true) => {
                        self.continued = length == PART;
                        self.skipped += u64::from(!self.continued);
                        if size > rest.len() {
                            self.owed = size - rest.len();
                            *input = &rest[rest.len()..];
                            return Ok(None);
                        }
                        rest = &rest[size..];
                        continue;
                    }
                    Some(false) => {}
                }
            }
            if length == PART {
                return Err(Malformed::TooLong);
            }
            if size > rest.len() {
                return Ok(None);
            }
            *input = &rest[size..];
            return Ok(Some(Packet { sequence, body: &rest[HEAD..size] }));
        }
    }

    /// Whether this packet is a row. Called only while rows are expected: any other packet is then the end of the rows
    /// or an error. Returns None if more bytes must arrive.
    #[inline]
    fn is_row(self, length: usize, first: Option<&u8>) -> Option<bool> {
        if self.continued || length == PART {
            return Some(true);
        }
        if length == 0 {
            return Some(false);
        }
        // A row starts with such a byte only if it contains a value of at least 16 MiB. The packet of such a row has
        // several parts.
        first.map(|first| !matches!(first, 0xfe | 0xff))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, body) in bodies.iter().enumerate() {
            out.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
            out.push(number as u8);
            out.extend_from_slice(body);
        }
        out
    }

    /// Reads `stream` in pieces of the given sizes, like a transport. Returns the packets and the maximum number of
    /// bytes in the buffer.
    fn decoded(stream: &[u8], sizes: &[usize], rows: Rows) -> (Vec<Vec<u8>>, usize) {
        let (mut framer, mut buffer, mut found, mut kept) = (Framer::new(), Vec::new(), Vec::new(), 0);
        let (mut at, mut turn) = (0, 0);
        while at < stream.len() {
            let size = sizes[turn % sizes.len()].min(stream.len() - at);
            turn += 1;
            buffer.extend_from_slice(&stream[at..at + size]);
            at += size;
            let mut unread = &buffer[..];
            while let Some(packet) = framer.next(&mut unread, rows).unwrap() {
                found.push(packet.body.to_vec());
            }
            let read = buffer.len() - unread.len();
            buffer.drain(..read);
            kept = kept.max(buffer.len());
        }
        assert!(buffer.is_empty());
        (found, kept)
    }

    fn bodies() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(prop::sample::select(vec![0, 1, 0xfb, 0xfe, 0xff]), 0..40), 0..20)
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_packets(
            bodies in bodies(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            prop_assert_eq!(decoded(&encoded(&bodies), &sizes, Rows::Keep).0, bodies);
        }

        #[test]
        fn skipped_rows_are_missing_and_nothing_else(
            bodies in bodies(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            let stays = |body: &&Vec<u8>| matches!(body.first(), None | Some(0xfe | 0xff));
            let expected: Vec<_> = bodies.iter().filter(stays).cloned().collect();
            prop_assert_eq!(decoded(&encoded(&bodies), &sizes, Rows::Skip).0, expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for rows in [Rows::Keep, Rows::Skip] {
                let (mut framer, mut input) = (Framer::new(), &bytes[..]);
                while let Ok(Some(_)) = framer.next(&mut input, rows) {}
            }
        }
    }

    #[test]
    fn a_skipped_row_of_several_parts_takes_no_room_whatever_its_parts_begin_with() {
        let mut stream = vec![0xff, 0xff, 0xff, 0, 0xfe];
        stream.resize(HEAD + PART, 7);
        stream.extend_from_slice(&[2, 0, 0, 1, 0xff, 7]);
        stream.extend_from_slice(&[1, 0, 0, 2, 0xfe]);
        let (found, kept) = decoded(&stream, &[65_536], Rows::Skip);
        assert_eq!(found, [[0xfe]]);
        assert!(kept < 16, "{kept}");
    }

    #[test]
    fn skipped_rows_are_counted() {
        let mut framer = Framer::new();
        let stream = encoded(&[b"\x011".to_vec(), b"\x012".to_vec(), b"\xfe".to_vec()]);
        assert!(framer.next(&mut &stream[..], Rows::Skip).unwrap().is_some_and(|packet| packet.body == b"\xfe"));
        assert_eq!(framer.skipped, 2);
    }

    #[test]
    fn only_an_error_may_come_unasked() {
        assert!(
            is_unexpected_allowed(b"")
                && is_unexpected_allowed(&[9, 0, 0, 1])
                && is_unexpected_allowed(&[9, 0, 0, 1, 0xff])
        );
        assert!(!is_unexpected_allowed(&[7, 0, 0, 1, 0, 0, 0]) && !is_unexpected_allowed(&[1, 0, 0, 1, 0xfe]));
    }

    #[test]
    fn a_packet_of_several_parts_is_refused_by_its_head() {
        let next = |head: [u8; 4]| Framer::new().next(&mut &head[..], Rows::Keep).map(|found| found.is_some());
        assert_eq!(next([0xff, 0xff, 0xff, 0]), Err(Malformed::TooLong));
        assert_eq!(next([0xfe, 0xff, 0xff, 0]), Ok(false));
        assert_eq!(
            Malformed::TooLong.to_string(),
            "the server announced a packet of 16 MiB or more; the limit is 16777214 bytes"
        );
    }
}
