//! The writes that a power cut can lose: those that have not been flushed.

use ironbench_core::SplitMix64;
use serde::Deserialize;

/// Effect of a power cut on unflushed writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerCut {
    /// Every unflushed write is lost.
    Lose,
    /// A random subset of the writes survives, regardless of order.
    Subset,
    /// A random subset of the sectors of each write survives.
    Torn,
}

/// Size of the unit that a device writes atomically.
const SECTOR: usize = 512;

/// A part of a write, with the bytes before and after it.
#[derive(Debug)]
struct UnflushedWrite {
    /// Number of the write. All parts of a write have the same number.
    number: u64,
    partition: usize,
    offset: u64,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Unflushed writes, oldest first. Discards and zeroing count as writes of zeros.
#[derive(Debug, Default)]
pub struct UndoLog {
    written: std::collections::VecDeque<UnflushedWrite>,
    number: u64,
}

impl UndoLog {
    /// Records a write. Each of its parts has an offset, the bytes before the write, and the bytes after it.
    pub fn add(&mut self, partition: usize, parts: impl IntoIterator<Item = (u64, Vec<u8>, Vec<u8>)>) {
        self.number += 1;
        let number = self.number;
        let written = |(offset, before, after)| UnflushedWrite { number, partition, offset, before, after };
        self.written.extend(parts.into_iter().map(written));
    }

    /// Returns the number of the last write so far. A flush that starts now covers all writes up to it.
    pub fn last_number(&self) -> u64 {
        self.number
    }

    /// Drops the writes up to number `last`, which a completed flush covered.
    pub fn drop_flushed(&mut self, last: u64) {
        while self.written.front().is_some_and(|first| first.number <= last) {
            self.written.pop_front();
        }
    }

    /// Returns the writes that must be applied, in this order, to bring the partitions into the state after the cut.
    /// Also returns the number of unflushed writes.
    pub fn cut_power(&mut self, how: PowerCut, seed: u64) -> (Vec<(usize, u64, Vec<u8>)>, usize) {
        let mut dice = SplitMix64::new(seed);
        let written: Vec<UnflushedWrite> = self.written.drain(..).collect();
        let mut steps: Vec<_> =
            written.iter().rev().map(|one| (one.partition, one.offset, one.before.clone())).collect();
        for one in &written {
            match how {
                PowerCut::Lose => {}
                PowerCut::Subset if coin(&mut dice) => steps.push((one.partition, one.offset, one.after.clone())),
                PowerCut::Subset => {}
                PowerCut::Torn => {
                    let sectors = one.after.chunks(SECTOR).enumerate().filter(|_| coin(&mut dice));
                    steps.extend(
                        sectors.map(|(place, sector)| {
                            (one.partition, one.offset + (place * SECTOR) as u64, sector.to_vec())
                        }),
                    );
                }
            }
        }
        (steps, written.chunk_by(|one, next| one.number == next.number).count())
    }
}

fn coin(dice: &mut SplitMix64) -> bool {
    dice.next_u64() & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 8 * SECTOR;

    /// Returns a partition after all writes, the same partition at the time of the flush, and the undo log of the
    /// writes after the flush.
    fn disk(flush_after: usize) -> (Vec<u8>, Vec<u8>, UndoLog) {
        let (mut disk, mut undo, mut flushed) = (vec![0u8; LENGTH], UndoLog::default(), vec![0u8; LENGTH]);
        for number in 1..=40usize {
            let offset = (number * 5 % 7) * SECTOR;
            let after = vec![number as u8; 2 * SECTOR];
            undo.add(0, [(offset as u64, disk[offset..offset + after.len()].to_vec(), after.clone())]);
            disk[offset..offset + after.len()].copy_from_slice(&after);
            if number == flush_after {
                let last = undo.last_number();
                undo.drop_flushed(last);
                flushed = disk.clone();
            }
        }
        (disk, flushed, undo)
    }

    fn after(mut disk: Vec<u8>, steps: Vec<(usize, u64, Vec<u8>)>) -> Vec<u8> {
        for (_, offset, bytes) in steps {
            disk[offset as usize..offset as usize + bytes.len()].copy_from_slice(&bytes);
        }
        disk
    }

    #[test]
    fn what_was_flushed_survives_every_cut() {
        for how in [PowerCut::Lose, PowerCut::Subset, PowerCut::Torn] {
            let (whole, _, mut undo) = disk(40);
            let (steps, lost) = undo.cut_power(how, 1);
            assert_eq!((after(whole.clone(), steps), lost), (whole, 0));
        }
    }

    #[test]
    fn losing_brings_back_what_the_last_flush_left() {
        let (whole, flushed, mut undo) = disk(17);
        let (steps, lost) = undo.cut_power(PowerCut::Lose, 1);
        assert_eq!((after(whole, steps), lost), (flushed, 23));
    }

    #[test]
    fn a_torn_write_leaves_sectors_of_old_and_new() {
        let mut undo = UndoLog::default();
        undo.add(0, [(0, vec![0; LENGTH], vec![1; LENGTH])]);
        let left = after(vec![1; LENGTH], undo.cut_power(PowerCut::Torn, 3).0);
        let sectors: Vec<u8> = left.chunks(SECTOR).map(|sector| sector[0]).collect();
        assert!(sectors.contains(&0) && sectors.contains(&1));
        assert!(left.chunks(SECTOR).all(|sector| sector.iter().all(|&byte| byte == sector[0])));
    }

    #[test]
    fn the_same_seed_loses_the_same() {
        let cut = |seed| {
            let (whole, _, mut undo) = disk(0);
            after(whole, undo.cut_power(PowerCut::Subset, seed).0)
        };
        assert_eq!(cut(9), cut(9));
        assert_ne!(cut(9), cut(10));
    }
}
