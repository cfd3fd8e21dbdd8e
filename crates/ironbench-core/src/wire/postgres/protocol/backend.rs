//! Messages from the server: [`Framer`] cuts them out of the bytes that have arrived, the readers below take them apart.

/// Tags of the messages a client meets.
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

/// What arrived is no PostgreSQL message that we take: the stream cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the server sent something that is no PostgreSQL message")]
    Nonsense,
    #[error(
        "the server announced a message of {size} bytes (type {tag}), and at most {most} are taken",
        tag = char::from(*.tag), most = LONGEST[usize::from(*.tag)]
    )]
    TooLong { tag: u8, size: usize },
}

/// Longest messages, head included. A row that is kept holds values of a query of ours or of `\gset`; PostgreSQL itself
/// makes none above 1 GB, and rows nobody looks at are passed over, whatever their length.
const LONGEST_ROW: usize = 64 << 20;
/// Texts for people, and descriptions of up to 65,535 columns or parameters.
const LONGEST_TEXT: usize = 8 << 20;
/// All others are short; libpq (fe-protocol3.c) draws the line at 30,000.
const LONGEST_OTHER: usize = 64 << 10;

/// By tag; 0: no message has this tag.
const LONGEST: [usize; 256] = {
    use tag::*;
    let mut longest = [0; 256];
    let mut tags: &[(u8, usize)] = &[
        (AUTHENTICATION, LONGEST_OTHER),
        (BACKEND_KEY_DATA, LONGEST_OTHER),
        (BIND_COMPLETE, LONGEST_OTHER),
        (CLOSE_COMPLETE, LONGEST_OTHER),
        (COMMAND_COMPLETE, LONGEST_OTHER),
        (COPY_BOTH_RESPONSE, LONGEST_OTHER),
        (COPY_DATA, LONGEST_ROW),
        (COPY_DONE, LONGEST_OTHER),
        (COPY_IN_RESPONSE, LONGEST_OTHER),
        (COPY_OUT_RESPONSE, LONGEST_OTHER),
        (DATA_ROW, LONGEST_ROW),
        (EMPTY_QUERY_RESPONSE, LONGEST_OTHER),
        (ERROR_RESPONSE, LONGEST_TEXT),
        (NEGOTIATE_PROTOCOL_VERSION, LONGEST_OTHER),
        (NO_DATA, LONGEST_OTHER),
        (NOTICE_RESPONSE, LONGEST_TEXT),
        (NOTIFICATION_RESPONSE, LONGEST_OTHER),
        (PARAMETER_DESCRIPTION, LONGEST_TEXT),
        (PARAMETER_STATUS, LONGEST_OTHER),
        (PARSE_COMPLETE, LONGEST_OTHER),
        (PORTAL_SUSPENDED, LONGEST_OTHER),
        (READY_FOR_QUERY, LONGEST_OTHER),
        (ROW_DESCRIPTION, LONGEST_TEXT),
    ];
    while let Some(((tag, most), rest)) = tags.split_first() {
        longest[*tag as usize] = *most;
        tags = rest;
    }
    longest
};

/// One message; `body` is what follows its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    pub tag: u8,
    pub body: &'a [u8],
}

/// Whether DataRow and CopyData are handed out, or passed over without being looked at (and without needing room).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Keep,
    Skip,
}

/// Tag and length.
const HEAD: usize = 5;

/// Cuts messages out of a stream that arrives in pieces of any size.
///
/// The caller owns the buffer: it gives the unread bytes, takes messages until `None`, moves what is left to the front
/// and reads more behind it. With `Rows::Skip` unread rows never take room: their bytes are consumed as they come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Framer {
    /// Bytes of a skipped message that have not arrived yet.
    owed: usize,
}

impl Framer {
    pub fn new() -> Self {
        Self::default()
    }

    /// The next whole message of `input`, which is moved past it. `None`: `input` holds no whole message (keep it).
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8], rows: Rows) -> Result<Option<Message<'a>>, Malformed> {
        let mut rest = *input;
        if self.owed > 0 {
            let passed = self.owed.min(rest.len());
            self.owed -= passed;
            rest = &rest[passed..];
        }
        loop {
            let Some(size) = message_size(rest)? else {
                *input = rest;
                return Ok(None);
            };
            let tag = rest[0];
            if rows == Rows::Skip && (tag == tag::DATA_ROW || tag == tag::COPY_DATA) {
                if size > rest.len() {
                    self.owed = size - rest.len();
                    *input = &rest[rest.len()..];
                    return Ok(None);
                }
                rest = &rest[size..];
                continue;
            }
            if size > LONGEST[usize::from(tag)] {
                return Err(refused(tag, size));
            }
            if size > rest.len() {
                *input = rest;
                return Ok(None);
            }
            *input = &rest[size..];
            return Ok(Some(Message { tag, body: &rest[HEAD..size] }));
        }
    }
}

