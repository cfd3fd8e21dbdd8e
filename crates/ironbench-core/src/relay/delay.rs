//! A queue that delays the bytes of one direction of a relay. Each byte has an instant before which it must not leave.

use std::collections::VecDeque;

use crate::measure::clock::NEVER;

/// A way in which a direction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The sender closed its direction after its last byte.
    Closed,
    /// The sender's connection was reset.
    Reset,
}

/// Bytes that arrived together.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    due: u64,
    bytes: usize,
}

/// A queue that keeps bytes for a fixed time, in the order of their arrival. All instants are in nanoseconds.
#[derive(Debug)]
pub struct DelayedBytes {
    delay_ns: u64,
    bytes: VecDeque<u8>,
    chunks: VecDeque<Chunk>,
    end: Option<(u64, End)>,
    /// Bytes that arrive from now on must not leave before this instant.
    earliest: u64,
}

/// Size beyond which a buffer is freed when it is empty.
const MAX_IDLE_BUFFER: usize = 128 << 10;

impl DelayedBytes {
    pub fn new(delay_ns: u64) -> Self {
        Self { delay_ns, bytes: VecDeque::new(), chunks: VecDeque::new(), end: None, earliest: 0 }
    }

    /// Bytes that arrive from now on leave at `instant` at the earliest.
    pub fn not_before(&mut self, instant: u64) {
        self.earliest = self.earliest.max(instant);
    }

    pub fn push(&mut self, arrival: u64, bytes: &[u8]) {
        let due = self.due(arrival);
        self.bytes.extend(bytes);
        self.chunks.push_back(Chunk { due, bytes: bytes.len() });
    }

    /// Ends the direction. The end leaves after all bytes that have arrived. After a regular end, only a reset can
    /// follow.
    pub fn end(&mut self, arrival: u64, end: End) {
        self.end = Some((self.due(arrival), end));
    }

    fn due(&mut self, arrival: u64) -> u64 {
        self.earliest = self.earliest.max(arrival.saturating_add(self.delay_ns));
        self.earliest
    }

    /// Returns when the first bytes may leave. If there are none, returns when the end may leave. Returns `NEVER` if
    /// there is no end either.
    pub fn next(&self) -> u64 {
        let end = self.end.map_or(NEVER, |(due, _)| due);
        self.chunks.front().map_or(end, |first| first.due)
    }

    /// Returns the bytes that may leave at `now`. The bytes are in two parts if they wrap around in the buffer.
    pub fn due_bytes(&self, now: u64) -> [&[u8]; 2] {
        let count: usize = self.chunks.iter().take_while(|chunk| chunk.due <= now).map(|chunk| chunk.bytes).sum();
        let (first, second) = self.bytes.as_slices();
        let whole = first.len().min(count);
        [&first[..whole], &second[..count - whole]]
    }

    /// Removes the first `count` bytes, which have left at `now`. Calls `late` for each piece that has left completely,
    /// with its lateness.
    pub fn remove_sent(&mut self, mut count: usize, now: u64, mut late: impl FnMut(u64)) {
        self.bytes.drain(..count);
        while let Some(first) = self.chunks.front_mut() {
            if count < first.bytes {
                first.bytes -= count;
                return;
            }
            count -= first.bytes;
            late(now.saturating_sub(first.due));
            self.chunks.pop_front();
        }
        if self.bytes.capacity() > MAX_IDLE_BUFFER {
            self.bytes = VecDeque::new();
        }
    }

    /// Takes the end of the direction, if it is due and all bytes have left. Otherwise returns None.
    pub fn take_end(&mut self, now: u64) -> Option<End> {
        let (_, end) = self.end.filter(|(due, _)| self.chunks.is_empty() && *due <= now)?;
        self.end = None;
        Some(end)
    }

    /// Drops the waiting bytes, because their receiver is gone.
    pub fn discard(&mut self) {
        self.bytes = VecDeque::new();
        self.chunks.clear();
    }

    /// Returns the memory used by waiting bytes and their bookkeeping, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.chunks.len() * size_of::<Chunk>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Removes and returns the bytes that may leave, but at most `most`.
    fn taken(delay: &mut DelayedBytes, now: u64, most: usize) -> Vec<u8> {
        let mut bytes = delay.due_bytes(now).concat();
        bytes.truncate(most);
        delay.remove_sent(bytes.len(), now, |_| ());
        bytes
    }

    proptest! {
        /// A receiver may accept any number of bytes at a time.
        #[test]
        fn bytes_leave_in_order_and_never_early(
            delay_ns in 0u64..50,
            arrivals in prop::collection::vec((0u64..20, prop::collection::vec(any::<u8>(), 1..9)), 1..40),
            takes in prop::collection::vec((0u64..30, 0usize..12), 1..80),
        ) {
            let mut delay = DelayedBytes::new(delay_ns);
            let (mut now, mut sent, mut arrived) = (0, Vec::new(), Vec::new());
            for (pause, bytes) in &arrivals {
                now += pause;
                delay.push(now, bytes);
                arrived.extend(bytes.iter().map(|_| now));
                sent.extend_from_slice(bytes);
            }
            delay.end(now, End::Closed);
            let (mut now, mut received) = (0, Vec::new());
            for (pause, most) in takes {
                now += pause;
                let bytes = taken(&mut delay, now, most);
                for arrival in &arrived[received.len()..received.len() + bytes.len()] {
                    prop_assert!(arrival + delay_ns <= now);
                }
                received.extend(bytes);
                prop_assert!(delay.take_end(now).is_none() || received.len() == sent.len());
            }
            received.extend(taken(&mut delay, NEVER, usize::MAX));
            prop_assert_eq!(received, sent);
            prop_assert_eq!(delay.memory_bytes(), 0);
        }
    }

    #[test]
    fn each_piece_leaves_exactly_when_it_is_due() {
        let mut delay = DelayedBytes::new(100);
        delay.push(5, b"one");
        delay.push(20, b"two");
        assert_eq!((delay.next(), taken(&mut delay, 104, 9)), (105, vec![]));
        assert_eq!(taken(&mut delay, 105, 9), b"one");
        assert_eq!((delay.next(), taken(&mut delay, 200, 9)), (120, b"two".to_vec()));
        assert_eq!(delay.next(), NEVER);
    }

    #[test]
    fn a_piece_is_late_by_the_time_after_it_was_due() {
        let mut delay = DelayedBytes::new(10);
        delay.push(0, b"abcd");
        delay.push(1, b"ef");
        let mut late = Vec::new();
        delay.remove_sent(3, 12, |ns| late.push(ns));
        assert!(late.is_empty());
        delay.remove_sent(3, 15, |ns| late.push(ns));
        assert_eq!(late, [5, 4]);
    }

    #[test]
    fn the_end_waits_for_its_time_and_for_all_bytes() {
        let mut delay = DelayedBytes::new(10);
        delay.push(0, b"ab");
        delay.end(3, End::Closed);
        assert_eq!(delay.take_end(20), None);
        delay.remove_sent(2, 20, |_| ());
        assert_eq!((delay.next(), delay.take_end(12), delay.take_end(13)), (13, None, Some(End::Closed)));
        assert_eq!((delay.next(), delay.take_end(NEVER)), (NEVER, None));
    }

    #[test]
    fn later_arrivals_can_be_kept_until_a_later_instant() {
        let mut delay = DelayedBytes::new(10);
        delay.push(0, b"reply");
        delay.not_before(50);
        delay.push(1, b"greeting");
        assert_eq!(taken(&mut delay, 49, 99), b"reply");
        assert_eq!(taken(&mut delay, 50, 99), b"greeting");
    }
}
