//! Files of the device: one per partition, and `counters`. The kernel's loop driver turns the files of the partitions
//! into block devices.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, FopenFlags, INodeNo, InitFlags, KernelConfig};

use super::request_handler::RequestHandler;

/// Time for which the kernel may cache attributes. The attributes of these files never change.
pub const ATTRIBUTE_TTL: Duration = Duration::from_secs(1 << 30);
/// Maximum size of a request (Linux: 256 pages, `fs.fuse.max_pages_limit`).
pub const MAX_REQUEST: u32 = 1 << 20;
const ROOT: u64 = 1;
const COUNTERS: u64 = 2;
const FIRST_PARTITION: u64 = 3;
const COUNTERS_NAME: &str = "counters";
/// Maximum number of requests in flight for which no thread waits. Requests for which a thread waits are not limited.
const MAX_BACKGROUND: u16 = 256;

/// Negotiates capabilities and limits with the kernel.
pub fn configure(config: &mut KernelConfig) {
    // On older kernels, writes to the same file wait for each other without this flag.
    let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
    let _ = config.set_max_background(MAX_BACKGROUND);
    let _ = config.set_congestion_threshold(MAX_BACKGROUND);
    let _ = config.set_max_write(MAX_REQUEST);
}

/// Returns the flags for open files. With the second flag, writes to the same file need not wait for each other.
pub fn open_flags() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
}

pub fn is_counters(inode: u64) -> bool {
    inode == COUNTERS
}

/// Texts of open `counters` files. The text is generated when a reader starts at offset 0, so that all its values are
/// from the same moment. The files in `/proc` do the same (Linux: Documentation/filesystems/seq_file.rst).
#[derive(Debug, Default)]
pub struct CounterReaders(Mutex<OpenReaders>);

#[derive(Debug, Default)]
struct OpenReaders {
    /// Texts by handle.
    texts: HashMap<u64, Vec<u8>>,
    /// Number of handles issued.
    handles: u64,
}

impl CounterReaders {
    /// Returns a new handle, from 1.
    pub fn open(&self) -> u64 {
        self.with(|open| {
            open.handles += 1;
            open.handles
        })
    }

    /// Returns up to `size` bytes of the text from `offset` on. `now` generates the text.
    pub fn read(&self, handle: u64, offset: u64, size: u32, now: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        self.with(|open| {
            let text = open.texts.entry(handle).or_default();
            if offset == 0 {
                *text = now();
            }
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
            let to = from.saturating_add(size as usize).min(text.len());
            text[from..to].to_vec()
        })
    }

    pub fn close(&self, handle: u64) {
        self.with(|open| open.texts.remove(&handle));
    }

    fn with<T>(&self, work: impl FnOnce(&mut OpenReaders) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub fn partition(handler: &RequestHandler, inode: u64) -> Option<usize> {
    let place = usize::try_from(inode.checked_sub(FIRST_PARTITION)?).ok()?;
    (place < handler.partitions().len()).then_some(place)
}

pub fn attributes(handler: &RequestHandler, inode: u64) -> Option<FileAttr> {
    let (kind, size, perm) = match inode {
        ROOT => (FileType::Directory, 0, 0o700),
        // The size is unknown before the file is read. As for the files in `/proc`, it is therefore given as 0
        // (proc(5)).
        COUNTERS => (FileType::RegularFile, 0, 0o444),
        _ => (FileType::RegularFile, handler.partitions()[partition(handler, inode)?].length, 0o600),
    };
    let time = SystemTime::UNIX_EPOCH;
    Some(FileAttr {
        ino: INodeNo(inode),
        size,
        blocks: size / 512,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

/// Looks up a file of a directory by its name.
pub fn lookup(handler: &RequestHandler, parent: u64, name: &OsStr) -> Option<FileAttr> {
    let mut files = files(handler);
    let (inode, _, _) = files.find(|(_, _, known)| parent == ROOT && OsStr::new(known) == name)?;
    attributes(handler, inode)
}

/// Lists the files of the only directory, in order.
pub fn entries(handler: &RequestHandler) -> impl Iterator<Item = (u64, FileType, &str)> {
    [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, "..")].into_iter().chain(files(handler))
}

fn files(handler: &RequestHandler) -> impl Iterator<Item = (u64, FileType, &str)> {
    let partitions = handler.partitions().iter().enumerate();
    let partitions = partitions.map(|(place, one)| (FIRST_PARTITION + place as u64, one.name.as_str()));
    [(COUNTERS, COUNTERS_NAME)].into_iter().chain(partitions).map(|(inode, name)| (inode, FileType::RegularFile, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function whose texts become longer with each call.
    fn growing() -> impl FnMut() -> Vec<u8> {
        let mut count = 5;
        move || {
            count += 5;
            vec![count; count as usize]
        }
    }

    #[test]
    fn a_text_that_is_read_in_pieces_is_of_one_moment() {
        let (texts, mut now) = (CounterReaders::default(), growing());
        let handle = texts.open();
        let pieces = [0, 4, 8, 12].map(|offset| texts.read(handle, offset, 4, &mut now));
        assert_eq!(pieces.concat(), [10; 10]);
        assert_eq!(texts.read(handle, 0, 100, &mut now), [15; 15], "from the beginning it is made anew");
    }

    #[test]
    fn readers_at_the_same_time_have_texts_of_their_own_until_they_close() {
        let (texts, mut now) = (CounterReaders::default(), growing());
        let (one, other) = (texts.open(), texts.open());
        assert_eq!((texts.read(one, 0, 8, &mut now), texts.read(other, 0, 8, &mut now)), (vec![10; 8], vec![15; 8]));
        assert_eq!((texts.read(one, 8, 8, &mut now), texts.read(other, 8, 8, &mut now)), (vec![10; 2], vec![15; 7]));
        texts.close(one);
        assert_eq!((texts.read(one, 8, 8, &mut now), texts.open()), (vec![], 3));
    }
}
