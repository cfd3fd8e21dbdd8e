//! Random numbers that depend only on the seed and their purpose.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). Its
//! output function mixes bits well, so a row's generator can be initialised from the row's number.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random numbers of one row.
#[derive(Debug, Clone)]
pub struct RowRng {
    state: u64,
}

impl RowRng {
    /// Creates the generator of a row. Rows with the same number in different tables get independent random numbers if
    /// their `purpose` differs.
    pub fn new(seed: u64, purpose: u64, number: u64) -> Self {
        Self { state: mix(mix(seed ^ purpose.wrapping_mul(GOLDEN)).wrapping_add(number)) }
    }

    /// Returns the number at index `index` (from 0) of the remaining sequence, without drawing the earlier ones.
    pub fn nth(&self, index: u64) -> u64 {
        mix(self.state.wrapping_add((index + 1).wrapping_mul(GOLDEN)))
    }

    /// Draws 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Draws uniformly from `0..bound`. The bias of the multiplication is below `bound` / 2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws uniformly from `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// Mixes the bits of a number. The mapping is a bijection.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_within_its_bounds(seed: u64, number: u64, low in -1000i64..1000, span in 0i64..1_000_000) {
            let drawn = RowRng::new(seed, 1, number).between(low, low + span);
            prop_assert!((low..=low + span).contains(&drawn));
        }
    }

    #[test]
    fn neighbouring_numbers_draw_evenly() {
        let mut counts = [0u32; 10];
        for number in 0..100_000 {
            counts[RowRng::new(7, 1, number).below(10) as usize] += 1;
        }
        // The tolerance is five standard deviations of a binomial distribution with p = 0.1.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 475), "{counts:?}");
    }

    #[test]
    fn purposes_draw_apart() {
        let same = (0..1000).filter(|&n| RowRng::new(7, 1, n).below(1000) == RowRng::new(7, 2, n).below(1000)).count();
        assert!(same < 12, "{same} of 1000 alike");
    }
}
