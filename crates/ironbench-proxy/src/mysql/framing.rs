//! Cuts packets out of a stream that is only observed, and keeps their beginnings.

/// Size of the header: length and sequence number.
const HEAD: usize = 4;
/// A packet of this length or more consists of several parts. All parts except the last have this length.
const PART: usize = 0xff_ffff;
/// If the buffer is larger than this after a packet, its memory is freed.
const LARGEST_KEPT: usize = 64 << 10;

/// A packet. `body` contains its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    pub sequence: u8,
    pub body: &'a [u8],
    pub length: usize,
    /// Whether only a part of the body was kept.
    pub is_cut: bool,
    /// Whether this is a further part of the packet before it.
    pub is_continued: bool,
}

#[derive(Debug, Default)]
pub struct Framer {
    head: [u8; HEAD],
    started: usize,
    body: Vec<u8>,
    /// Number of bytes of the body that have not arrived yet. The next field is how many of them will be kept.
    left: usize,
    wanted: usize,
    continues: bool,
}

impl Framer {
    /// Calls `each` for every packet that ends in `input`. For each sequence number, `most` returns the maximum number
    /// of bytes of the packet to keep.
    pub fn feed(&mut self, mut input: &[u8], most: impl Fn(u8) -> usize, mut each: impl FnMut(Packet)) {
        loop {
            if self.started < HEAD {
                if input.is_empty() {
                    return;
                }
                let count = (HEAD - self.started).min(input.len());
                self.head[self.started..self.started + count].copy_from_slice(&input[..count]);
                self.started += count;
                input = &input[count..];
                if self.started < HEAD {
                    return;
                }
                self.left = self.length();
                self.wanted = if self.continues { 0 } else { self.left.min(most(self.head[3])) };
            }
            let count = self.left.min(input.len());
            let kept = self.wanted.min(count);
            self.body.extend_from_slice(&input[..kept]);
            (self.left, self.wanted) = (self.left - count, self.wanted - kept);
            input = &input[count..];
            if self.left > 0 {
                return;
            }
            self.started = 0;
            let length = self.length();
            let (is_continued, sequence) = (self.continues, self.head[3]);
            self.continues = length == PART;
            let is_cut = length > self.body.len() || self.continues;
            each(Packet { sequence, body: &self.body, length, is_cut, is_continued });
            self.body.clear();
            if self.body.capacity() > LARGEST_KEPT {
                self.body = Vec::new();
            }
        }
    }

    fn length(&self) -> usize {
        u32::from_le_bytes([self.head[0], self.head[1], self.head[2], 0]) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_packets(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            sizes in prop::collection::vec(1usize..60, 1..10),
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
                stream.push(7);
                stream.extend_from_slice(body);
            }
            let (mut framer, mut found, mut at, mut turn) = (Framer::default(), Vec::new(), 0, 0);
            while at < stream.len() {
                let size = sizes[turn % sizes.len()].min(stream.len() - at);
                framer.feed(&stream[at..at + size], |_| 20, |packet| {
                    found.push((packet.body.to_vec(), packet.length, packet.is_cut));
                });
                (at, turn) = (at + size, turn + 1);
            }
            let expected: Vec<_> =
                bodies.iter().map(|body| (body[..body.len().min(20)].to_vec(), body.len(), body.len() > 20)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn parts_of_a_long_packet_are_counted_and_not_kept() {
        let mut framer = Framer::default();
        let mut found = Vec::new();
        let mut feed = |bytes: &[u8]| {
            framer.feed(bytes, |_| 20, |packet| found.push((packet.length, packet.is_cut, packet.is_continued)));
        };
        feed(b"\xff\xff\xff\0");
        for _ in 0..0xff_ffff / 4095 {
            feed(&[1; 4095]);
        }
        feed(&[1; 0xff_ffff % 4095]);
        feed(b"\x01\0\0\x01x\x01\0\0\0y");
        assert_eq!(found, [(PART, true, false), (1, true, true), (1, false, false)]);
    }
}
