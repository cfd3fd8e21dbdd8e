//! Generated keys. When a capture is replayed, the server generates other keys than in the recording. Statements that
//! contain recorded keys are therefore sent with the keys of this replay.
//!
//! A key has a slot if a later statement contains it. The slots are in an unnamed temporary file that is mapped into
//! memory. The system can write its pages to disk, so the memory of a replay does not depend on its length.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, ftruncate, open, unlink};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::tape::{Statement, take};

/// The slot number that means "no slot" on a tape.
const NONE: u32 = u32::MAX;
/// State of a slot to which no key has been written. The other states follow.
const UNSET: u64 = 0;
const NUMBER: u64 = 1;
const UUID: u64 = 2;
/// Length of a UUID as text.
const UUID_LENGTH: usize = 36;

/// The keys of a statement on a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementKeys<'a> {
    pub returned: Option<Returned>,
    replaced: &'a [u8],
}

/// The keys that a statement returns, one for each row that it inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Slot of the first row's key. The keys of the other rows have the next slots.
    pub slot: u32,
    /// Result column that contains the keys.
    pub column: u16,
    pub rows: u32,
}

/// A recorded key in a statement. The replay replaces it with the key that the server has generated in this replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Position of the key. With the extended protocol, it is the number of the parameter, from 1. With the simple
    /// protocol, it is the offset in the text, in bytes.
    pub position: u32,
    /// Length of the recorded value, in bytes.
    pub length: u32,
    pub slot: u32,
}

impl<'a> StatementKeys<'a> {
    /// Appends the keys of a statement to `out`.
    pub fn write(out: &mut Vec<u8>, returned: Option<Returned>, replaced: impl Iterator<Item = Replaced>) {
        let Returned { slot, column, rows } = returned.unwrap_or(Returned { slot: NONE, column: 0, rows: 0 });
        out.extend_from_slice(&slot.to_le_bytes());
        out.extend_from_slice(&column.to_le_bytes());
        out.extend_from_slice(&rows.to_le_bytes());
        for one in replaced {
            for field in [one.position, one.length, one.slot] {
                out.extend_from_slice(&field.to_le_bytes());
            }
        }
    }

    pub fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let slot = u32::from_le_bytes(take(&mut bytes)?);
        let column = u16::from_le_bytes(take(&mut bytes)?);
        let rows = u32::from_le_bytes(take(&mut bytes)?);
        let is_whole = bytes.len().is_multiple_of(3 * size_of::<u32>());
        let returned = (slot != NONE).then_some(Returned { slot, column, rows });
        is_whole.then_some(Self { returned, replaced: bytes })
    }

    /// Returns the recorded keys to replace, in the order of their position in the statement.
    pub fn replaced(&self) -> impl Iterator<Item = Replaced> + 'a {
        let mut rest = self.replaced;
        std::iter::from_fn(move || {
            let mut field = || Some(u32::from_le_bytes(take(&mut rest)?));
            Some(Replaced { position: field()?, length: field()?, slot: field()? })
        })
    }

    /// Whether the keys are valid: every slot is below `slots`, and every position exists in the statement. A position
    /// is an offset in `text`. Without `text`, it is the number of a parameter, at most `parameters`.
    pub fn fits(&self, slots: usize, text: Option<&[u8]>, parameters: u16) -> bool {
        let mut end = 0;
        let mut follows = |one: &Replaced| {
            let position = one.position as usize;
            let fits = match text {
                Some(text) => {
                    let is_behind = position >= end;
                    end = position.saturating_add(one.length as usize);
                    is_behind && end <= text.len()
                }
                None => (1..=usize::from(parameters)).contains(&position),
            };
            fits && (one.slot as usize) < slots
        };
        let has_slots = |one: Returned| one.rows > 0 && one.slot as usize + one.rows as usize <= slots;
        self.returned.is_none_or(has_slots) && self.replaced().all(|one| follows(&one))
    }
}

/// The keys of a replay.
#[derive(Debug)]
pub struct Keys {
    start: *mut std::ffi::c_void,
    slots: usize,
}

/// A slot: its state, and the key as a number of 128 bits.
type Slot = [AtomicU64; 3];

// SAFETY: all access is atomic.
unsafe impl Send for Keys {}
// SAFETY: all access to a slot is atomic.
unsafe impl Sync for Keys {}

