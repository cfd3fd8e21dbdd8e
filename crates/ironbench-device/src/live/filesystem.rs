//! The device as files: one per partition, and `counters`. The kernel's loop driver makes block devices of them.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};

use super::exchange::{Answer, Exchange};

/// Nothing about these files ever changes.
const FOREVER: Duration = Duration::from_secs(1 << 30);
const ROOT: u64 = 1;
const COUNTERS: u64 = 2;
const FIRST_PARTITION: u64 = 3;
const COUNTERS_NAME: &str = "counters";
/// Requests that the kernel may have under way at once, beyond those of waiting threads.
const BACKGROUND: u16 = 256;

/// Answers come from `Exchange`; this only translates.
#[derive(Debug)]
pub struct Files(pub Arc<Exchange>);

impl Files {
    fn partition(&self, inode: INodeNo) -> Option<usize> {
        let place = usize::try_from(inode.0.checked_sub(FIRST_PARTITION)?).ok()?;
        (place < self.0.partitions().len()).then_some(place)
    }

    fn attributes(&self, inode: u64) -> Option<FileAttr> {
        let (kind, size, perm) = match inode {
            ROOT => (FileType::Directory, 0, 0o700),
            // As other files whose size nobody knows before they are read (proc(5)).
            COUNTERS => (FileType::RegularFile, 0, 0o444),
            _ => {
                let place = self.partition(INodeNo(inode))?;
                (FileType::RegularFile, self.0.partitions()[place].length, 0o600)
            }
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

    fn entries(&self) -> impl Iterator<Item = (u64, FileType, &str)> {
        let partitions = self.0.partitions().iter().enumerate();
        let partitions = partitions.map(|(place, one)| (FIRST_PARTITION + place as u64, one.name.as_str()));
        [(COUNTERS, COUNTERS_NAME)]
            .into_iter()
            .chain(partitions)
            .map(|(inode, name)| (inode, FileType::RegularFile, name))
    }
}

impl Filesystem for Files {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Older kernels lack the second: then writes of one file wait for each other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(BACKGROUND);
        let _ = config.set_congestion_threshold(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.entries().find(|(_, _, known)| parent.0 == ROOT && OsStr::new(known) == name);
        match found.and_then(|(inode, _, _)| self.attributes(inode)) {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode.0) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let dots = [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, "..")];
        let all = dots.into_iter().chain(self.entries());
        for (place, (inode, kind, name)) in all.enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // Without the second, writes to one file wait for each other.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if inode.0 == COUNTERS {
            let text = self.0.counters();
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
            let end = start.saturating_add(size as usize).min(text.len());
            return reply.data(&text[start..end]);
        }
        match self.partition(inode) {
            Some(partition) => self.0.read(partition, offset, size, Answer::Read(reply)),
            None => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.partition(inode) {
            Some(partition) => self.0.write(partition, offset, data, Answer::Write(reply)),
            None => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data: bool, reply: ReplyEmpty) {
        match self.partition(inode) {
            Some(partition) => self.0.flush(partition, Answer::Done(reply)),
            None => reply.ok(),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self.partition(inode) {
            Some(partition) if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 => {
                self.0.discard(partition, offset, length, Answer::Done(reply));
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
