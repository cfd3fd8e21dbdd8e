//! The start of a MySQL connection: the server's greeting, and the client's response.
//!
//! The log-in itself is between client and server. The proxy removes from the server's greeting the capabilities that
//! it cannot follow: TLS, compression, and some extensions.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Instant;

use ironbench_capture::observed::SessionNames;
use ironbench_core::wire::Stream;
use ironbench_core::wire::mysql::protocol::backend::{Reader, head};
use ironbench_core::wire::mysql::protocol::capability as can;

use crate::handshake::{HANDSHAKE_TIMEOUT, Plain, Session, StartedConnection};
use crate::socket::Socket;

/// Maximum length of a greeting or of a client's response to it.
const LONGEST: usize = 64 << 10;
const HEAD: usize = 4;
const COMPRESS: u64 = 1 << 5;
const OPTIONAL_METADATA: u64 = 1 << 25;
const ZSTD: u64 = 1 << 26;
const QUERY_ATTRIBUTES: u64 = 1 << 27;
/// Capabilities that the proxy does not offer to clients.
const REMOVED: u64 = can::SSL | COMPRESS | OPTIONAL_METADATA | ZSTD | QUERY_ATTRIBUTES;
/// MARIADB_CLIENT_EXTENDED_METADATA. All other capabilities of MariaDB's own change messages that the proxy has to
/// follow.
const EXTENDED_METADATA: u32 = 1 << 3;

/// Capabilities of a session that change its messages.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// Whether an OK packet, instead of an EOF packet, ends the rows of a result.
    pub deprecate_eof: bool,
    /// Whether a COM_CHANGE_USER contains the length of the proof.
    pub secure: bool,
}

/// How connections start.
pub struct MysqlHandshake {
    pub connect: Box<dyn Fn() -> ironbench_core::Result<Stream> + Send + Sync>,
}

impl MysqlHandshake {
    pub fn begin(&self, client: OwnedFd) -> io::Result<Option<StartedConnection>> {
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        let mut to_client = Plain { fd: &client, deadline };
        let server = match (self.connect)() {
            Ok(Stream::Plain(server)) => server,
            Ok(Stream::Tls { .. }) => return Err(io::ErrorKind::Unsupported.into()),
            Err(error) => {
                // CR_CONNECTION_ERROR, with a message as the server writes it before its greeting.
                let text = format!("the proxy cannot connect: {error}");
                let body = [&[head::ERROR][..], &2002_u16.to_le_bytes(), text.as_bytes()].concat();
                to_client.write_all(&packet(0, &body))?;
                return Ok(None);
            }
        };
        let mut to_server = Plain { fd: &server, deadline };
        let mut greeting = read_packet(&mut to_server)?;
        let offered = removed(&mut greeting[HEAD..]);
        to_client.write_all(&greeting)?;
        let Some(offered) = offered else { return Ok(None) };
        let response = read_packet(&mut to_client)?;
        let Some((names, capabilities)) = introduced(&response[HEAD..], offered) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        to_server.write_all(&response)?;
        let session = Some(Session::Mysql(names, capabilities));
        Ok(Some(StartedConnection {
            client: Socket::plain(client),
            server: Socket::plain(server),
            answer: Vec::new(),
            session,
        }))
    }
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

fn read_packet(from: &mut Plain) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; HEAD];
    from.read_exact(&mut packet)?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    packet.resize(HEAD + length, 0);
    from.read_exact(&mut packet[HEAD..])?;
    Ok(packet)
}

