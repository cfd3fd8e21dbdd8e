//! Packets to the server. Functions append to `out`, so that one write can send several packets.

use super::capability;
use super::framing::{HEAD, PART};

/// Command codes.
mod command {
    pub const QUIT: u8 = 1;
    pub const QUERY: u8 = 3;
    pub const STATEMENT_PREPARE: u8 = 0x16;
    pub const STATEMENT_EXECUTE: u8 = 0x17;
    pub const STATEMENT_CLOSE: u8 = 0x19;
}

/// Number of the character set utf8mb4_general_ci, which all servers know.
const CHARACTER_SET: u8 = 45;

/// Appends a packet. A body of 16 MiB or more is split into parts.
#[inline]
pub fn packet(out: &mut Vec<u8>, sequence: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    body(out);
    let length = out.len() - start - HEAD;
    if length >= PART {
        return split_packet(out, start, sequence);
    }
    out[start..start + HEAD].copy_from_slice(&head(length, sequence));
}

/// Returns the header of a packet. The body has `length` bytes, which must be less than 16 MiB − 1.
pub fn head(length: usize, sequence: u8) -> [u8; HEAD] {
    let [a, b, c, _] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}

/// Splits the body into parts of maximum length. A shorter part ends the packet. This part may be empty.
#[cold]
fn split_packet(out: &mut Vec<u8>, start: usize, mut sequence: u8) {
    let body = out.split_off(start).split_off(HEAD);
    let mut rest = &body[..];
    loop {
        let (part, later) = rest.split_at(rest.len().min(PART));
        out.extend_from_slice(&head(part.len(), sequence));
        out.extend_from_slice(part);
        if part.len() < PART {
            return;
        }
        sequence = sequence.wrapping_add(1);
        rest = later;
    }
}

/// The client's side of the handshake.
#[derive(Debug, Clone, Copy)]
pub struct HandshakeResponse<'a> {
    pub capabilities: u64,
    pub user: &'a str,
    pub database: &'a str,
    pub plugin: &'a str,
    /// Proof of the password, from the chosen authentication method.
    pub proof: &'a [u8],
    /// Program name for `performance_schema.session_connect_attrs`.
    pub program: &'a str,
}

/// Appends a request for TLS. The TLS handshake follows immediately.
pub fn ssl_request(out: &mut Vec<u8>, sequence: u8, capabilities: u64) {
    packet(out, sequence, |out| handshake_prefix(out, capabilities));
}

fn handshake_prefix(out: &mut Vec<u8>, capabilities: u64) {
    out.extend_from_slice(&(capabilities as u32).to_le_bytes());
    out.extend_from_slice(&(PART as u32 + 1).to_le_bytes());
    out.push(CHARACTER_SET);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
}

/// Appends the reply to the server's greeting.
pub fn handshake_response(out: &mut Vec<u8>, sequence: u8, handshake_response: &HandshakeResponse) {
    let HandshakeResponse { capabilities, user, database, plugin, proof, program } = *handshake_response;
    packet(out, sequence, |out| {
        handshake_prefix(out, capabilities);
        text(out, user);
        string(out, proof);
        if capabilities & capability::CONNECT_WITH_DB != 0 {
            text(out, database);
        }
        text(out, plugin);
        if capabilities & capability::CONNECT_ATTRS != 0 {
            let mut attributes = Vec::new();
            for (name, value) in [("_client_name", "ironbench"), ("program_name", program)] {
                string(&mut attributes, name.as_bytes());
                string(&mut attributes, value.as_bytes());
            }
            string(out, &attributes);
        }
    });
}

fn text(out: &mut Vec<u8>, value: &str) {
    debug_assert!(!value.contains('\0'));
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Appends a string preceded by its length.
#[inline]
pub fn string(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        short @ 0..=0xfa => out.push(short as u8),
        middle @ 0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(middle as u16).to_le_bytes());
        }
        long @ 0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(long as u32).to_le_bytes()[..3]);
        }
        longest => {
            out.push(0xfe);
            out.extend_from_slice(&(longest as u64).to_le_bytes());
        }
    }
    out.extend_from_slice(value);
}

/// Appends a request to run one or more statements with the text protocol. `write` appends the SQL.
#[inline]
pub fn query_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    packet(out, 0, |out| {
        out.push(command::QUERY);
        write(out);
    });
}

pub fn query(out: &mut Vec<u8>, sql: &str) {
    query_with(out, |out| out.extend_from_slice(sql.as_bytes()));
}

pub fn prepare(out: &mut Vec<u8>, sql: &str) {
    packet(out, 0, |out| {
        out.push(command::STATEMENT_PREPARE);
        out.extend_from_slice(sql.as_bytes());
    });
}

/// Appends a request to close a prepared statement. The server does not reply.
pub fn close(out: &mut Vec<u8>, statement: u32) {
    packet(out, 0, |out| {
        out.push(command::STATEMENT_CLOSE);
        out.extend_from_slice(&statement.to_le_bytes());
    });
}

/// Appends a request to run a prepared statement without a cursor. `write` appends the parameters in the format of
/// `binary`.
#[inline]
pub fn execute(out: &mut Vec<u8>, statement: u32, write: impl FnOnce(&mut Vec<u8>)) {
    packet(out, 0, |out| {
        out.push(command::STATEMENT_EXECUTE);
        out.extend_from_slice(&statement.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        write(out);
    });
}

pub fn quit(out: &mut Vec<u8>) {
    packet(out, 0, |out| out.push(command::QUIT));
}

#[cfg(test)]
mod tests {
    use super::super::{Framer, Rows};
    use super::*;

    #[test]
    fn every_packet_states_its_own_length() {
        let mut out = Vec::new();
        query(&mut out, "select 1");
        prepare(&mut out, "select ?");
        execute(&mut out, 7, |_| {});
        ssl_request(&mut out, 1, u64::MAX);
        let capabilities = capability::CONNECT_WITH_DB | capability::CONNECT_ATTRS;
        let me = HandshakeResponse { capabilities, user: "u", database: "d", plugin: "p", proof: b"x", program: "i" };
        handshake_response(&mut out, 2, &me);
        quit(&mut out);
        let (mut framer, mut input, mut found) = (Framer::new(), &out[..], Vec::new());
        while let Some(packet) = framer.next(&mut input, Rows::Keep).unwrap() {
            found.push((packet.sequence, packet.body.len()));
        }
        assert_eq!(found, [(0, 9), (0, 9), (0, 10), (1, 32), (2, 79), (0, 1)]);
        assert!(input.is_empty());
    }

    #[test]
    fn a_packet_of_16_mib_or_more_is_cut_into_parts() {
        for length in [PART - 2, PART - 1, PART, 2 * PART - 1] {
            let mut out = b"before".to_vec();
            query_with(&mut out, |out| out.resize(out.len() + length, b'x'));
            let mut rest = &out[6..];
            let mut lengths = Vec::new();
            while let Some(&[a, b, c, sequence]) = rest.first_chunk::<HEAD>() {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                assert_eq!(usize::from(sequence), lengths.len());
                lengths.push(length);
                rest = &rest[HEAD + length..];
            }
            assert_eq!(lengths.iter().sum::<usize>(), length + 1);
            assert!(*lengths.last().unwrap() < PART && lengths.len() == (length + 1) / PART + 1);
        }
    }
}
