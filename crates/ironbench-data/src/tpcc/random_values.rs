//! Random values that TPC-C describes: non-uniform numbers, last names, and texts.

use crate::row_rng::RowRng;

/// The parameter A of NURand for last names (clause 2.1.6). The next constants are this parameter for customers and for
/// items.
pub const OF_NAMES: u64 = 255;
pub const OF_CUSTOMERS: u64 = 1_023;
pub const OF_ITEMS: u64 = 8_191;

/// Draws from `low..=high`, some numbers more often than others. `c` is constant for each `a` in a run.
pub fn nurand(rng: &mut RowRng, a: u64, low: u64, high: u64, c: u64) -> u64 {
    let (coarse, even) = (rng.below(a + 1), low + rng.below(high - low + 1));
    ((coarse | even) + c) % (high - low + 1) + low
}

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Maximum number of bytes of a last name.
const LONGEST_NAME: usize = 15;
/// Maximum number of bytes of `c_data`. The other texts are shorter.
const LONGEST_TEXT: usize = 500;
/// Letters and digits. The letters `a` and `e` occur twice, so that there are 64 characters and six random bits choose
/// one.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ae";
const CHARACTERS_PER_DRAW: usize = 10;
const ORIGINAL: &str = "ORIGINAL";

/// A buffer for the texts of a row. Each call replaces the text of the previous call.
pub struct RandomText {
    bytes: [u8; LONGEST_TEXT],
}

impl Default for RandomText {
    fn default() -> Self {
        Self { bytes: [0; LONGEST_TEXT] }
    }
}

impl RandomText {
    /// Draws letters and digits.
    pub fn letters(&mut self, rng: &mut RowRng, least: u64, most: u64) -> &str {
        let length = self.fill(rng, least, most);
        self.first(length)
    }

    /// Draws letters and digits. With a probability of 10%, "ORIGINAL" replaces eight of them at a random place.
    pub fn maybe_original(&mut self, rng: &mut RowRng, least: u64, most: u64) -> &str {
        let length = self.fill(rng, least, most);
        if rng.below(10) == 0 {
            let start = rng.below((length - ORIGINAL.len() + 1) as u64) as usize;
            self.bytes[start..start + ORIGINAL.len()].copy_from_slice(ORIGINAL.as_bytes());
        }
        self.first(length)
    }

    /// Draws digits.
    pub fn digits(&mut self, rng: &mut RowRng, length: usize) -> &str {
        self.fill_digits(rng, length);
        self.first(length)
    }

    /// Draws a zip code: four digits, followed by 11111 (clause 4.3.2.7).
    pub fn zip(&mut self, rng: &mut RowRng) -> &str {
        self.fill_digits(rng, 4);
        self.bytes[4..9].fill(b'1');
        self.first(9)
    }

    /// Returns the last name of a number in 0..1000, with a syllable for each digit (clause 4.3.2.3).
    pub fn last_name(&mut self, number: u64) -> &str {
        let mut length = 0;
        for digit in [number / 100, number / 10 % 10, number % 10] {
            let syllable = SYLLABLES[digit as usize].as_bytes();
            self.bytes[length..length + syllable.len()].copy_from_slice(syllable);
            length += syllable.len();
        }
        debug_assert!(length <= LONGEST_NAME, "{number}");
        self.first(length)
    }

    fn fill(&mut self, rng: &mut RowRng, least: u64, most: u64) -> usize {
        let length = if least == most { least } else { least + rng.below(most - least + 1) } as usize;
        for part in self.bytes[..length].chunks_mut(CHARACTERS_PER_DRAW) {
            let mut bits = rng.below(1 << (6 * CHARACTERS_PER_DRAW));
            for byte in part {
                *byte = CHARACTERS[(bits % 64) as usize];
                bits /= 64;
            }
        }
        length
    }

    fn fill_digits(&mut self, rng: &mut RowRng, length: usize) {
        let mut number = rng.below(10_u64.pow(length as u32));
        for byte in &mut self.bytes[..length] {
            *byte = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }

    fn first(&self, length: usize) -> &str {
        std::str::from_utf8(&self.bytes[..length]).expect("only ASCII is written")
    }
}