impl Keys {
    /// Creates slots without keys.
    ///
    /// # Errors
    /// The directory of temporary files has no space, or no file can be created there.
    pub fn new(slots: usize) -> io::Result<Self> {
        if slots == 0 {
            return Ok(Self { start: std::ptr::NonNull::<Slot>::dangling().as_ptr().cast(), slots });
        }
        let folder = std::env::temp_dir();
        let file = match unnamed_file(&folder) {
            // Some file systems have no files without a name, such as NFS, and overlayfs before Linux 6.1.
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => removed_file(&folder)?,
            other => other?,
        };
        let length = slots * size_of::<Slot>();
        ftruncate(&file, length as u64)?;
        // If the disk becomes full, a write to a page without space would end the process (SIGBUS).
        match fallocate(&file, FallocateFlags::empty(), 0, length as u64) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            other => other?,
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping of a file that only this process has.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0)? };
        Ok(Self { start, slots })
    }

    fn slot(&self, slot: u32) -> Option<&Slot> {
        // SAFETY: the mapping has this many slots, is zeroed, and lives as long as `self`.
        let every = unsafe { std::slice::from_raw_parts(self.start.cast::<Slot>(), self.slots) };
        every.get(slot as usize)
    }

    /// Stores a key that the server returned. A value that is neither a number nor a UUID is ignored.
    pub fn set(&self, slot: u32, value: &[u8]) {
        let number = || std::str::from_utf8(value).ok()?.parse::<i64>().ok();
        let (state, key) = match (number(), uuid(value)) {
            (Some(number), _) => (NUMBER, number as u64 as u128),
            (None, Some(uuid)) => (UUID, uuid),
            (None, None) => return,
        };
        self.store(slot, state, key);
    }

    /// Stores a number that the server generated.
    pub fn set_number(&self, slot: u32, number: u64) {
        self.store(slot, NUMBER, number.into());
    }

    fn store(&self, slot: u32, state: u64, key: u128) {
        let Some([of_state, low, high]) = self.slot(slot) else { return };
        low.store(key as u64, Ordering::Relaxed);
        high.store((key >> 64) as u64, Ordering::Relaxed);
        of_state.store(state, Ordering::Release);
    }

    /// Appends the key of a slot to `out`. Returns false if the server has not returned it.
    pub fn append(&self, slot: u32, out: &mut Vec<u8>) -> bool {
        let Some([state, low, high]) = self.slot(slot) else { return false };
        let state = state.load(Ordering::Acquire);
        let (low, high) = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
        match state {
            UNSET => return false,
            NUMBER => out.extend_from_slice(itoa::Buffer::new().format(low as i64).as_bytes()),
            _ => append_uuid(u128::from(high) << 64 | u128::from(low), out),
        }
        true
    }
}

/// Writes statements with the keys of a replay in place of the recorded ones.
#[derive(Debug)]
pub struct KeyWriter<'p> {
    keys: &'p Keys,
    /// Number of values that were replaced with keys of this replay.
    pub replaced: u64,
    /// Number of values that were written as recorded, because the server had not yet generated their keys.
    pub missing: u64,
}

impl<'p> KeyWriter<'p> {
    pub fn new(keys: &'p Keys) -> Self {
        Self { keys, replaced: 0, missing: 0 }
    }

    pub fn keys(&self) -> &'p Keys {
        self.keys
    }

    /// Appends the text of a statement.
    pub fn text(&mut self, statement: &Statement, out: &mut Vec<u8>) {
        let (text, mut written) = (statement.text, 0);
        for one in statement.keys().iter().flat_map(StatementKeys::replaced) {
            let (start, end) = (one.position as usize, (one.position + one.length) as usize);
            out.extend_from_slice(&text[written..start]);
            self.key(one.slot, &text[start..end], out);
            written = end;
        }
        out.extend_from_slice(&text[written..]);
    }

    /// Calls `each` with the value of each parameter, and None for NULL.
    pub fn values(&mut self, statement: &Statement, mut each: impl FnMut(Option<&[u8]>)) {
        let keys = statement.keys();
        let mut replaced = keys.iter().flat_map(StatementKeys::replaced).peekable();
        let (mut rest, mut key) = (statement.values, Vec::new());
        for number in 1..=u32::from(statement.parameters) {
            let Some((head, after)) = rest.split_first_chunk::<4>() else { break };
            let length = usize::try_from(i32::from_be_bytes(*head)).ok();
            let Some((value, after)) = after.split_at_checked(length.unwrap_or(0)) else { break };
            rest = after;
            match (replaced.next_if(|one| one.position == number), length) {
                (_, None) => each(None),
                (None, _) => each(Some(value)),
                (Some(one), _) => {
                    key.clear();
                    self.key(one.slot, value, &mut key);
                    each(Some(&key));
                }
            }
        }
    }

    fn key(&mut self, slot: u32, recorded: &[u8], out: &mut Vec<u8>) {
        if self.keys.append(slot, out) {
            self.replaced += 1;
        } else {
            out.extend_from_slice(recorded);
            self.missing += 1;
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if self.slots > 0 {
            // SAFETY: `new` mapped the memory, and nothing borrows it any more.
            let _ = unsafe { munmap(self.start, self.slots * size_of::<Slot>()) };
        }
    }
}

