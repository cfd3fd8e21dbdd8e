//! Reads the entries of a log file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ironbench_core::{Error, Result};

use crate::csv::{self, Record};
use crate::entry::{Clock, Entry};
use crate::input::Buffer;
use crate::json;
use crate::stderr::{self, Prefix};

/// Hint for a file in no known format.
pub const NEEDS_PREFIX: &str =
    "for a log of PostgreSQL in the format stderr, add its log_line_prefix: --prefix '%m [%p] '";

/// The format of the entries of a file. Formats that contain more information come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Csv,
    Json,
    Stderr,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csvlog",
            Self::Json => "jsonlog",
            Self::Stderr => "stderr",
        }
    }
}

/// Damage that was noticed while reading.
#[derive(Debug, Default)]
pub struct Damage {
    /// Lines that are not part of an entry.
    pub unreadable: u64,
    /// Files whose last entry is incomplete. Files whose compressed data are truncated are counted separately.
    pub truncated: u64,
}

/// The result of reading an entry.
#[expect(clippy::large_enum_variant, reason = "the value is matched immediately")]
pub enum NextEntry<'a> {
    /// An entry, and its number within the session. The number is 0 if the log does not number entries.
    Entry(Entry<'a>, u32),
    Unreadable,
    End,
}

/// The state of reading the entries of one file.
pub struct Reader {
    path: PathBuf,
    buffer: Buffer,
    format: Format,
    prefix: Option<Prefix>,
    record: Record,
    pub clock: Clock,
    /// Length of the entry that was returned last. This entry is consumed before the next entry is read.
    returned: usize,
    /// The current line with invalid UTF-8 replaced.
    repaired: Vec<u8>,
    pub damage: Damage,
}

impl Reader {
    /// Opens a file and detects its format.
    ///
    /// # Errors
    /// Input: the file is not a log in a known format. Failure: the file cannot be read, for example because its
    /// compressed data are damaged.
    pub fn open(path: &Path, prefix: Option<&Prefix>, read: &Arc<AtomicU64>) -> Result<Self> {
        let mut buffer = Buffer::open(path, read).map_err(|error| unreadable(path, &error))?;
        buffer.read_more().map_err(|error| unreadable(path, &error))?;
        let mut reader = Self {
            path: path.to_owned(),
            buffer,
            format: Format::Csv,
            prefix: prefix.cloned(),
            record: Record::default(),
            clock: Clock::default(),
            returned: 0,
            repaired: Vec::new(),
            damage: Damage::default(),
        };
        reader.format = reader.detect_format()?;
        Ok(reader)
    }

    /// Detects the format from several lines, because log rotation or an editor may have truncated the first entry.
    fn detect_format(&self) -> Result<Format> {
        let bytes = self.buffer.unread();
        for line in bytes.split_inclusive(|byte| *byte == b'\n').take(1000) {
            let start = line.as_ptr() as usize - bytes.as_ptr() as usize;
            let mut record = Record::default();
            let mut clock = Clock::default();
            if let csv::Parsed::Record(_) = record.split(&bytes[start..])
                && record.is_entry(&bytes[start..], &mut clock)
            {
                return Ok(Format::Csv);
            }
            if json::entry(line, &mut clock).is_some() {
                return Ok(Format::Json);
            }
            if let Some(prefix) = &self.prefix
                && !matches!(prefix.length(line, true, &mut clock), stderr::Parsed::Unknown(_))
            {
                return Ok(Format::Stderr);
            }
        }
        let subject = self.path.display().to_string();
        if self.buffer.is_truncated() && !bytes.contains(&b'\n') {
            let cause = "the compressed data are truncated before the end of the first log entry";
            return Err(Error::failure(subject, cause).hint("copy the file again"));
        }
        if self.prefix.is_none() {
            return Err(Error::input(subject, "no line has the form of csvlog or jsonlog").hint(NEEDS_PREFIX));
        }
        let cause = "no line has the form of csvlog or jsonlog, or begins with the given prefix";
        let hint = bytes.split(|byte| *byte == b'\n').take(1000).find_map(stderr::written_prefix).map_or_else(
            || "give the value of `show log_line_prefix`, with all spaces".to_owned(),
            |found| {
                let found = String::from_utf8_lossy(found);
                format!("give the value of `show log_line_prefix`, with all spaces; lines begin with '{found}'")
            },
        );
        Err(Error::input(subject, cause).hint(hint))
    }

