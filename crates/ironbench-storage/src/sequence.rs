//! The I/Os of one thread, in its part of a file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ironbench_core::SplitMix64;

use super::plan::{Order, Pass, Until};

/// An I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub reads: bool,
    pub offset: u64,
    /// Whether this I/O starts again at the beginning of the file.
    pub wraps: bool,
}

/// Position in a sequence of I/Os. Threads can share it.
#[derive(Debug, Default)]
pub struct Cursor(AtomicU64);

/// The I/Os of one thread. In a sequential pass, the threads start at offsets that divide the file into equal parts.
#[derive(Debug)]
pub struct IoSequence<'a> {
    cursor: &'a Cursor,
    random: Option<SplitMix64>,
    mix: SplitMix64,
    read_percent: u32,
    first_block: u64,
    blocks: u64,
    block_bytes: u64,
    /// Number of I/Os in the sequence.
    limit: u64,
}

impl<'a> IoSequence<'a> {
    /// Creates the sequence of thread `number` of a file. Sequences with the same cursor share one sequence.
    pub fn new(pass: &Pass, number: u32, stream: u64, cursor: &'a Cursor) -> Self {
        let blocks = pass.blocks();
        let threads = u64::from(pass.threads);
        let share = |blocks: u64| blocks * (u64::from(number) + 1) / threads - blocks * u64::from(number) / threads;
        let limit = match pass.until {
            Until::Seconds(_) => u64::MAX,
            Until::Bytes(bytes) | Until::FirstOf { bytes, .. } => share(bytes / u64::from(pass.block_bytes)),
        };
        Self {
            cursor,
            random: (pass.order == Order::Random).then(|| SplitMix64::new(pass.seed ^ stream.wrapping_mul(GOLDEN))),
            mix: SplitMix64::new(!pass.seed ^ stream.wrapping_mul(GOLDEN)),
            read_percent: pass.read_percent,
            first_block: blocks * u64::from(number) / threads,
            blocks,
            block_bytes: u64::from(pass.block_bytes),
            limit,
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Next> {
        let place = self.cursor.0.fetch_add(1, Relaxed);
        if place >= self.limit {
            return None;
        }
        let block = match &mut self.random {
            Some(random) => random.below(self.blocks),
            None => (self.first_block + place) % self.blocks,
        };
        let reads = match self.read_percent {
            0 => false,
            100 => true,
            percent => self.mix.below(100) < u64::from(percent),
        };
        Some(Next { reads, offset: block * self.block_bytes, wraps: self.random.is_none() && block == 0 })
    }
}

/// Factor that turns consecutive stream numbers into very different seeds.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::super::testing::pass;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sequence_visits_every_block_once_before_it_starts_again() {
        let cursor = Cursor::default();
        let pass = Pass { order: Order::Sequential, file_bytes: 10 * 4096, ..pass() };
        let mut sequence = IoSequence::new(&pass, 0, 0, &cursor);
        let visited: Vec<_> = (0..20).map(|_| sequence.next().unwrap()).collect();
        let offsets: Vec<_> = visited.iter().map(|next| next.offset / 4096).collect();
        assert_eq!(offsets, (0..10).chain(0..10).collect::<Vec<_>>());
        assert_eq!(visited.iter().filter(|next| next.wraps).count(), 2);
    }

    proptest! {
        #[test]
        fn the_sequences_of_a_bounded_pass_together_cover_all_of_it(blocks in 1u64..500, threads in 1u32..8, parts in 1u64..4) {
            let bytes = blocks * parts * 4096;
            let pass = Pass { order: Order::Sequential, file_bytes: blocks * 4096, threads, until: Until::Bytes(bytes), ..pass() };
            let cursors: Vec<_> = (0..threads).map(|_| Cursor::default()).collect();
            let mut done = 0;
            for (number, cursor) in (0..threads).zip(&cursors) {
                let mut sequence = IoSequence::new(&pass, number, 0, cursor);
                while let Some(next) = sequence.next() {
                    prop_assert!(next.offset + 4096 <= pass.file_bytes);
                    done += 1;
                }
            }
            prop_assert_eq!(done, blocks * parts);
        }

        #[test]
        fn random_blocks_stay_inside_the_file_and_reach_all_of_it(blocks in 1u64..50, seed: u64) {
            let cursor = Cursor::default();
            let pass = Pass { file_bytes: blocks * 4096, seed, ..pass() };
            let mut sequence = IoSequence::new(&pass, 0, 7, &cursor);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..blocks * 40 {
                let next = sequence.next().unwrap();
                prop_assert!(next.offset.is_multiple_of(4096) && next.offset < pass.file_bytes);
                seen.insert(next.offset);
            }
            prop_assert_eq!(seen.len() as u64, blocks);
        }

        #[test]
        fn a_mix_has_the_share_of_reads_it_should(percent in 0u32..=100, seed: u64) {
            let cursor = Cursor::default();
            let mut sequence = IoSequence::new(&Pass { read_percent: percent, seed, ..pass() }, 0, 0, &cursor);
            let reads = (0..10_000).filter(|_| sequence.next().unwrap().reads).count();
            prop_assert!((reads as f64 / 100.0 - f64::from(percent)).abs() < 3.0, "{} of 10000", reads);
        }
    }
}
