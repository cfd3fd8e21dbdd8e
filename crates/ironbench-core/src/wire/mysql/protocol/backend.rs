//! Parses packets from the server, which `framing` has cut out of the stream.

use super::{Malformed, capability, status};
use crate::wire::display::{self, said};

/// First bytes of replies to a command.
pub mod head {
    pub const OK: u8 = 0;
    pub const MORE_DATA: u8 = 1;
    /// The server requests the contents of a file.
    pub const LOCAL_INFILE: u8 = 0xfb;
    /// A packet that ends the rows. During authentication, it requests another method.
    pub const END: u8 = 0xfe;
    pub const ERROR: u8 = 0xff;
}

/// Reads the parts of a packet one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Invalid)?;
        self.0 = rest;
        Ok(*taken)
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Invalid)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a string that ends with a zero byte.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed::Invalid)?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    /// Reads a length-encoded integer of one to nine bytes.
    #[inline]
    pub fn integer(&mut self) -> Result<u64, Malformed> {
        match self.byte()? {
            short @ 0..=0xfa => Ok(u64::from(short)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.array().map(u64::from_le_bytes),
            0xfb | 0xff => Err(Malformed::Invalid),
        }
    }

    /// Reads a string preceded by its length.
    #[inline]
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.integer()?;
        self.bytes(usize::try_from(length).map_err(|_| Malformed::Invalid)?)
    }
}

/// The first packet of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    pub version: String,
    pub connection_id: u32,
    pub capabilities: u64,
    pub plugin: String,
    /// Random bytes for the proof of the password.
    pub nonce: Vec<u8>,
}

/// Prefix of the version number of MariaDB before 11.0. By this prefix, replicas recognise that the server speaks
/// MySQL's protocol.
const DISGUISE: &str = "5.5.5-";

impl Greeting {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Reader(body);
        if rest.byte()? != 10 {
            return Err(Malformed::Invalid);
        }
        let version = said(rest.text()?);
        let connection_id = rest.u32()?;
        let mut nonce = rest.bytes(8)?.to_vec();
        rest.byte()?;
        let low = rest.u16()?;
        rest.bytes(3)?; // skip character set and status
        let high = rest.u16()?;
        let nonce_length = rest.byte()?;
        rest.bytes(6)?;
        let mut capabilities = u64::from(low) | u64::from(high) << 16;
        let extended = rest.u32()?;
        if capabilities & capability::LONG_PASSWORD == 0 {
            capabilities |= u64::from(extended) << 32;
        }
        let second = rest.bytes(usize::from(nonce_length.saturating_sub(8)).max(13))?;
        nonce.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
        let plugin = rest.text().unwrap_or(rest.0);
        Ok(Self {
            version: version.strip_prefix(DISGUISE).unwrap_or(&version).to_owned(),
            connection_id,
            capabilities,
            plugin: said(plugin),
            nonce,
        })
    }
}

/// The end of a command, or of the rows of its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    pub affected: u64,
    /// The first AUTO_INCREMENT value that the statement generated, or 0.
    pub generated: u64,
    pub status: u16,
    pub warnings: u16,
}

impl Done {
    /// Parses an OK packet. The first byte is `head::OK`, or `head::END` after rows.
    #[inline]
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Reader(body);
        rest.byte()?;
        let affected = rest.integer()?;
        Ok(Self { affected, generated: rest.integer()?, status: rest.u16()?, warnings: rest.u16()? })
    }

    #[inline]
    pub fn has_more(self) -> bool {
        self.status & status::MORE_RESULTS != 0
    }

    /// Whether the session commits each statement by itself (`autocommit=1`).
    #[inline]
    pub fn commits_by_itself(self) -> bool {
        self.status & status::AUTOCOMMIT != 0
    }

    #[inline]
    pub fn is_in_transaction(self) -> bool {
        self.status & status::IN_TRANSACTION != 0
    }
}

