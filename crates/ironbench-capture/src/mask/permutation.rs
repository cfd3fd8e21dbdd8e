//! Pseudo-random permutations of numbers and of lists of numbers, selected by a key.
//!
//! A permutation is a Feistel network with SipHash-2-4 (Aumasson and Bernstein, 2012) as its keyed function.
//! Format-preserving encryption in NIST SP 800-38G works the same way.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;

use siphasher::sip::SipHasher24;

const ROUNDS: u64 = 8;

pub struct Permutation {
    key: [u8; 16],
}

impl Permutation {
    /// Draws the key from the kernel.
    pub fn random() -> std::io::Result<Self> {
        let mut key = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self { key })
    }

    #[cfg(test)]
    pub fn with_key(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Permutes the lists of this length whose elements are below `sizes`, with one limit for each element. Returns the
    /// list that replaces `values`. Different values of `kind` select different permutations.
    pub fn list(&self, kind: u8, values: &[u32], sizes: &[u32]) -> Vec<u32> {
        let mut values = values.to_vec();
        let half = values.len() / 2;
        for round in 0..ROUNDS {
            // The halves differ by at most one character. The first half of a single character is empty.
            let (changed, other) =
                if round % 2 == 0 { (half..values.len(), 0..half) } else { (0..half, half..values.len()) };
            let mut hasher = self.hasher(kind, round);
            for (value, size) in values[other.clone()].iter().zip(&sizes[other]) {
                hasher.write_u32(*value);
                hasher.write_u32(*size);
            }
            hasher.write_usize(values.len());
            for index in changed {
                hasher.write_usize(index);
                values[index] = (values[index] + (hasher.finish() % u64::from(sizes[index])) as u32) % sizes[index];
            }
        }
        values
    }

    /// Permutes the numbers from `low` to `high`. Returns the number that replaces `value`. A result outside the range is
    /// permuted again (cycle walking).
    pub fn number(&self, kind: u8, low: u64, high: u64, value: u64) -> u64 {
        let span = high - low;
        let half = (64 - span.max(1).leading_zeros()).div_ceil(2);
        let part = (1u64 << half) - 1;
        let mut at = value - low;
        loop {
            let (mut left, mut right) = (at >> half, at & part);
            for round in 0..ROUNDS {
                let mut hasher = self.hasher(kind, round);
                hasher.write_u64(low);
                hasher.write_u64(high);
                hasher.write_u64(right);
                (left, right) = (right, left ^ (hasher.finish() & part));
            }
            at = left << half | right;
            if at <= span {
                return low + at;
            }
        }
    }

    fn hasher(&self, kind: u8, round: u64) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u8(kind);
        hasher.write_u64(round);
        hasher
    }
}
