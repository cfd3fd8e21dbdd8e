//! What the kernel asks, and how it is answered (Linux, include/uapi/linux/fuse.h). Its structures are read as words of 64
//! bits, of which the first half is the lower one: little-endian machines alone come here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fuser::{FileAttr, FileType};

use super::super::exchange::{Answer, Exchange, Held};
use super::super::tree;
use super::slot::Slot;

const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const FALLOCATE: u32 = 43;
/// `fuse_dirent` without its name.
const ENTRY: usize = 24;

/// At once: the device takes no time.
pub fn answer(exchange: &Exchange, slot: Slot) {
    let (inode, partition) = (slot.inode(), tree::partition(exchange, slot.inode()));
    // `fuse_read_in`, `fuse_write_in` and `fuse_fallocate_in` begin alike: handle, offset, length.
    let (offset, length) = (slot.own(1), slot.own(2));
    match (slot.opcode(), partition) {
        (READ, Some(partition)) => at_once(exchange, exchange.read(partition, offset, length as u32, slot)),
        (WRITE, Some(partition)) => at_once(exchange, exchange.write(partition, offset, slot.payload(), slot)),
        (FSYNC, Some(partition)) => at_once(exchange, exchange.flush(partition, slot)),
        (FALLOCATE, Some(partition)) if discards(slot.own(3) as i32) => {
            exchange.discard(partition, offset, length, slot);
        }
        (FALLOCATE, _) => slot.refuse(libc::EOPNOTSUPP),
        (READ, None) if tree::is_counters(inode) => slot.data(&tree::counters(exchange, offset, length as u32)),
        (READ | WRITE, None) => slot.refuse(libc::EIO),
        (LOOKUP, _) => {
            let name = slot.payload().split(|&byte| byte == 0).next().unwrap_or_default();
            match tree::found(exchange, inode, OsStr::from_bytes(name)) {
                Some(found) => slot.data(&entry(&found)),
                None => slot.refuse(libc::ENOENT),
            }
        }
        (GETATTR, _) => match tree::attributes(exchange, inode) {
            Some(found) => slot.data(&attributes(&found)),
            None => slot.refuse(libc::ENOENT),
        },
        (OPEN, _) => slot.data(&words(&[0, u64::from(tree::opened().bits())])),
        (OPENDIR, _) => slot.data(&words(&[0, 0])),
        (READDIR, _) => slot.data(&directory(exchange, offset, length as u32)),
        (RELEASE | RELEASEDIR | FSYNC, _) => slot.done(),
        // Five counts, block size and longest name, fragment size; the rest is spare.
        (STATFS, _) => slot.data(&words(&[0, 0, 0, 0, 0, 512 | 255 << 32, 0, 0, 0, 0])),
        _ => slot.refuse(libc::ENOSYS),
    }
}

/// Nothing is to be held, but whoever asked must have an answer.
fn at_once(exchange: &Exchange, held: Option<Held<Slot>>) {
    if let Some(held) = held {
        exchange.answer(held, 0);
    }
}

fn discards(mode: i32) -> bool {
    mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `fuse_entry_out`: inode and generation, how long name and attributes are good, attributes.
fn entry(found: &FileAttr) -> Vec<u8> {
    let forever = tree::FOREVER.as_secs();
    let mut out = words(&[found.ino.0, 0, forever, forever, 0]);
    out.extend(attributes_alone(found));
    out
}

/// `fuse_attr_out`.
fn attributes(found: &FileAttr) -> Vec<u8> {
    let mut out = words(&[tree::FOREVER.as_secs(), 0]);
    out.extend(attributes_alone(found));
    out
}

/// `fuse_attr`: inode, size, blocks, three times of no meaning here, then halves.
fn attributes_alone(found: &FileAttr) -> Vec<u8> {
    let mode = kind(found.kind) | u32::from(found.perm);
    let mut out = words(&[found.ino.0, found.size, found.blocks, 0, 0, 0]);
    let halves = [0, 0, 0, mode, found.nlink, found.uid, found.gid, found.rdev, found.blksize, 0];
    out.extend(halves.iter().flat_map(|half| half.to_ne_bytes()));
    out
}

fn kind(kind: FileType) -> u32 {
    if kind == FileType::Directory { libc::S_IFDIR } else { libc::S_IFREG }
}

/// `fuse_dirent`s from a place on, as many as fit; each begins at a multiple of 8.
fn directory(exchange: &Exchange, from: u64, size: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, (inode, what, name)) in tree::entries(exchange).enumerate().skip(from as usize) {
        let end = (out.len() + ENTRY + name.len()).next_multiple_of(8);
        if end > size as usize {
            break;
        }
        // The type is that of readdir(3): the top four bits of the mode.
        let halves = (name.len() as u64) | u64::from(kind(what) >> 12) << 32;
        out.extend(words(&[inode, place as u64 + 1, halves]));
        out.extend(name.as_bytes());
        out.resize(end, 0);
    }
    out
}