/// An error reported by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    pub number: u16,
    pub sqlstate: String,
    pub message: String,
}

impl ServerError {
    /// Whether a retry may succeed after this error. Such errors are deadlocks, lock wait timeouts and "record has
    /// changed", which occurs with MariaDB's `innodb_snapshot_isolation`.
    pub fn is_retryable(&self) -> bool {
        matches!(self.number, 1020 | 1205 | 1213)
    }

    /// Whether the server closes the connection after this error. The server does so if it is shutting down (1053), if
    /// a packet was too large (1153) or out of order (1156), or if the session was killed (1927 in MariaDB, 3169 in
    /// MySQL) or idle for too long (4031). Source: MySQL 8.4 Error Message Reference; MariaDB, "Error Codes".
    pub fn ends_session(&self) -> bool {
        matches!(self.number, 1053 | 1153 | 1156 | 1927 | 3169 | 4031)
    }
}

/// SQLSTATE of errors that have no specific SQLSTATE.
const GENERAL: &str = "HY000";

pub fn server_error(body: &[u8]) -> ServerError {
    let number = body.get(1..3).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let rest = body.get(3..).unwrap_or_default();
    // An error before the greeting has no SQLSTATE.
    let (sqlstate, message) = match rest.split_first_chunk::<6>() {
        Some((&[b'#', ref state @ ..], message)) => (display::sqlstate(state).unwrap_or(GENERAL), message),
        _ => (GENERAL, rest),
    };
    ServerError { number, sqlstate: sqlstate.to_owned(), message: said(message) }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (error {}, SQLSTATE {})", self.message, self.number, self.sqlstate)
    }
}

impl std::error::Error for ServerError {}

/// The first packet of the reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Done(Done),
    /// A result with this many columns. The flag is false if the server does not describe the columns again, because
    /// they are the same as last time.
    Rows(usize, bool),
    Error,
    LocalInfile,
}

impl Answer {
    /// Parses the packet. `cached` is true if `MARIADB_CACHE_METADATA` was negotiated and the packet belongs to the
    /// reply to an Execute.
    #[inline]
    pub fn read(body: &[u8], cached: bool) -> Result<Self, Malformed> {
        match body.first() {
            None => Err(Malformed::Invalid),
            Some(&head::OK) => Done::read(body).map(Self::Done),
            Some(&head::ERROR) => Ok(Self::Error),
            Some(&head::LOCAL_INFILE) => Ok(Self::LocalInfile),
            Some(_) => {
                let mut rest = Reader(body);
                let columns = rest.integer()?;
                if columns > MAX_COLUMNS {
                    return Err(Malformed::Invalid);
                }
                let described = !cached || rest.byte()? != 0;
                // A column count may be followed by a byte of MariaDB, which announces the descriptions even if they
                // cannot be omitted. A packet with other bytes is a description or a row.
                if !matches!(rest.0, [] | [1]) {
                    return Err(Malformed::Invalid);
                }
                Ok(Self::Rows(columns as usize, described))
            }
        }
    }
}

/// Maximum number of columns that are accepted. Both servers allow 4096.
const MAX_COLUMNS: u64 = 65_535;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: u8,
    pub unsigned: bool,
}

impl Column {
    const UNSIGNED: u16 = 32;

    /// Whether a packet describes a column: its first string, the catalog, is always `def`.
    #[inline]
    pub fn begins(body: &[u8]) -> bool {
        body.first() == Some(&3)
    }

    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Reader(body);
        for _ in 0..4 {
            rest.string()?; // skip catalog, schema, and the table's two names
        }
        let name = String::from_utf8_lossy(rest.string()?).into_owned();
        rest.string()?;
        let mut rest = Reader(rest.string()?);
        rest.bytes(6)?; // skip character set and length
        let kind = rest.byte()?;
        let flags = rest.u16()?;
        Ok(Self { name, kind, unsigned: flags & Self::UNSIGNED != 0 })
    }
}

