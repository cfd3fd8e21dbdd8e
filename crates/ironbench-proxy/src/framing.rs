//! Cuts messages out of a stream that is only observed. The bytes have been passed on already, so a message may have
//! any length. Only its beginning is kept, and the rest is counted.

/// Maximum length of a statement, and of the parameters of a statement, that is kept whole. If they are longer, only
/// the beginning of the statement's text is kept.
pub const LONGEST: usize = 1 << 20;
pub const BEGINNING: usize = 2000;

/// Returns the beginning of a text.
pub fn beginning(text: &[u8]) -> &[u8] {
    let mut end = text.len().min(BEGINNING);
    // The text must not be cut inside a UTF-8 character.
    while end > 0 && end < text.len() && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}

/// A message. `body` contains its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    pub tag: u8,
    pub body: &'a [u8],
    /// Whether only a part of the body was kept.
    pub is_cut: bool,
}

/// The stream contains something that is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid;

/// Size of the header: tag and length.
const HEAD: usize = 5;
/// If the buffer is larger than this after a message, its memory is freed.
const LARGEST_KEPT: usize = 64 << 10;

/// Cuts the messages of PostgreSQL's protocol out of a stream that arrives in pieces.
#[derive(Debug, Default)]
pub struct Framer {
    head: [u8; HEAD],
    /// Number of bytes of the header that have arrived.
    started: usize,
    body: Vec<u8>,
    /// Number of bytes of the body that have not arrived yet. The next field is how many of them will be kept.
    left: usize,
    wanted: usize,
}

impl Framer {
    /// Calls `each` for every message that ends in `input`. For each tag, `most` returns the maximum number of bytes of
    /// the body to keep.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        most: impl Fn(u8) -> usize,
        mut each: impl FnMut(Message),
    ) -> Result<(), Invalid> {
        while !input.is_empty() {
            if self.started == 0
                && let Some((size, tag)) = whole(input)?
            {
                let body = &input[HEAD..size];
                let kept = body.len().min(most(tag));
                each(Message { tag, body: &body[..kept], is_cut: kept < body.len() });
                input = &input[size..];
                continue;
            }
            if self.started < HEAD {
                let count = (HEAD - self.started).min(input.len());
                self.head[self.started..self.started + count].copy_from_slice(&input[..count]);
                self.started += count;
                input = &input[count..];
                if self.started < HEAD {
                    return Ok(());
                }
                self.left = length(&self.head)?;
                self.wanted = self.left.min(most(self.head[0]));
            }
            let count = self.left.min(input.len());
            let kept = self.wanted.min(count);
            self.body.extend_from_slice(&input[..kept]);
            (self.left, self.wanted) = (self.left - count, self.wanted - kept);
            input = &input[count..];
            if self.left > 0 {
                return Ok(());
            }
            self.started = 0;
            let is_cut = length(&self.head)? > self.body.len();
            each(Message { tag: self.head[0], body: &self.body, is_cut });
            self.body.clear();
            if self.body.capacity() > LARGEST_KEPT {
                self.body = Vec::new();
            }
        }
        Ok(())
    }
}

/// Returns the size and tag of the message at the start of `input`. Returns None if only a part of the message has
/// arrived.
fn whole(input: &[u8]) -> Result<Option<(usize, u8)>, Invalid> {
    let Some(head) = input.first_chunk::<HEAD>() else { return Ok(None) };
    let size = HEAD + length(head)?;
    Ok((size <= input.len()).then_some((size, head[0])))
}

/// Returns the length of a message's body.
fn length(head: &[u8; HEAD]) -> Result<usize, Invalid> {
    let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    usize::try_from(i64::from(length) - 4).map_err(|_| Invalid)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_KEPT: usize = 20;

    fn most(tag: u8) -> usize {
        if tag == b'D' { 0 } else { MAX_KEPT }
    }

    fn encoded(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, body) in messages {
            out.push(*tag);
            out.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
            out.extend_from_slice(body);
        }
        out
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_messages(
            messages in prop::collection::vec(
                (prop::sample::select(b"DQZ".to_vec()), prop::collection::vec(any::<u8>(), 0..40)), 0..20
            ),
            sizes in prop::collection::vec(1usize..60, 1..10),
        ) {
            let stream = encoded(&messages);
            let expected: Vec<_> = messages
                .iter()
                .map(|(tag, body)| (*tag, body[..body.len().min(most(*tag))].to_vec(), body.len() > most(*tag)))
                .collect();
            let (mut framer, mut found, mut at, mut turn) = (Framer::default(), Vec::new(), 0, 0);
            while at < stream.len() {
                let size = sizes[turn % sizes.len()].min(stream.len() - at);
                let each = |message: Message| found.push((message.tag, message.body.to_vec(), message.is_cut));
                framer.feed(&stream[at..at + size], most, each).unwrap();
                prop_assert!(framer.body.len() <= MAX_KEPT);
                (at, turn) = (at + size, turn + 1);
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Framer::default().feed(&bytes, most, |_| ());
        }
    }

    #[test]
    fn a_length_below_four_is_nonsense() {
        assert_eq!(Framer::default().feed(b"Q\0\0\0\x03", most, |_| ()), Err(Invalid));
        let mut framer = Framer::default();
        framer.feed(b"Q\xff\xff", most, |_| ()).unwrap();
        assert_eq!(framer.feed(b"\xff\xff", most, |_| ()), Err(Invalid));
    }

    #[test]
    fn an_endless_message_takes_no_memory() {
        let mut framer = Framer::default();
        framer.feed(b"Q\x7f\xff\xff\xff", most, |_| ()).unwrap();
        for _ in 0..1000 {
            framer.feed(&[7; 4096], most, |_| panic!("the message has not ended")).unwrap();
        }
        assert_eq!(framer.body.len(), MAX_KEPT);
    }
}
