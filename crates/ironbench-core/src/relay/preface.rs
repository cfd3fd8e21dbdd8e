//! The bytes that a client and the relay exchange before the bytes of the connection itself.
//!
//! The client sends the relay's token and the address of the server. The relay connects to that address and answers
//! with the error number of connect(2), or 0. The client can thus report an unreachable server as it would without a
//! relay. Every local user can reach the relay's port, but only a process that knows the token can use the relay.

use std::net::SocketAddr;

use rustix::net::SocketAddrUnix;

use crate::wire::Endpoint;

/// Number of bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// Number of bytes of the answer: an `i32`, little-endian.
pub const ANSWER_BYTES: usize = 4;
/// Maximum number of bytes of an address. The path of a Unix socket has at most 107 bytes (unix(7)).
const MAX_ADDRESS: usize = 255;
/// Maximum number of bytes of a preface.
pub const MAX_BYTES: usize = TOKEN_BYTES + 1 + MAX_ADDRESS;

pub type Token = [u8; TOKEN_BYTES];

/// Parses a token written as 32 hexadecimal digits.
pub fn token(text: &str) -> Option<Token> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 2 * TOKEN_BYTES)?;
    Some(number.to_be_bytes())
}

/// Returns the address as text: `127.0.0.1:5432`, the path of a Unix socket, or `@` and the name of an abstract socket.
fn text(endpoint: &Endpoint) -> Vec<u8> {
    match endpoint {
        Endpoint::Tcp(address) => address.to_string().into_bytes(),
        Endpoint::Unix(address) => match address.abstract_name() {
            Some(name) => [b"@", name].concat(),
            None => address.path_bytes().unwrap_or_default().to_vec(),
        },
    }
}

/// Parses an address as `text` writes it.
pub(crate) fn endpoint(text: &[u8]) -> Option<Endpoint> {
    match text.first()? {
        b'/' => SocketAddrUnix::new(text).ok().map(Endpoint::Unix),
        b'@' => SocketAddrUnix::new_abstract_name(&text[1..]).ok().map(Endpoint::Unix),
        _ => std::str::from_utf8(text).ok()?.parse::<SocketAddr>().ok().map(Endpoint::Tcp),
    }
}

pub(crate) fn encode(token: &Token, server: &Endpoint) -> Vec<u8> {
    let address = text(server);
    let length = u8::try_from(address.len()).expect("an address has at most 255 bytes");
    [token.as_slice(), &[length], &address].concat()
}

/// Result of reading the bytes of a preface received so far.
#[derive(Debug)]
pub(crate) enum PrefaceState {
    /// The preface is still incomplete.
    Incomplete,
    /// The sender is not a client of this relay.
    Foreign,
    Complete(Endpoint),
}

/// Parses the bytes of a preface. Bytes after the preface are an error, because the client must wait for the relay's
/// answer.
pub(crate) fn parse(bytes: &[u8], token: &Token) -> PrefaceState {
    // A wrong token is refused only when all its bytes have arrived. Otherwise the token could be guessed byte by byte.
    let Some((shown, rest)) = bytes.split_first_chunk::<TOKEN_BYTES>() else {
        return PrefaceState::Incomplete;
    };
    if shown.iter().zip(token).fold(0, |unlike, (one, other)| unlike | (one ^ other)) != 0 {
        return PrefaceState::Foreign;
    }
    let Some((&length, address)) = rest.split_first() else {
        return PrefaceState::Incomplete;
    };
    match address.len().cmp(&usize::from(length)) {
        std::cmp::Ordering::Less => PrefaceState::Incomplete,
        std::cmp::Ordering::Equal => endpoint(address).map_or(PrefaceState::Foreign, PrefaceState::Complete),
        std::cmp::Ordering::Greater => PrefaceState::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = [7; TOKEN_BYTES];

    #[test]
    fn an_address_is_received_as_it_was_written() {
        for address in ["127.0.0.1:5432", "[2001:db8::1]:3306", "/run/s/.s.PGSQL.5432", "@ironbench-1"] {
            let server = endpoint(address.as_bytes()).unwrap();
            let whole = encode(&TOKEN, &server);
            assert!(whole.len() <= MAX_BYTES);
            for length in 0..whole.len() {
                assert!(matches!(parse(&whole[..length], &TOKEN), PrefaceState::Incomplete), "{address} {length}");
            }
            let PrefaceState::Complete(found) = parse(&whole, &TOKEN) else { panic!("{address}") };
            assert_eq!(String::from_utf8(text(&found)).unwrap(), address);
        }
    }

    #[test]
    fn without_the_token_or_with_bytes_after_it_nothing_is_relayed() {
        let whole = encode(&TOKEN, &endpoint(b"127.0.0.1:5432").unwrap());
        assert!(matches!(parse(&whole, &[8; TOKEN_BYTES]), PrefaceState::Foreign));
        assert!(matches!(parse(b"GET / HTTP/1.1\r\n", &TOKEN), PrefaceState::Foreign));
        assert!(matches!(parse(b"GET / HTTP/1.1", &TOKEN), PrefaceState::Incomplete));
        assert!(matches!(parse(&[whole, vec![0]].concat(), &TOKEN), PrefaceState::Foreign));
        let nameless = [TOKEN.as_slice(), &[9], b"localhost"].concat();
        assert!(matches!(parse(&nameless, &TOKEN), PrefaceState::Foreign));
    }

    #[test]
    fn a_token_is_32_hexadecimal_digits() {
        assert_eq!(token("000102030405060708090a0b0c0d0e0f").unwrap()[15], 15);
        for wrong in ["", "00", "zz0102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f00"] {
            assert_eq!(token(wrong), None, "{wrong}");
        }
    }
}
