//! Proofs of a password that do not reveal it.

use curve25519_dalek::{EdwardsPoint, Scalar, scalar::clamp_integer};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY as SHA1, SHA256, SHA512};

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut context = ring::digest::Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

fn xor(mut a: Vec<u8>, b: &[u8]) -> Vec<u8> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    a
}

/// Computes `SHA1(password) xor SHA1(nonce + SHA1(SHA1(password)))`.
pub fn mysql_native_password(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = hash(&SHA1, &[password]);
    let twice = hash(&SHA1, &[&once]);
    xor(once, &hash(&SHA1, &[nonce, &twice]))
}

/// Computes `SHA256(password) xor SHA256(SHA256(SHA256(password)) + nonce)`.
pub fn caching_sha2_password(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = hash(&SHA256, &[password]);
    let twice = hash(&SHA256, &[&once]);
    xor(once, &hash(&SHA256, &[&twice, nonce]))
}

/// Signs the nonce with Ed25519. Unlike in RFC 8032, a password of any length replaces the 32-byte secret key
/// (MariaDB's plugin/auth_ed25519/ref10/sign.c).
pub fn client_ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let wide = |parts: &[&[u8]]| {
        let digest: [u8; 64] = hash(&SHA512, parts).try_into().expect("SHA-512 gives 64 bytes");
        digest
    };
    let expanded = wide(&[password]);
    let (low, prefix) = expanded.split_first_chunk::<32>().expect("64 bytes have 32");
    let secret = Scalar::from_bytes_mod_order(clamp_integer(*low));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let r = Scalar::from_bytes_mod_order_wide(&wide(&[prefix, nonce]));
    let point = EdwardsPoint::mul_base(&r).compress();
    let challenge = wide(&[point.as_bytes(), public.as_bytes(), nonce]);
    let s = Scalar::from_bytes_mod_order_wide(&challenge) * secret + r;
    [*point.as_bytes(), s.to_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_of_a_password_of_32_bytes_is_that_of_the_standard() {
        let password = [7; 32];
        let key = ring::signature::Ed25519KeyPair::from_seed_unchecked(&password).unwrap();
        assert_eq!(client_ed25519(&password, b"nonce"), key.sign(b"nonce").as_ref());
    }

    #[test]
    fn the_server_can_undo_a_proof_with_the_hash_it_stores() {
        let (password, nonce) = (b"secret".as_slice(), b"abcdefghijklmnopqrst".as_slice());
        let stored = hash(&SHA1, &[&hash(&SHA1, &[password])]);
        let once = xor(mysql_native_password(password, nonce), &hash(&SHA1, &[nonce, &stored]));
        assert_eq!(hash(&SHA1, &[&once]), stored);
        let stored = hash(&SHA256, &[&hash(&SHA256, &[password])]);
        let once = xor(caching_sha2_password(password, nonce), &hash(&SHA256, &[&stored, nonce]));
        assert_eq!(hash(&SHA256, &[&once]), stored);
    }
}
