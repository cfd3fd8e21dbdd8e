//! Authentication: `mysql_native_password`, `caching_sha2_password`, `client_ed25519`.

use super::connect::{Fault, Mysql};
use super::password_proof;
use super::protocol::Malformed;
use super::protocol::backend::{Reader, head, server_error};
use crate::Error;
use crate::wire::{channel::Channel, display::said, security::Security};

/// An authentication method based on a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Native,
    CachingSha2,
    Ed25519,
}

/// Reply codes of `caching_sha2_password`.
mod sha2 {
    pub const PROVEN: u8 = 3;
    pub const WANTS_PASSWORD: u8 = 4;
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Ed25519 => "client_ed25519",
        }
    }

    pub fn of(name: &[u8]) -> Option<Self> {
        [Self::Native, Self::CachingSha2, Self::Ed25519].into_iter().find(|method| method.name().as_bytes() == name)
    }

    /// Returns the proof of `password` for a server that sent `nonce`.
    ///
    /// # Errors
    /// The nonce is shorter than the method requires. The proof could then be looked up in precomputed tables.
    pub fn proof(self, password: &[u8], nonce: &[u8]) -> Result<Vec<u8>, Malformed> {
        let length = if self == Self::Ed25519 { 32 } else { 20 };
        let nonce = nonce.get(..length).ok_or(Malformed::Invalid)?;
        Ok(match self {
            Self::CachingSha2 if password.is_empty() => vec![0],
            Self::Native if password.is_empty() => Vec::new(),
            Self::Native => password_proof::mysql_native_password(password, nonce),
            Self::CachingSha2 => password_proof::caching_sha2_password(password, nonce),
            Self::Ed25519 => password_proof::client_ed25519(password, nonce),
        })
    }
}

/// Maximum number of methods that a server may request in sequence. An account of MariaDB may have several methods.
const MAX_METHODS: usize = 8;

/// Completes the authentication. The proof by `method` must have been sent. The password itself is sent only if the
/// channel has at least the security `least`.
pub(super) fn authenticate(
    channel: &mut Channel<Mysql>,
    mut method: Method,
    password: &[u8],
    security: Security,
    least: Security,
) -> Result<(), Fault> {
    let mut methods = 1;
    loop {
        let body = channel.next()?;
        match body.first() {
            Some(&head::OK) => return Ok(()),
            Some(&head::ERROR) => return Err(Fault::Server(Box::new(server_error(body)))),
            Some(&head::END) => {
                let mut rest = Reader(&body[1..]);
                let name = rest.text()?;
                methods += 1;
                if methods > MAX_METHODS {
                    return Err(Malformed::Invalid.into());
                }
                method = Method::of(name).ok_or_else(|| unsupported(&said(name)))?;
                let proof = method.proof(password, rest.0)?;
                channel.answer(&proof)?;
            }
            Some(&head::MORE_DATA) if method == Method::CachingSha2 => match body.get(1) {
                Some(&sha2::PROVEN) => {}
                Some(&sha2::WANTS_PASSWORD) => {
                    security.may_carry_password(least, WAY_OUT)?;
                    channel.answer(&[password, b"\0"].concat())?;
                }
                _ => return Err(Malformed::Invalid.into()),
            },
            _ => return Err(Malformed::Invalid.into()),
        }
    }
}

/// The hint for a server that asks for the password encrypted with the server's RSA key. ironbench does not support
/// that, because the client cannot verify whose key it is.
const WAY_OUT: &str = "use TLS with a verified certificate (tls=verify-full, tls_ca=FILE) or the server's Unix socket; tls=require \
                       encrypts, but accepts any certificate";

fn unsupported(plugin: &str) -> Error {
    Error::input("authentication", format!("the server requires the plug-in {plugin}, which ironbench does not support"))
        .hint("let the user log in with mysql_native_password, caching_sha2_password or ed25519 (ALTER USER … IDENTIFIED VIA …)")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::wire::pipe::Pipe;

    const OK: &[u8] = &[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

    #[test]
    fn a_short_nonce_gets_no_proof() {
        for (method, length) in [(Method::Native, 20), (Method::CachingSha2, 20), (Method::Ed25519, 32)] {
            assert!(method.proof(b"secret", &[7; 32][..length]).is_ok());
            assert!(method.proof(b"secret", &[7; 32][..length - 1]).is_err());
        }
    }

    #[test]
    fn a_server_that_keeps_asking_for_other_methods_is_left() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let mut wishes = Vec::new();
        for number in 0..2 * MAX_METHODS as u8 {
            let body = [b"\xfemysql_native_password\0", &[number; 20][..], b"\0"].concat();
            wishes.extend_from_slice(&[&[body.len() as u8, 0, 0, 2 * number], &body[..]].concat());
        }
        server.write_all(&wishes).unwrap();
        let mut channel = Channel::new(Pipe::new(client.into(), None));
        let (security, least) = (Security::Trusted, Security::Trusted);
        assert!(authenticate(&mut channel, Method::Native, b"secret", security, least).is_err());
        drop(channel);
        let mut sent = Vec::new();
        let _ = server.read_to_end(&mut sent);
        assert_eq!(sent.len(), (MAX_METHODS - 1) * (4 + 20));
    }

    /// Runs the authentication at a server that asks for the password itself. Returns whether it succeeded, and what
    /// the client sent.
    fn asked_for_password(security: Security, least: Security) -> (bool, Vec<u8>) {
        let (client, mut server) = UnixStream::pair().unwrap();
        server.write_all(&[2, 0, 0, 0, head::MORE_DATA, sha2::WANTS_PASSWORD]).unwrap();
        server.write_all(OK).unwrap();
        let mut channel = Channel::new(Pipe::new(client.into(), None));
        let entered = authenticate(&mut channel, Method::CachingSha2, b"secret", security, least).is_ok();
        drop(channel);
        let mut sent = Vec::new();
        server.read_to_end(&mut sent).unwrap();
        (entered, sent)
    }

    #[test]
    fn a_password_goes_over_a_channel_that_is_secure_enough_only_and_never_sealed_with_a_servers_key() {
        let levels = [Security::Plain, Security::UnverifiedTls, Security::Trusted];
        for security in levels {
            for least in [Security::UnverifiedTls, Security::Trusted] {
                let expected = if security >= least { &b"\x07\0\0\x01secret\0"[..] } else { b"" };
                assert_eq!(asked_for_password(security, least), (security >= least, expected.to_vec()));
            }
        }
    }
}
