//! pgbench's hash functions over one 64-bit integer.

/// Computes FNV-1a (Fowler, Noll, Vo) of the eight bytes of `value`, starting with the lowest.
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed as u64;
    let hash = value
        .to_le_bytes()
        .iter()
        .fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash as i64
}

/// Computes the 64-bit version of MurmurHash2 (Appleby) of the eight bytes of `value`.
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const ROTATION: u32 = 47;
    let mut block = (value as u64).wrapping_mul(MULTIPLIER);
    block ^= block >> ROTATION;
    block = block.wrapping_mul(MULTIPLIER);
    let mut hash = seed as u64 ^ MULTIPLIER.wrapping_mul(8);
    hash = (hash ^ block).wrapping_mul(MULTIPLIER);
    hash = (hash ^ (hash >> ROTATION)).wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> ROTATION)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    // The values are from PostgreSQL's regression test of pgbench (src/bin/pgbench/t/001_pgbench_with_server.pl).
    #[test]
    fn hashes_are_those_of_pgbench() {
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
    }
}
