//! A digest of text that servers can also compute, to compare rows without transferring them.

use md5::{Digest, Md5};

/// Number of bits of a digest: seven hexadecimal digits, so that sums of 2^35 digests fit in 64 bits.
const BITS: u32 = 28;

/// Returns the first 28 bits of the MD5 hash (RFC 1321). The digest detects mistakes, not forgery.
#[must_use]
pub fn digest(text: &[u8]) -> i64 {
    let hash = Md5::digest(text);
    i64::from(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) >> (u32::BITS - BITS))
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_is_the_first_seven_digits_of_the_hash() {
        // RFC 1321, A.5: MD5 ("abc") = 900150983cd24fb0d6963f7d28e17f72.
        assert_eq!(digest(b"abc"), 0x0900_1509);
    }
}