#[cold]
fn refused(tag: u8, size: usize) -> Malformed {
    if LONGEST[usize::from(tag)] == 0 { Malformed::Nonsense } else { Malformed::TooLong { tag, size } }
}

/// Bytes of the message at the start of `input`, head included; `None`: its head has not arrived. Tells how much room a
/// buffer needs for a message that is larger than it.
#[inline]
pub fn message_size(input: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(&[_, a, b, c, d]) = input.first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes([a, b, c, d]);
    if length < 4 { Err(Malformed::Nonsense) } else { Ok(Some(1 + length as usize)) }
}

/// The fields of a DataRow, as text or NULL.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    left: usize,
    rest: &'a [u8],
}

/// Reads a DataRow's body.
#[inline]
pub fn data_row(body: &[u8]) -> Result<Fields<'_>, Malformed> {
    let (count, rest) = body.split_first_chunk::<2>().ok_or(Malformed::Nonsense)?;
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

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let (length, after) = rest.split_first_chunk::<4>().ok_or(Malformed::Nonsense)?;
    let length = i32::from_be_bytes(*length);
    if length < 0 {
        *rest = after;
        return Ok(None);
    }
    let (field, after) = after.split_at_checked(length as usize).ok_or(Malformed::Nonsense)?;
    *rest = after;
    Ok(Some(field))
}

