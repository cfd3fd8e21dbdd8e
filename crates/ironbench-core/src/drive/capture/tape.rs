//! The tape: a file with the statements of a replay. The tape contains each client's statements in the order in which
//! the client sends them.
//!
//! The file is mapped into memory and read once from start to end. The system can drop its pages after use, so the
//! memory of a replay does not depend on its length.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use super::keys::StatementKeys;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Flags of a statement. The flags describe how the statement is sent, and its position in its session and transaction.
pub mod flag {
    /// The statement is the first of a recorded session, which starts with a new connection.
    pub const OPENS: u16 = 1;
    /// The statement is the first of a transaction.
    pub const BEGINS: u16 = 2;
    /// The statement is the last of a transaction.
    pub const ENDS: u16 = 4;
    /// The statement is a prepared statement (the extended protocol of PostgreSQL, the binary protocol of MySQL).
    /// Otherwise it has no parameters.
    pub const EXTENDED: u16 = 8;
    /// The next statement is sent without waiting for the reply to this one.
    pub const PIPELINED: u16 = 16;
    /// The statement failed when it was recorded.
    pub const FAILED: u16 = 32;
    /// The statement drops all prepared statements of its session.
    pub const DISCARDS: u16 = 64;
    /// The statement returns a generated key or contains generated keys. Bytes that describe the keys follow the
    /// parameters.
    pub const KEYS: u16 = 128;
    /// The types of the parameters precede their values.
    pub const TYPED: u16 = 256;
    /// The session does not execute the prepared statement again.
    pub const LAST_USE: u16 = 512;
}

/// A statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    pub flags: u16,
    /// Recorded time of the statement since the start of the capture, in ns.
    pub at_ns: u64,
    /// Recorded time between the end of the session's previous statement and this one, in ns.
    pub pause_ns: u64,
    /// Kind of the transaction.
    pub kind: u32,
    /// Index of the statement's template among the templates of all kinds of transactions. Statements are counted and
    /// timed separately for each template.
    pub template: u32,
    /// Name of the prepared statement. Empty for the unnamed statement and for the simple protocol.
    pub name: &'a [u8],
    pub text: &'a [u8],
    /// Number of parameters.
    pub parameters: u16,
    /// Types of the parameters, as codes of `wire::mysql::protocol::binary::Parameter`. Empty without `flag::TYPED`.
    pub types: &'a [u8],
    /// Lengths and values of the parameters, as in PostgreSQL's Bind message.
    pub values: &'a [u8],
    /// Bytes that describe the keys in the statement ([`StatementKeys`]). Empty without `flag::KEYS`.
    pub keys: &'a [u8],
}

const HEAD: usize = 4 + 2 + 8 + 8 + 4 + 4 + 2 + 4 + 2 + 4;

