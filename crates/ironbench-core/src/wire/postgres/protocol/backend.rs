//! Parses messages from the server, which `framing` has cut out of the stream.

use super::Malformed;
use crate::wire::display::{self, said};

/// Tags of the messages that a client receives.
pub mod tag {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN_RESPONSE: u8 = b'G';
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    pub const ERROR_RESPONSE: u8 = b'E';
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE_RESPONSE: u8 = b'N';
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// Iterates over the fields of a DataRow, as text or NULL.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    left: usize,
    rest: &'a [u8],
}

/// Parses a DataRow's body.
#[inline]
pub fn data_row(body: &[u8]) -> Result<Fields<'_>, Malformed> {
    let (count, rest) = body.split_first_chunk::<2>().ok_or(Malformed::Invalid)?;
    Ok(Fields { left: u16::from_be_bytes(*count) as usize, rest })
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<&'a [u8]>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let field = take_field(&mut self.rest);
        if field.is_err() {
            self.left = 0;
        }
        Some(field)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl Fields<'_> {
    /// Returns the number of remaining fields that the row announces.
    #[inline]
    pub fn announced(&self) -> usize {
        self.left
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let (length, after) = rest.split_first_chunk::<4>().ok_or(Malformed::Invalid)?;
    let length = i32::from_be_bytes(*length);
    if length < 0 {
        *rest = after;
        return Ok(None);
    }
    let (field, after) = after.split_at_checked(length as usize).ok_or(Malformed::Invalid)?;
    *rest = after;
    Ok(Some(field))
}

/// Parses the column names in a RowDescription's body.
pub fn column_names(body: &[u8]) -> Result<Vec<String>, Malformed> {
    /// Length of the other attributes of a column: table, column number, type, type size, modifier, format.
    const REST_OF_COLUMN: usize = 4 + 2 + 4 + 2 + 4 + 2;
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or(Malformed::Invalid)?;
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let name = take_text(&mut rest)?;
            rest = rest.get(REST_OF_COLUMN..).ok_or(Malformed::Invalid)?;
            Ok(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let end = rest.iter().position(|&byte| byte == 0).ok_or(Malformed::Invalid)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(text)
}

/// Parses the row count in a CommandComplete's body, such as 5 in `INSERT 0 5`. The count is 0 for commands without a
/// count.
#[inline]
pub fn affected_rows(body: &[u8]) -> u64 {
    let text = body.strip_suffix(b"\0").unwrap_or(body);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    text[text.len() - digits..].iter().fold(0, |n: u64, byte| n.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
}

/// Parses name and value in a ParameterStatus's body.
pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), Malformed> {
    let mut rest = body;
    let name = std::str::from_utf8(take_text(&mut rest)?).map_err(|_| Malformed::Invalid)?;
    let value = std::str::from_utf8(take_text(&mut rest)?).map_err(|_| Malformed::Invalid)?;
    Ok((name, value))
}

/// Parses process ID and secret in a BackendKeyData's body.
pub fn backend_key(body: &[u8]) -> Result<(i32, i32), Malformed> {
    let &[a, b, c, d, e, f, g, h] = <&[u8; 8]>::try_from(body).map_err(|_| Malformed::Invalid)?;
    Ok((i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h])))
}

/// Transaction status of the session in a ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InTransaction,
    /// The session is in a failed transaction, in which only ROLLBACK is accepted.
    InFailedTransaction,
}

#[inline]
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, Malformed> {
    match body {
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::InTransaction),
        b"E" => Ok(TransactionStatus::InFailedTransaction),
        _ => Err(Malformed::Invalid),
    }
}

/// Returns one field of an ErrorResponse's or NoticeResponse's body by its letter, such as `C` for the SQLSTATE or `M`
/// for the message.
#[inline]
pub fn error_field(body: &[u8], letter: u8) -> Option<&[u8]> {
    let mut rest = body;
    while let Some((&found, after)) = rest.split_first() {
        if found == 0 {
            return None;
        }
        rest = after;
        let text = take_text(&mut rest).ok()?;
        if found == letter {
            return Some(text);
        }
    }
    None
}

/// Returns the SQLSTATE of an ErrorResponse. Returns `XX000` (internal error) if the server sent none.
#[inline]
pub fn sqlstate(body: &[u8]) -> &str {
    error_field(body, b'C').and_then(|code| display::sqlstate(code.try_into().ok()?)).unwrap_or("XX000")
}

/// An error of the server, with all its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// Severity of the error: `ERROR`, `FATAL` or `PANIC`. The severity is not translated if the server sends the
    /// untranslated field (since 9.6).
    pub severity: String,
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
    /// Where the error happened, innermost first: a row of a COPY, a line of a function.
    pub context: String,
    /// Position in the statement, in characters from 1. 0 if unknown.
    pub position: usize,
}

pub fn server_error(body: &[u8]) -> ServerError {
    let text = |letter| error_field(body, letter).map(said);
    ServerError {
        severity: text(b'V').or_else(|| text(b'S')).unwrap_or_else(|| "ERROR".to_owned()),
        sqlstate: sqlstate(body).to_owned(),
        message: text(b'M').unwrap_or_default(),
        detail: text(b'D').unwrap_or_default(),
        hint: text(b'H').unwrap_or_default(),
        context: text(b'W').unwrap_or_default(),
        position: text(b'P').and_then(|digits| digits.parse().ok()).unwrap_or(0),
    }
}

impl std::fmt::Display for ServerError {
    /// Formats the error as `message; detail; innermost place (SQLSTATE 23505)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if !self.detail.is_empty() {
            write!(f, "; {}", self.detail)?;
        }
        if let Some(place) = self.context.lines().next() {
            write!(f, "; {place}")?;
        }
        write!(f, " (SQLSTATE {})", self.sqlstate)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn readers_of_arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(fields) = data_row(&bytes) { fields.for_each(drop); }
            let _ = column_names(&bytes);
            let _ = affected_rows(&bytes);
            let _ = parameter_status(&bytes);
            let _ = backend_key(&bytes);
            let _ = ready_for_query(&bytes);
            let _ = server_error(&bytes).to_string();
        }
    }

    #[test]
    fn a_row_tells_null_from_empty() {
        let body = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        let fields: Result<Vec<_>, _> = data_row(body).unwrap().collect();
        assert_eq!(fields.unwrap(), [Some(&b"ab"[..]), None, Some(&b""[..])]);
        assert!(data_row(b"\0\x01\0\0\0\x05ab").unwrap().any(|field| field.is_err()));
    }

    #[test]
    fn the_count_of_a_command_is_its_last_number() {
        assert_eq!(affected_rows(b"INSERT 0 5\0"), 5);
        assert_eq!(affected_rows(b"SELECT 12\0"), 12);
        assert_eq!(affected_rows(b"BEGIN\0"), 0);
        assert_eq!(affected_rows(b"COPY 1000000\0"), 1_000_000);
    }

    #[test]
    fn an_error_shows_message_detail_and_sqlstate() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0DKey (id)=(1) exists.\0WCOPY t, line 3\nmore\0P15\0\0";
        let error = server_error(body);
        assert_eq!(error.severity, "ERROR");
        assert_eq!(error.position, 15);
        assert_eq!(error.to_string(), "duplicate key; Key (id)=(1) exists.; COPY t, line 3 (SQLSTATE 23505)");
        assert_eq!(sqlstate(b"Mno code\0\0"), "XX000");
        assert_eq!(sqlstate(b"C\x1b[31m\0\0"), "XX000");
    }
}
