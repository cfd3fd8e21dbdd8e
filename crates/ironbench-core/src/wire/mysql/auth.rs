//! Telling the server who we are: `mysql_native_password`, `caching_sha2_password`, `client_ed25519`.

use super::channel::Channel;
use super::fault::Fault;
use super::protocol::backend::{Reader, head, server_error};
use super::protocol::{Malformed, Rows};
use super::{proof, rsa};
use crate::Error;

/// A way to prove a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Native,
    CachingSha2,
    Ed25519,
}

/// Answers of `caching_sha2_password`.
mod sha2 {
    pub const PROVEN: u8 = 3;
    pub const WANTS_PASSWORD: u8 = 4;
    pub const ASK_FOR_KEY: u8 = 2;
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

    /// What proves `password` to a server that gave `nonce`.
    pub fn proof(self, password: &[u8], nonce: &[u8]) -> Vec<u8> {
        let nonce = &nonce[..nonce.len().min(if self == Self::Ed25519 { 32 } else { 20 })];
        match self {
            Self::CachingSha2 if password.is_empty() => vec![0],
            Self::Native if password.is_empty() => Vec::new(),
            Self::Native => proof::mysql_native_password(password, nonce),
            Self::CachingSha2 => proof::caching_sha2_password(password, nonce),
            Self::Ed25519 => proof::client_ed25519(password, nonce),
        }
    }
}

/// Answers the server until it lets us in. The proof by `method` has been sent. `secret`: nobody else reads the connection.
pub(super) fn authenticate(
    channel: &mut Channel,
    mut method: Method,
    mut nonce: Vec<u8>,
    password: &[u8],
    secret: bool,
) -> Result<(), Fault> {
    loop {
        let body = channel.next(Rows::Keep)?;
        match body.first() {
            Some(&head::OK) => return Ok(()),
            Some(&head::ERROR) => return Err(Fault::Server(Box::new(server_error(body)))),
            Some(&head::END) => {
                let mut rest = Reader(&body[1..]);
                let name = rest.text()?;
                method = Method::of(name).ok_or_else(|| unsupported(&String::from_utf8_lossy(name)))?;
                nonce = rest.0.to_vec();
                let proof = method.proof(password, &nonce);
                channel.answer(&proof)?;
            }
            Some(&head::MORE_DATA) if method == Method::CachingSha2 => match body.get(1) {
                Some(&sha2::PROVEN) => {}
                Some(&sha2::WANTS_PASSWORD) => give_password(channel, &nonce, password, secret)?,
                _ => return Err(Malformed::Nonsense.into()),
            },
            _ => return Err(Malformed::Nonsense.into()),
        }
    }
}

/// The server has not seen this password before and wants it itself: plain where nobody listens, else encrypted.
fn give_password(channel: &mut Channel, nonce: &[u8], password: &[u8], secret: bool) -> Result<(), Fault> {
    let mut text = [password, b"\0"].concat();
    if secret {
        return channel.answer(&text);
    }
    channel.answer(&[sha2::ASK_FOR_KEY])?;
    let body = channel.next(Rows::Keep)?;
    match body.split_first() {
        Some((&head::MORE_DATA, key)) => {
            let nonce = &nonce[..nonce.len().min(20)];
            if nonce.is_empty() {
                return Err(Malformed::Nonsense.into());
            }
            text.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
            let sealed = rsa::encrypt(key, &text).ok_or_else(unusable_key)?;
            channel.answer(&sealed)
        }
        Some((&head::ERROR, _)) => Err(Fault::Server(Box::new(server_error(body)))),
        _ => Err(Malformed::Nonsense.into()),
    }
}

fn unusable_key() -> Error {
    Error::failure("authentication", "the password cannot be encrypted with the key that the server sent")
        .hint("ask for TLS (tls=require), or use the server's Unix socket")
}

fn unsupported(plugin: &str) -> Error {
    Error::input("authentication", format!("the server asks for the plug-in {plugin}, which ironbench does not know"))
        .hint("let the user in by mysql_native_password, caching_sha2_password or ed25519 (ALTER USER … IDENTIFIED VIA …)")
}