/// The reply to a Prepare. Descriptions of parameters and columns follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    pub statement: u32,
    pub columns: u16,
    pub parameters: u16,
}

impl Prepared {
    pub fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Reader(body);
        if rest.byte()? != head::OK {
            return Err(Malformed::Invalid);
        }
        Ok(Self { statement: rest.u32()?, columns: rest.u16()?, parameters: rest.u16()? })
    }
}

/// Iterates over the values of a row in the text protocol, as text or NULL.
pub fn text_row(body: &[u8]) -> impl Iterator<Item = Result<Option<&[u8]>, Malformed>> {
    let mut rest = Reader(body);
    std::iter::from_fn(move || {
        let first = rest.0.first()?;
        if *first == 0xfb {
            rest.0 = &rest.0[1..];
            return Some(Ok(None));
        }
        let value = rest.string();
        if value.is_err() {
            rest.0 = &[];
        }
        Some(value.map(Some))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn readers_of_arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            let _ = Greeting::read(&bytes);
            let _ = Done::read(&bytes);
            let _ = (Answer::read(&bytes, false), Answer::read(&bytes, true));
            let _ = Column::read(&bytes);
            let _ = Prepared::read(&bytes);
            let _ = server_error(&bytes).to_string();
            text_row(&bytes).for_each(drop);
        }
    }

    /// Returns the greeting of MariaDB 10.11.
    fn greeting() -> Vec<u8> {
        let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15".to_vec();
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&0x1d_u32.to_le_bytes());
        body.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        body
    }

    #[test]
    fn a_mariadb_server_is_called_by_its_own_version_and_tells_what_more_it_can_do() {
        let greeting = Greeting::read(&greeting()).unwrap();
        assert_eq!((greeting.version.as_str(), greeting.connection_id), ("10.11.6-MariaDB", 7));
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, "mysql_native_password");
        assert_ne!(greeting.capabilities & capability::MARIADB_CACHE_METADATA, 0);
        assert_eq!(greeting.capabilities & capability::NEEDED, capability::NEEDED);
    }

    #[test]
    fn a_row_tells_null_from_empty() {
        let values: Result<Vec<_>, _> = text_row(b"\x02ab\xfb\0").collect();
        assert_eq!(values.unwrap(), [Some(&b"ab"[..]), None, Some(&b""[..])]);
        assert!(text_row(b"\x05ab").any(|value| value.is_err()));
    }

    #[test]
    fn an_error_shows_message_number_and_sqlstate() {
        let error = server_error(b"\xff\xbd\x04#40001Deadlock found");
        assert_eq!(error.to_string(), "Deadlock found (error 1213, SQLSTATE 40001)");
        let early = server_error(b"\xff\x10\x04Too many connections");
        assert_eq!((early.number, early.sqlstate.as_str()), (1040, "HY000"));
        assert_eq!(early.message, "Too many connections");
    }

    #[test]
    fn an_answer_says_whether_columns_are_described() {
        assert_eq!(Answer::read(&[3], false), Ok(Answer::Rows(3, true)));
        assert_eq!(Answer::read(&[3, 0], true), Ok(Answer::Rows(3, false)));
        assert_eq!(Answer::read(&[3, 1], true), Ok(Answer::Rows(3, true)));
        assert_eq!(Answer::read(&[3], true), Err(Malformed::Invalid));
        assert_eq!(Answer::read(&[3, 1], false), Ok(Answer::Rows(3, true)));
        for description_or_row in [&b"\x03def\0\0\0\x01c"[..], b"\x0242", b"\x011"] {
            assert_eq!(Answer::read(description_or_row, false), Err(Malformed::Invalid));
        }
        let done = Done { affected: 5, generated: 9, status: 3, warnings: 1 };
        assert_eq!(Answer::read(&[0, 5, 9, 3, 0, 1, 0], false), Ok(Answer::Done(done)));
    }
}
