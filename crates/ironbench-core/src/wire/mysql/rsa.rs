//! Encrypting a password with the server's public key: RSA with OAEP and SHA-1 (RFC 8017, 7.1.1), as
//! `caching_sha2_password` asks for where the connection itself is not secret. The key is not verified: who stands between
//! client and server can give their own, which only TLS prevents.

use num_bigint::BigUint;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY as SHA1, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustls_pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};

use crate::wire::tls::der_value;

const HASH: usize = 20;

/// `message` for whoever has the private key; `None`: this is no key we can use, or the message is too long for it.
pub fn encrypt(pem: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let mut seed = [0; HASH];
    SystemRandom::new().fill(&mut seed).ok()?;
    encrypt_with(pem, message, seed)
}

fn encrypt_with(pem: &[u8], message: &[u8], mut seed: [u8; HASH]) -> Option<Vec<u8>> {
    let (modulus, exponent) = public_key(pem)?;
    let size = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
    if size > 1024 || message.len() + 2 * HASH + 2 > size {
        return None;
    }
    // Hash of an empty label, zeros, 1, message.
    let mut block = digest(&SHA1, b"").as_ref().to_vec();
    block.resize(size - HASH - 2 - message.len(), 0);
    block.push(1);
    block.extend_from_slice(message);
    mask(&mut block, &seed);
    mask(&mut seed, &block);
    let plain = BigUint::from_bytes_be(&[&seed[..], &block].concat());
    let sealed = plain.modpow(&exponent, &modulus).to_bytes_be();
    Some([vec![0; size - sealed.len()], sealed].concat())
}

/// MGF1 (RFC 8017, B.2.1), applied.
fn mask(data: &mut [u8], seed: &[u8]) {
    for (number, piece) in data.chunks_mut(HASH).enumerate() {
        let stream = digest(&SHA1, &[seed, &(number as u32).to_be_bytes()].concat());
        piece.iter_mut().zip(stream.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// Modulus and exponent. SubjectPublicKeyInfo ::= SEQUENCE { SEQUENCE { OID, … }, BIT STRING { SEQUENCE { n, e } } }
fn public_key(pem: &[u8]) -> Option<(BigUint, BigUint)> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 2;
    const BIT_STRING: u8 = 3;
    let key = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    let (info, _) = der_value(&key, SEQUENCE)?;
    let (_, rest) = der_value(info, SEQUENCE)?;
    let (bits, _) = der_value(rest, BIT_STRING)?;
    let (pair, _) = der_value(bits.strip_prefix(&[0])?, SEQUENCE)?;
    let (modulus, rest) = der_value(pair, INTEGER)?;
    let (exponent, _) = der_value(rest, INTEGER)?;
    let modulus = BigUint::from_bytes_be(modulus);
    (modulus.bits() >= 512).then(|| (modulus, BigUint::from_bytes_be(exponent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[u8] = include_bytes!("../../../../../tests/data/tls/rsa_public.pem");
    /// The private exponent of that key.
    const PRIVATE: &str = include_str!("../../../../../tests/data/tls/rsa_private_exponent.txt");

    #[test]
    fn whoever_has_the_private_key_reads_the_message() {
        let sealed = encrypt(PUBLIC, b"secret\0").unwrap();
        let (modulus, _) = public_key(PUBLIC).unwrap();
        let private = BigUint::parse_bytes(PRIVATE.trim().as_bytes(), 16).unwrap();
        let opened = BigUint::from_bytes_be(&sealed).modpow(&private, &modulus).to_bytes_be();
        // Its first byte, zero, is not written.
        assert_eq!(opened.len(), sealed.len() - 1);
        let (mut seed, mut block) = (opened[..HASH].to_vec(), opened[HASH..].to_vec());
        mask(&mut seed, &block);
        mask(&mut block, &seed);
        assert_eq!(block[..HASH], *digest(&SHA1, b"").as_ref());
        assert!(block.ends_with(b"\0\x01secret\0"));
    }

    #[test]
    fn what_is_no_key_and_what_is_too_long_is_refused() {
        assert_eq!(encrypt(b"no key", b"secret"), None);
        assert_eq!(encrypt(PUBLIC, &[1; 300]), None);
        for end in 0..PUBLIC.len() - 30 {
            assert_eq!(encrypt(&PUBLIC[..end], b"secret"), None);
        }
    }
}
