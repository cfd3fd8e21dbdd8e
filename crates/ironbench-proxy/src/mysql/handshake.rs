//! The start of a MySQL connection: the server's greeting, and the client's response.
//!
//! The log-in itself is between client and server. The proxy removes from the server's greeting the capabilities that
//! it cannot follow: compression, and some extensions.
//!
//! Either both connections use TLS or none, as the client chooses. A request for TLS is a packet of the log-in with its
//! own number, and the server may choose the method of authentication by whether the connection uses TLS. The log-in
//! therefore works only if both sides see the same packets. Without a certificate for clients, the proxy also removes
//! TLS from the greeting.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use ironbench_capture::observed::SessionNames;
use ironbench_core::wire::mysql::Mysql;
use ironbench_core::wire::mysql::protocol::backend::{Reader, head};
use ironbench_core::wire::mysql::protocol::capability as can;
use ironbench_core::wire::{Connector, UnauthenticatedConnection};

use crate::handshake::{Client, HANDSHAKE_TIMEOUT, Server, Session, StartedConnection};

/// Maximum length of a greeting or of a client's response to it.
const LONGEST: usize = 64 << 10;
const HEAD: usize = 4;
/// Length of a request for TLS. It is the beginning of a response to the greeting.
const TLS_REQUEST: usize = 32;
const COMPRESS: u64 = 1 << 5;
const OPTIONAL_METADATA: u64 = 1 << 25;
const ZSTD: u64 = 1 << 26;
const QUERY_ATTRIBUTES: u64 = 1 << 27;
/// Capabilities that the proxy does not offer to clients.
const REMOVED: u64 = COMPRESS | OPTIONAL_METADATA | ZSTD | QUERY_ATTRIBUTES;
/// MARIADB_CLIENT_EXTENDED_METADATA. All other capabilities of MariaDB's own change messages that the proxy has to
/// follow.
const EXTENDED_METADATA: u32 = 1 << 3;
/// CR_CONNECTION_ERROR and CR_SSL_CONNECTION_ERROR of MySQL's clients.
const CANNOT_CONNECT: u16 = 2002;
const CANNOT_USE_TLS: u16 = 2026;

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
    /// TLS for clients. With None, clients connect without TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub connector: Connector<Mysql>,
}

