//! The device as files: one per partition, and `counters`. The kernel's loop driver makes block devices of them.

use std::ffi::OsStr;
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileType, FopenFlags, INodeNo, InitFlags, KernelConfig};

use super::exchange::Exchange;

/// Nothing about these files ever changes.
pub const FOREVER: Duration = Duration::from_secs(1 << 30);
/// A request has so many bytes at most (Linux: 256 pages, `fs.fuse.max_pages_limit`).
pub const LONGEST: u32 = 1 << 20;
const ROOT: u64 = 1;
const COUNTERS: u64 = 2;
const FIRST_PARTITION: u64 = 3;
const COUNTERS_NAME: &str = "counters";
/// Requests that the kernel may have under way at once, beyond those of waiting threads.
const BACKGROUND: u16 = 256;

/// What is asked of the kernel at the start.
pub fn configure(config: &mut KernelConfig) {
    // Older kernels lack it: then writes of one file wait for each other.
    let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
    let _ = config.set_max_background(BACKGROUND);
    let _ = config.set_congestion_threshold(BACKGROUND);
    let _ = config.set_max_write(LONGEST);
}

/// How files are opened. Without the second, writes to one file wait for each other.
pub fn opened() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
}

pub fn is_counters(inode: u64) -> bool {
    inode == COUNTERS
}

/// The bytes of `counters` as they are now, from `offset`, at most `size`.
pub fn counters(exchange: &Exchange, offset: u64, size: u32) -> Vec<u8> {
    let mut text = exchange.counters();
    text.drain(..usize::try_from(offset).unwrap_or(usize::MAX).min(text.len()));
    text.truncate(size as usize);
    text
}

pub fn partition(exchange: &Exchange, inode: u64) -> Option<usize> {
    let place = usize::try_from(inode.checked_sub(FIRST_PARTITION)?).ok()?;
    (place < exchange.partitions().len()).then_some(place)
}

pub fn attributes(exchange: &Exchange, inode: u64) -> Option<FileAttr> {
    let (kind, size, perm) = match inode {
        ROOT => (FileType::Directory, 0, 0o700),
        // As other files whose size nobody knows before they are read (proc(5)).
        COUNTERS => (FileType::RegularFile, 0, 0o444),
        _ => (FileType::RegularFile, exchange.partitions()[partition(exchange, inode)?].length, 0o600),
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

/// The file of that name in a directory.
pub fn found(exchange: &Exchange, parent: u64, name: &OsStr) -> Option<FileAttr> {
    let mut files = files(exchange);
    let (inode, _, _) = files.find(|(_, _, known)| parent == ROOT && OsStr::new(known) == name)?;
    attributes(exchange, inode)
}

/// What the one directory has, in order.
pub fn entries(exchange: &Exchange) -> impl Iterator<Item = (u64, FileType, &str)> {
    [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, "..")].into_iter().chain(files(exchange))
}

fn files(exchange: &Exchange) -> impl Iterator<Item = (u64, FileType, &str)> {
    let partitions = exchange.partitions().iter().enumerate();
    let partitions = partitions.map(|(place, one)| (FIRST_PARTITION + place as u64, one.name.as_str()));
    [(COUNTERS, COUNTERS_NAME)].into_iter().chain(partitions).map(|(inode, name)| (inode, FileType::RegularFile, name))
}