/// Names of the columns of a RowDescription's body.
pub fn column_names(body: &[u8]) -> Result<Vec<String>, Malformed> {
    /// Table, column number, type, type size, modifier, format.
    const REST_OF_COLUMN: usize = 4 + 2 + 4 + 2 + 4 + 2;
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or(Malformed::Nonsense)?;
    (0..u16::from_be_bytes(*count))
        .map(|_| {
            let name = take_text(&mut rest)?;
            rest = rest.get(REST_OF_COLUMN..).ok_or(Malformed::Nonsense)?;
            Ok(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let end = rest.iter().position(|&byte| byte == 0).ok_or(Malformed::Nonsense)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(text)
}

/// Rows a CommandComplete's body speaks of (`INSERT 0 5`: 5); 0 for commands without a count.
#[inline]
pub fn affected_rows(body: &[u8]) -> u64 {
    let text = body.strip_suffix(b"\0").unwrap_or(body);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    text[text.len() - digits..].iter().fold(0, |n: u64, byte| n.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
}

/// Name and value of a ParameterStatus's body.
pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), Malformed> {
    let mut rest = body;
    let name = std::str::from_utf8(take_text(&mut rest)?).map_err(|_| Malformed::Nonsense)?;
    let value = std::str::from_utf8(take_text(&mut rest)?).map_err(|_| Malformed::Nonsense)?;
    Ok((name, value))
}

/// Process id and secret of a BackendKeyData's body.
pub fn backend_key(body: &[u8]) -> Result<(i32, i32), Malformed> {
    let &[a, b, c, d, e, f, g, h] = <&[u8; 8]>::try_from(body).map_err(|_| Malformed::Nonsense)?;
    Ok((i32::from_be_bytes([a, b, c, d]), i32::from_be_bytes([e, f, g, h])))
}

/// Where a ReadyForQuery says the session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Idle,
    InTransaction,
    /// In a transaction that failed: only ROLLBACK is accepted.
    InFailedTransaction,
}

#[inline]
pub fn ready_for_query(body: &[u8]) -> Result<Standing, Malformed> {
    match body {
        b"I" => Ok(Standing::Idle),
        b"T" => Ok(Standing::InTransaction),
        b"E" => Ok(Standing::InFailedTransaction),
        _ => Err(Malformed::Nonsense),
    }
}

/// One field of an ErrorResponse's or NoticeResponse's body, by its letter (`C`: SQLSTATE, `M`: message).
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

/// The SQLSTATE of an ErrorResponse; `XX000` (internal error) when the server gave none.
#[inline]
pub fn sqlstate(body: &[u8]) -> [u8; 5] {
    error_field(body, b'C').and_then(|code| code.try_into().ok()).unwrap_or(*b"XX000")
}

/// What the server said of a failure, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`; never translated where the server can say so (since 9.6).
    pub severity: String,
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
    /// Where it happened, innermost first: a row of a COPY, a line of a function.
    pub context: String,
    /// Character of the statement, from 1; 0: not said.
    pub position: usize,
}

pub fn server_error(body: &[u8]) -> ServerError {
    let text = |letter| error_field(body, letter).map(|text| String::from_utf8_lossy(text).into_owned());
    ServerError {
        severity: text(b'V').or_else(|| text(b'S')).unwrap_or_else(|| "ERROR".to_owned()),
        sqlstate: String::from_utf8_lossy(&sqlstate(body)).into_owned(),
        message: text(b'M').unwrap_or_default(),
        detail: text(b'D').unwrap_or_default(),
        hint: text(b'H').unwrap_or_default(),
        context: text(b'W').unwrap_or_default(),
        position: text(b'P').and_then(|digits| digits.parse().ok()).unwrap_or(0),
    }
}

impl std::fmt::Display for ServerError {
    /// `message; detail; innermost place (SQLSTATE 23505)`.
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

    fn encoded(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, body) in messages {
            out.push(*tag);
            out.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
            out.extend_from_slice(body);
        }
        out
    }

    /// Reads `stream` in pieces of the given sizes, as a transport does; the messages and the most bytes ever kept.
    fn decoded(stream: &[u8], sizes: &[usize], rows: Rows) -> (Vec<(u8, Vec<u8>)>, usize) {
        let (mut framer, mut buffer, mut found, mut kept) = (Framer::new(), Vec::new(), Vec::new(), 0);
        let (mut at, mut turn) = (0, 0);
        while at < stream.len() {
            let size = sizes[turn % sizes.len()].min(stream.len() - at);
            turn += 1;
            buffer.extend_from_slice(&stream[at..at + size]);
            at += size;
            let mut unread = &buffer[..];
            while let Some(message) = framer.next(&mut unread, rows).unwrap() {
                found.push((message.tag, message.body.to_vec()));
            }
            let read = buffer.len() - unread.len();
            buffer.drain(..read);
            kept = kept.max(buffer.len());
        }
        assert!(buffer.is_empty());
        (found, kept)
    }

    fn messages() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
        let tag = prop::sample::select(b"DdDCZTE12S".to_vec());
        prop::collection::vec((tag, prop::collection::vec(any::<u8>(), 0..40)), 0..20)
    }

    proptest! {
        #[test]
        fn any_cut_of_a_stream_gives_the_same_messages(
            messages in messages(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            prop_assert_eq!(decoded(&encoded(&messages), &sizes, Rows::Keep).0, messages);
        }

        #[test]
        fn skipped_rows_are_missing_and_nothing_else(
            messages in messages(), sizes in prop::collection::vec(1usize..60, 1..10)
        ) {
            let expected: Vec<_> = messages.iter().filter(|m| m.0 != b'D' && m.0 != b'd').cloned().collect();
            prop_assert_eq!(decoded(&encoded(&messages), &sizes, Rows::Skip).0, expected);
        }

        #[test]
        fn readers_of_arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Framer::new().next(&mut &bytes[..], Rows::Skip);
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
    fn a_skipped_row_larger_than_the_buffer_takes_no_room() {
        let stream = encoded(&[(b'D', vec![7; 1_000_000]), (b'Z', b"I".to_vec())]);
        let (found, kept) = decoded(&stream, &[4096], Rows::Skip);
        assert_eq!(found, [(b'Z', b"I".to_vec())]);
        assert!(kept < 16, "{kept}");
    }

    #[test]
    fn a_length_below_four_is_malformed() {
        assert_eq!(Framer::new().next(&mut &b"Z\0\0\0\x03"[..], Rows::Keep), Err(Malformed::Nonsense));
        assert_eq!(Framer::new().next(&mut &b"xTTP/1.1\xff"[..], Rows::Keep), Err(Malformed::Nonsense));
        assert_eq!(Framer::new().next(&mut &b"Z\xff\0\0\x03"[..], Rows::Keep), Err(Malformed::Nonsense));
    }

    #[test]
    fn a_message_longer_than_its_kind_may_be_is_refused_by_its_head() {
        for (tag, most) in [(b'D', LONGEST_ROW), (b'E', LONGEST_TEXT), (b'N', LONGEST_TEXT), (b'Z', LONGEST_OTHER)] {
            let announced = |size: usize| [&[tag][..], &(size as i32 - 1).to_be_bytes()[..]].concat();
            let next = |size| Framer::new().next(&mut &announced(size)[..], Rows::Keep).map(|found| found.is_some());
            assert_eq!(next(most), Ok(false));
            assert_eq!(next(most + 1), Err(Malformed::TooLong { tag, size: most + 1 }));
        }
        let words = Malformed::TooLong { tag: b'D', size: 2_147_483_648 }.to_string();
        assert_eq!(
            words,
            "the server announced a message of 2147483648 bytes (type D), and at most 67108864 are taken"
        );
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
        assert_eq!(sqlstate(b"Mno code\0\0"), *b"XX000");
    }
}