    /// Whether the file is compressed and ends in the middle of the compressed data.
    pub fn is_truncated(&self) -> bool {
        self.buffer.is_truncated()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the next entry.
    ///
    /// # Errors
    /// Failure: the file cannot be read, for example because its compressed data are damaged.
    pub fn next(&mut self) -> Result<NextEntry<'_>> {
        let Some(length) = self.advance()? else { return Ok(NextEntry::End) };
        self.returned = length;
        let bytes = &self.buffer.unread()[..length];
        let clock = &mut self.clock;
        let found = match self.format {
            Format::Csv => self.record.entry(bytes, clock),
            Format::Json if std::str::from_utf8(bytes).is_err() => {
                self.repaired = String::from_utf8_lossy(bytes).into_owned().into_bytes();
                json::entry(&self.repaired, clock)
            }
            Format::Json => json::entry(bytes, clock),
            Format::Stderr => self.prefix.as_ref().and_then(|prefix| prefix.entry(bytes, clock)),
        };
        self.damage.unreadable += u64::from(found.is_none());
        Ok(found.map_or(NextEntry::Unreadable, |(entry, number)| NextEntry::Entry(entry, number)))
    }

    /// Moves to the next entry that can be read, and returns its length. Returns None at the end of the file.
    fn advance(&mut self) -> Result<Option<usize>> {
        self.buffer.consume(std::mem::take(&mut self.returned));
        loop {
            match self.examine() {
                Found::Entry(length) => return Ok(Some(length)),
                Found::Other(length) => {
                    self.damage.unreadable += u64::from(length > 1);
                    self.buffer.consume(length);
                }
                Found::Incomplete => {
                    if self.buffer.read_more().map_err(|error| unreadable(&self.path, &error))? {
                        continue;
                    }
                    let rest = self.buffer.unread();
                    if rest.is_empty() {
                        return Ok(None);
                    }
                    // A missing quote may have merged this entry with all others after it. Therefore only the first
                    // line is skipped. If there is no further line, the file is truncated.
                    match memchr::memchr(b'\n', rest) {
                        Some(end) => {
                            self.damage.unreadable += 1;
                            self.buffer.consume(end + 1);
                        }
                        None => {
                            self.damage.truncated += u64::from(!self.buffer.is_truncated());
                            self.buffer.consume(rest.len());
                        }
                    }
                }
            }
        }
    }

    /// Examines the beginning of the unread bytes.
    fn examine(&mut self) -> Found {
        let bytes = self.buffer.unread();
        match self.format {
            Format::Csv => match self.record.split(bytes) {
                csv::Parsed::Record(length) if self.record.is_entry(bytes, &mut self.clock) => Found::Entry(length),
                csv::Parsed::Incomplete if !bytes.is_empty() && !starts_like_csv(bytes) => skipped_line(bytes),
                csv::Parsed::Incomplete => Found::Incomplete,
                csv::Parsed::Record(_) | csv::Parsed::Malformed => skipped_line(bytes),
            },
            Format::Json => match memchr::memchr(b'\n', bytes) {
                None => Found::Incomplete,
                Some(end) if bytes[0] == b'{' => Found::Entry(end + 1),
                Some(end) => Found::Other(end + 1),
            },
            Format::Stderr => {
                let Some(prefix) = &self.prefix else { return Found::Incomplete };
                match prefix.length(bytes, self.buffer.is_complete(), &mut self.clock) {
                    stderr::Parsed::Entry(length) => Found::Entry(length),
                    stderr::Parsed::Unknown(length) => Found::Other(length),
                    stderr::Parsed::Incomplete => Found::Incomplete,
                }
            }
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::failure(path.display().to_string(), format!("cannot be read: {error}"))
}

enum Found {
    Entry(usize),
    /// A line that is not part of an entry.
    Other(usize),
    Incomplete,
}

fn skipped_line(bytes: &[u8]) -> Found {
    memchr::memchr(b'\n', bytes).map_or(Found::Incomplete, |end| Found::Other(end + 1))
}

/// Whether the bytes may be the start of a record, which begins with a year.
fn starts_like_csv(bytes: &[u8]) -> bool {
    bytes.iter().take(4).all(u8::is_ascii_digit)
}
