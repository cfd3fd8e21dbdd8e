//! Implements pgbench's `permute`, a pseudorandom bijection of `0..size` chosen by a seed.

use super::Random;

const ROUNDS: usize = 6;

/// Returns the image of `value` (modulo `size`, as unsigned) under the permutation of `0..size` that `seed` chooses.
///
/// There are six rounds. A round first changes the lower 2^k values and then the upper 2^k values, by a random odd
/// multiplication, exclusive or and rotation. Then it adds a random offset. The number 2^k is the largest power of two
/// that is not above `size`. Every step is invertible.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::new(seed as u64);
    let size = size as u64;
    let width = size.ilog2();
    let mask = (1u64 << width) - 1;
    let mut value = value as u64 % size;
    for _ in 0..ROUNDS {
        value = scramble(value, mask, width, &mut random);
        value = size - 1 - scramble(size - 1 - value, mask, width, &mut random);
        value = offset(value, random.up_to(size - 1), size);
    }
    value as i64
}

/// Scrambles `value`, but returns it unchanged if it is above `mask`. Draws two random numbers in both cases.
fn scramble(value: u64, mask: u64, width: u32, random: &mut Random) -> u64 {
    let multiplier = (random.next_u64() & mask) | 1;
    let addend = random.next_u64() & mask;
    if value > mask {
        return value;
    }
    let value = (value.wrapping_mul(multiplier) ^ addend) & mask;
    ((value << 1) & mask) | (value >> (width - 1))
}

/// Returns `(value + by) % size`. Both are below `size`, which is below 2^63, so the sum does not overflow.
fn offset(value: u64, by: u64, size: u64) -> u64 {
    (value + by) % size
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permute_is_a_bijection(size in 1i64..600, seed: i64) {
            let mut image: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
            image.sort_unstable();
            prop_assert_eq!(image, (0..size).collect::<Vec<_>>());
        }

        #[test]
        fn permute_of_any_value_is_in_bounds(value: i64, size in 1i64.., seed: i64) {
            prop_assert!((0..size).contains(&permute(value, size, seed)));
        }
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        assert!(permute(i64::MAX - 1, i64::MAX, 7) >= 0);
    }
}