impl MysqlHandshake {
    pub fn begin(&self, client: OwnedFd) -> io::Result<Option<StartedConnection>> {
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        let mut client = Client { fd: client, tls: None, deadline };
        let UnauthenticatedConnection { stream, carries_passwords, .. } = match self.connector.reach_only() {
            Ok(server) => server,
            // A server writes such an error before its greeting.
            Err(error) => {
                return refuse(&mut client, 0, CANNOT_CONNECT, &format!("the proxy cannot connect: {error}"));
            }
        };
        let mut server = Server { stream, deadline };
        let mut greeting = read_packet(&mut server)?;
        let to_server = match self.tls {
            Some(_) => self.connector.tls_session().map_err(io::Error::other)?,
            None => None,
        };
        let removed_too = if to_server.is_some() { 0 } else { can::SSL };
        let offered = removed(&mut greeting[HEAD..], REMOVED | removed_too);
        client.write_all(&greeting)?;
        let Some(offered) = offered else { return Ok(None) };
        let mut response = read_packet(&mut client)?;
        let is_tls = response.len() == HEAD + TLS_REQUEST && chosen(&response[HEAD..])? & offered & can::SSL != 0;
        if let (true, Some(to_server)) = (is_tls, to_server) {
            let request = response;
            client.start_tls(self.tls.as_ref())?;
            response = read_packet(&mut client)?;
            let sequence = response[HEAD - 1].wrapping_add(1);
            if !carries_passwords {
                // Over TLS, the server may ask for the password itself.
                let text = "the proxy does not verify the server, to which the client may send its password: add \
                            tls=verify-full or tls=require to the DSN of --to";
                return refuse(&mut client, sequence, CANNOT_USE_TLS, text);
            }
            server.write_all(&request)?;
            server = match server.start_tls(to_server) {
                Ok(server) => server,
                Err(error) => {
                    let text = format!("the proxy cannot use TLS with the server: {error}");
                    return refuse(&mut client, sequence, CANNOT_USE_TLS, &text);
                }
            };
        } else if self.connector.requires_tls() {
            let text = "the proxy connects to the server with TLS, and only for clients with TLS: enable TLS in the \
                        client";
            return refuse(&mut client, response[HEAD - 1].wrapping_add(1), CANNOT_USE_TLS, text);
        }
        let has_same_tls = (chosen(&response[HEAD..])? & can::SSL != 0) == is_tls;
        let (true, Some((names, capabilities))) = (has_same_tls, introduced(&response[HEAD..], offered)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        server.write_all(&response)?;
        let session = Some(Session::Mysql(names, capabilities));
        Ok(Some(StartedConnection { client: client.into(), server: server.stream.into(), answer: Vec::new(), session }))
    }
}

/// Sends an error, and ends the connection.
fn refuse<T>(client: &mut Client, sequence: u8, number: u16, text: &str) -> io::Result<Option<T>> {
    let state: &[u8] = if sequence == 0 { b"" } else { b"#08S01" };
    let body = [&[head::ERROR][..], &number.to_le_bytes(), state, text.as_bytes()].concat();
    client.write_all(&packet(sequence, &body))?;
    Ok(None)
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

fn read_packet(from: &mut impl Read) -> io::Result<Vec<u8>> {
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
fn removed(body: &mut [u8], unwanted: u64) -> Option<u64> {
    if body.first() != Some(&10) {
        return None;
    }
    let version = memchr::memchr(0, body)? + 1;
    // Connection ID, nonce and filler; after the low half, character set and status; then length and filler.
    let low = version + 4 + 8 + 1;
    let high = low + 2 + 1 + 2;
    let extended = high + 2 + 1 + 6;
    let half = |at: usize| body.get(at..at + 2).map(|bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let offered = (half(low)? | half(high)? << 16) & !unwanted;
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

/// Parses the capabilities at the beginning of the client's response or of its request for TLS.
fn chosen(body: &[u8]) -> io::Result<u64> {
    Ok(u64::from(Reader(body).u32().map_err(|_| io::ErrorKind::InvalidData)?))
}

/// Parses the client's response. Returns the names that it contains, and the capabilities of the session. Returns None
/// if the response is damaged, or uses a capability that was not offered.
fn introduced(body: &[u8], offered: u64) -> Option<(SessionNames, Capabilities)> {
    let mut rest = Reader(body);
    let chosen = u64::from(rest.u32().ok()?);
    if chosen & (REMOVED | can::SSL) & !offered != 0 || chosen & can::PROTOCOL_41 == 0 {
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
        let offered = removed(&mut after, REMOVED | can::SSL).unwrap();
        assert_eq!(offered & (REMOVED | can::SSL), 0);
        assert_ne!(offered & can::DEPRECATE_EOF, 0);
        assert_eq!(before.len(), after.len());
        let differing: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
        assert_eq!(differing.len(), 3, "the bytes of TLS, compression and MariaDB: {differing:?}");
        assert_eq!(removed(&mut b"\xff\x10\x04Too many connections".to_vec(), REMOVED), None);
        let mut with_tls = before.clone();
        assert_ne!(removed(&mut with_tls, REMOVED).unwrap() & can::SSL, 0);
        assert_eq!((0..before.len()).filter(|at| before[*at] != with_tls[*at]).count(), 2);
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
        body[1] |= (can::SSL >> 8) as u8;
        assert!(introduced(&body, wanted).is_none(), "TLS was not offered");
        assert!(introduced(&body, wanted | can::SSL).is_some());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = introduced(&bytes, u64::MAX);
            bytes.insert(0, 10);
            let _ = removed(&mut bytes, REMOVED);
        }
    }
}