fn unnamed_file(folder: &Path) -> rustix::io::Result<OwnedFd> {
    open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
}

/// Creates a file and removes its name.
fn removed_file(folder: &Path) -> rustix::io::Result<OwnedFd> {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("ironbench-keys-{}-{number}", std::process::id()));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    unlink(&path)?;
    Ok(file)
}

fn uuid(text: &[u8]) -> Option<u128> {
    let is_dash = |position: usize| matches!(position, 8 | 13 | 18 | 23);
    if text.len() != UUID_LENGTH {
        return None;
    }
    text.iter().enumerate().try_fold(0, |sum: u128, (position, byte)| match is_dash(position) {
        true => (*byte == b'-').then_some(sum),
        false => char::from(*byte).to_digit(16).map(|digit| sum << 4 | u128::from(digit)),
    })
}

fn append_uuid(uuid: u128, out: &mut Vec<u8>) {
    let digits = format!("{uuid:032x}");
    for (number, part) in
        [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].iter().enumerate()
    {
        if number > 0 {
            out.push(b'-');
        }
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_sent_as_the_server_returned_it() {
        let keys = Keys::new(3).unwrap();
        let sent = |slot| {
            let mut out = Vec::new();
            keys.append(slot, &mut out).then(|| String::from_utf8(out).unwrap())
        };
        assert_eq!((sent(0), sent(7)), (None, None));
        for value in ["1", "-9223372036854775808", "9223372036854775807", "0f8fad5b-d9cb-469f-a165-70867728950e"] {
            keys.set(2, value.as_bytes());
            assert_eq!(sent(2).as_deref(), Some(value));
        }
        for value in ["", "x", "1.5", "0f8fad5b-d9cb-469f-a165-70867728950", "0f8fad5b+d9cb-469f-a165-70867728950e"] {
            keys.set(1, value.as_bytes());
            assert_eq!(sent(1), None);
        }
        assert!(!Keys::new(0).unwrap().append(0, &mut Vec::new()));
    }

    #[test]
    fn a_file_system_without_unnamed_files_is_enough() {
        let folder = std::env::temp_dir().join(format!("ironbench-keys-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (one, other) = (removed_file(&folder).unwrap(), removed_file(&folder).unwrap());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        rustix::io::write(&one, b"key").unwrap();
        assert_eq!([&one, &other].map(|file| rustix::fs::fstat(file).unwrap().st_size), [3, 0]);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn keys_outside_of_their_statement_or_replay_do_not_fit() {
        let of = |returned, replaced: &[(u32, u32, u32)]| {
            let mut bytes = Vec::new();
            let replaced = replaced.iter().map(|&(position, length, slot)| Replaced { position, length, slot });
            StatementKeys::write(&mut bytes, returned, replaced);
            bytes
        };
        let fits = |bytes: &[u8], text: Option<&[u8]>| StatementKeys::read(bytes).unwrap().fits(2, text, 1);
        let returned = |slot, rows| Some(Returned { slot, column: 3, rows });
        assert!(fits(&of(returned(1, 1), &[(7, 1, 0), (8, 2, 1)]), Some(b"select 1234")));
        assert!(fits(&of(returned(0, 2), &[]), None) && !fits(&of(returned(1, 2), &[]), None));
        assert!(fits(&of(None, &[(1, 9, 0)]), None));
        for replaced in [[(7, 5, 0), (0, 0, 0)], [(7, 2, 0), (8, 1, 0)], [(0, 1, 2), (1, 1, 0)]] {
            assert!(!fits(&of(None, &replaced), Some(b"select 1234")));
        }
        assert!(!fits(&of(returned(2, 1), &[]), None) && !fits(&of(None, &[(0, 1, 0)]), None));
        assert_eq!(StatementKeys::read(b"123456789"), None);
    }

    proptest! {
        #[test]
        fn the_keys_of_a_statement_are_read_as_written(
            returned in proptest::option::of((0..NONE, any::<u16>(), any::<u32>())), fields in any::<Vec<(u32, u32, u32)>>()
        ) {
            let replaced: Vec<Replaced> =
                fields.iter().map(|&(position, length, slot)| Replaced { position, length, slot }).collect();
            let returned = returned.map(|(slot, column, rows)| Returned { slot, column, rows });
            let mut bytes = Vec::new();
            StatementKeys::write(&mut bytes, returned, replaced.iter().copied());
            let read = StatementKeys::read(&bytes).unwrap();
            prop_assert_eq!(read.returned, returned);
            prop_assert_eq!(read.replaced().collect::<Vec<_>>(), replaced);
        }
    }
}