impl<'a> Statement<'a> {
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the keys in the statement. Returns None if it has none.
    pub fn keys(&self) -> Option<StatementKeys<'a>> {
        if self.has(flag::KEYS) { StatementKeys::read(self.keys) } else { None }
    }

    /// Returns the length of the statement on a tape, in bytes.
    pub fn length(&self) -> u64 {
        (HEAD + self.name.len() + self.text.len() + self.types.len() + self.values.len() + self.keys.len()) as u64
    }

    /// Appends the statement to a tape.
    ///
    /// # Errors
    /// The statement is too long for a message of the protocol, or the file cannot be written.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let too_long = |_| io::Error::other("a statement is too long");
        out.write_all(&u32::try_from(self.length()).map_err(too_long)?.to_le_bytes())?;
        out.write_all(&self.flags.to_le_bytes())?;
        out.write_all(&self.at_ns.to_le_bytes())?;
        out.write_all(&self.pause_ns.to_le_bytes())?;
        out.write_all(&self.kind.to_le_bytes())?;
        out.write_all(&self.template.to_le_bytes())?;
        out.write_all(&u16::try_from(self.name.len()).map_err(too_long)?.to_le_bytes())?;
        out.write_all(&(self.text.len() as u32).to_le_bytes())?;
        out.write_all(&self.parameters.to_le_bytes())?;
        out.write_all(&(self.keys.len() as u32).to_le_bytes())?;
        out.write_all(self.name)?;
        out.write_all(self.text)?;
        out.write_all(self.types)?;
        out.write_all(self.values)?;
        out.write_all(self.keys)
    }

    /// Reads the first statement of `tape`, and advances `tape` past it. Returns None at the end or if the bytes are
    /// damaged.
    #[inline]
    pub fn read(tape: &mut &'a [u8]) -> Option<Self> {
        let length = u32::from_le_bytes(*tape.first_chunk::<4>()?) as usize;
        let (record, rest) = tape.split_at_checked(length)?;
        let mut fields = record.get(4..)?;
        let flags = u16::from_le_bytes(take(&mut fields)?);
        let at_ns = u64::from_le_bytes(take(&mut fields)?);
        let pause_ns = u64::from_le_bytes(take(&mut fields)?);
        let kind = u32::from_le_bytes(take(&mut fields)?);
        let template = u32::from_le_bytes(take(&mut fields)?);
        let name_length = usize::from(u16::from_le_bytes(take(&mut fields)?));
        let text_length = u32::from_le_bytes(take(&mut fields)?) as usize;
        let parameters = u16::from_le_bytes(take(&mut fields)?);
        let keys_length = u32::from_le_bytes(take(&mut fields)?) as usize;
        let (name, fields) = fields.split_at_checked(name_length)?;
        let (text, fields) = fields.split_at_checked(text_length)?;
        let types = if flags & flag::TYPED != 0 { usize::from(parameters) } else { 0 };
        let (types, fields) = fields.split_at_checked(types)?;
        let (values, keys) = fields.split_at_checked(fields.len().checked_sub(keys_length)?)?;
        *tape = rest;
        Some(Self { flags, at_ns, pause_ns, kind, template, name, text, parameters, types, values, keys })
    }
}

#[inline]
pub(super) fn take<const N: usize>(fields: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = fields.split_first_chunk::<N>()?;
    *fields = rest;
    Some(*field)
}

/// A tape that is mapped into memory.
#[derive(Debug)]
pub struct Tape {
    start: *mut std::ffi::c_void,
    length: usize,
}

// SAFETY: the mapping is private and never written to.
unsafe impl Send for Tape {}
// SAFETY: the mapping is private and never written to.
unsafe impl Sync for Tape {}

impl Tape {
    /// Maps a file into memory. The file must not change while it is mapped.
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len() as usize;
        if length == 0 {
            return Ok(Self { start: std::ptr::NonNull::dangling().as_ptr(), length });
        }
        // SAFETY: this is a new mapping of our own file, which the caller does not change.
        let start = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)? };
        let tape = Self { start, length };
        // SAFETY: the range is the whole mapping, and the advice does not change its contents.
        unsafe { madvise(start, length, Advice::WillNeed)? };
        Ok(tape)
    }

    /// Returns a part of the tape, or None if the range is outside the tape.
    pub fn part(&self, range: Range<u64>) -> Option<&[u8]> {
        // SAFETY: the mapping has this length, and lives as long as the tape.
        let whole = unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), self.length) };
        whole.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: `open` mapped the memory, and no part of it can be borrowed any more.
            let _ = unsafe { munmap(self.start, self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_statement_is_read_as_it_was_written(
            flags in any::<u16>(), at_ns in any::<u64>(), kind in any::<u32>(), name in "[a-z]{0,9}", text in ".{0,50}",
            values in proptest::collection::vec(any::<u8>(), 0..50), keys in proptest::collection::vec(any::<u8>(), 0..20),
            rest in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let types: &[u8] = if flags & flag::TYPED == 0 { b"" } else { b"is" };
            let statement = Statement {
                flags, at_ns, pause_ns: 7, kind, template: 3, name: name.as_bytes(), text: text.as_bytes(), parameters: 2,
                types, values: &values, keys: &keys,
            };
            let mut tape = Vec::new();
            statement.write(&mut tape).unwrap();
            tape.extend_from_slice(&rest);
            let mut left = &tape[..];
            prop_assert_eq!(Statement::read(&mut left), Some(statement));
            prop_assert_eq!(left, &rest[..]);
        }

        #[test]
        fn damaged_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            Statement::read(&mut &bytes[..]);
        }
    }
}