/// Removes capabilities from a greeting, and returns those that remain. Returns None if the packet is not a greeting
/// but, for example, an error.
fn removed(body: &mut [u8]) -> Option<u64> {
    if body.first() != Some(&10) {
        return None;
    }
    let version = memchr::memchr(0, body)? + 1;
    // Connection ID, nonce and filler; after the low half, character set and status; then length and filler.
    let low = version + 4 + 8 + 1;
    let high = low + 2 + 1 + 2;
    let extended = high + 2 + 1 + 6;
    let half = |at: usize| body.get(at..at + 2).map(|bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let offered = (half(low)? | half(high)? << 16) & !REMOVED;
    let is_mariadb = offered & can::LONG_PASSWORD == 0;
    let more: [u8; 4] = body.get(extended..extended + 4)?.try_into().ok()?;
    body[low..low + 2].copy_from_slice(&(offered as u16).to_le_bytes());
    body[high..high + 2].copy_from_slice(&((offered >> 16) as u16).to_le_bytes());
    if is_mariadb {
        let more = u32::from_le_bytes(more) & EXTENDED_METADATA;
        body[extended..extended + 4].copy_from_slice(&more.to_le_bytes());
    }
    Some(offered)
}

/// Parses the client's response. Returns the names that it contains, and the capabilities of the session. Returns None
/// if the response is damaged, or uses a capability that was not offered.
fn introduced(body: &[u8], offered: u64) -> Option<(SessionNames, Capabilities)> {
    let mut rest = Reader(body);
    let chosen = u64::from(rest.u32().ok()?);
    if chosen & REMOVED != 0 || chosen & can::PROTOCOL_41 == 0 {
        return None;
    }
    rest.bytes(4 + 1 + 23).ok()?; // skip packet size, character set and filler
    let user = rest.text().ok()?.to_vec();
    let has = |capability| chosen & offered & capability != 0;
    if has(can::PLUGIN_AUTH_LENENC_DATA) {
        rest.string().ok()?;
    } else if has(can::SECURE_CONNECTION) {
        let length = rest.byte().ok()?;
        rest.bytes(length.into()).ok()?;
    } else {
        rest.text().ok()?;
    }
    let database = if has(can::CONNECT_WITH_DB) { text_or_rest(&mut rest).to_vec() } else { Vec::new() };
    if has(can::PLUGIN_AUTH) {
        text_or_rest(&mut rest);
    }
    let application = if has(can::CONNECT_ATTRS) { program(&mut rest).unwrap_or_default() } else { Vec::new() };
    let capabilities = Capabilities { deprecate_eof: has(can::DEPRECATE_EOF), secure: has(can::SECURE_CONNECTION) };
    Some((SessionNames { user, database, application }, capabilities))
}

/// Reads a string that ends at a zero byte or at the end of the packet.
fn text_or_rest<'a>(rest: &mut Reader<'a>) -> &'a [u8] {
    rest.text().unwrap_or_else(|_| std::mem::take(&mut rest.0))
}

/// Returns the program's name from the attributes of a connection.
fn program(rest: &mut Reader) -> Option<Vec<u8>> {
    let mut attributes = Reader(rest.string().ok()?);
    while !attributes.0.is_empty() {
        let (name, value) = (attributes.string().ok()?, attributes.string().ok()?);
        if name == b"program_name" {
            return Some(value.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the greeting of MariaDB 10.11.
    fn greeting() -> Vec<u8> {
        let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xff\x2d\x02\0\xff\x81\x15".to_vec();
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&0x1d_u32.to_le_bytes());
        body.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        body
    }

    #[test]
    fn a_greeting_loses_only_what_the_proxy_does_not_follow() {
        let before = greeting();
        let mut after = before.clone();
        let offered = removed(&mut after).unwrap();
        assert_eq!(offered & REMOVED, 0);
        assert_ne!(offered & can::DEPRECATE_EOF, 0);
        assert_eq!(before.len(), after.len());
        let differing: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
        assert_eq!(differing.len(), 3, "the bytes of TLS, compression and MariaDB: {differing:?}");
        assert_eq!(removed(&mut b"\xff\x10\x04Too many connections".to_vec()), None);
    }

    #[test]
    fn a_response_names_user_database_and_program() {
        let wanted = can::PROTOCOL_41
            | can::SECURE_CONNECTION
            | can::CONNECT_WITH_DB
            | can::PLUGIN_AUTH
            | can::CONNECT_ATTRS
            | can::DEPRECATE_EOF;
        let mut body = (wanted as u32).to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 28]);
        body.extend_from_slice(b"ann\0\x02hhshop\0mysql_native_password\0\x12\x0cprogram_name\x04till");
        let (names, capabilities) = introduced(&body, wanted).unwrap();
        assert_eq!(
            (&names.user[..], &names.database[..], &names.application[..]),
            (&b"ann"[..], &b"shop"[..], &b"till"[..])
        );
        assert!(capabilities.deprecate_eof);
        assert!(introduced(&(can::SSL as u32).to_le_bytes(), wanted).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = introduced(&bytes, u64::MAX);
            bytes.insert(0, 10);
            let _ = removed(&mut bytes);
        }
    }
}
