//! The FUSE file system. A thread reads requests from `/dev/fuse`, and any thread may answer them (fuse(4)).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

use fuser::{
    BackingId, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};

use super::due::Due;
use super::exchange::{Answer, Cleared, Exchange, Held};
use super::tree;

#[derive(Debug)]
pub enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Empty(ReplyEmpty),
}

impl Answer for Reply {
    fn data(self, bytes: &[u8]) {
        match self {
            Self::Read(reply) => reply.data(bytes),
            other => other.refuse(libc::EIO),
        }
    }

    fn written(self, length: u32) {
        match self {
            Self::Write(reply) => reply.written(length),
            other => other.refuse(libc::EIO),
        }
    }

    fn done(self) {
        match self {
            Self::Empty(reply) => reply.ok(),
            other => other.refuse(libc::EIO),
        }
    }

    fn refuse(self, error: i32) {
        let error = Errno::from_i32(error);
        match self {
            Self::Read(reply) => reply.error(error),
            Self::Write(reply) => reply.error(error),
            Self::Empty(reply) => reply.error(error),
        }
    }
}

/// Translates FUSE requests for `Exchange`, which provides the answers.
#[derive(Debug)]
pub struct Files {
    exchange: Arc<Exchange>,
    due: Due<Held<Reply>>,
    /// Whether the kernel passes requests through to the files of the images.
    passes: Arc<AtomicBool>,
    /// Files to which the kernel passes requests through, by inode. The files must live as long as this value.
    passed: Mutex<HashMap<u64, BackingId>>,
    counters: tree::Texts,
}

impl Files {
    pub fn new(exchange: Arc<Exchange>, passes: Arc<AtomicBool>) -> ironbench_core::Result<Self> {
        let theirs = Arc::clone(&exchange);
        let waking = Arc::clone(&exchange);
        let due = Due::start(
            exchange.clock(),
            move |idle_ns| waking.ahead(idle_ns),
            move |held, ahead| theirs.answer(held, ahead),
        )?;
        Ok(Self { exchange, due, passes, passed: Mutex::default(), counters: tree::Texts::default() })
    }

    fn partition(&self, inode: INodeNo) -> Option<usize> {
        tree::partition(&self.exchange, inode.0)
    }

    fn held(&self, held: Option<Held<Reply>>) {
        if let Some(held) = held {
            self.due.hold(held.arrival(), held.due(), held);
        }
    }
}

impl Filesystem for Files {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        tree::configure(config);
        if self.exchange.shared(0).is_some() {
            let granted = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
            self.passes.store(granted && config.set_max_stack_depth(1).is_ok(), Release);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match tree::found(&self.exchange, parent.0, name) {
            Some(attributes) => reply.entry(&tree::FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match tree::attributes(&self.exchange, inode.0) {
            Some(attributes) => reply.attr(&tree::FOREVER, &attributes),
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
        for (place, (inode, kind, name)) in tree::entries(&self.exchange).enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if tree::is_counters(inode.0) {
            return reply.opened(FileHandle(self.counters.open()), tree::opened());
        }
        let ours = |reply: ReplyOpen| reply.opened(FileHandle(0), tree::opened());
        let file = self.partition(inode).and_then(|partition| self.exchange.shared(partition));
        let Some(file) = file.filter(|_| self.passes.load(Acquire)) else { return ours(reply) };
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match passed.remove(&inode.0) {
            Some(id) => id,
            None => match reply.open_backing(file) {
                Ok(id) => id,
                // All files of a mount must be served in the same way. If passing through fails for the first file, it
                // is not used for the others either.
                Err(_) if passed.is_empty() => {
                    self.passes.store(false, Release);
                    return ours(reply);
                }
                Err(_) => return reply.error(Errno::EIO),
            },
        };
        reply.opened_passthrough(FileHandle(0), FopenFlags::empty(), passed.entry(inode.0).or_insert(id));
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if tree::is_counters(inode.0) {
            return reply.data(&self.counters.read(handle.0, offset, size, || self.exchange.counters()));
        }
        match self.partition(inode) {
            Some(partition) => self.held(self.exchange.read(partition, offset, size, Reply::Read(reply))),
            None => reply.error(Errno::EIO),
        }
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if tree::is_counters(inode.0) {
            self.counters.close(handle.0);
        }
        reply.ok();
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
            Some(partition) => self.held(self.exchange.write(partition, offset, data, Reply::Write(reply))),
            None => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data: bool, reply: ReplyEmpty) {
        if self.passes.load(Acquire) {
            return reply.error(Errno::ENOSYS); // nothing to do, and the kernel does not ask again
        }
        match self.partition(inode) {
            Some(partition) => self.held(self.exchange.flush(partition, Reply::Empty(reply))),
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
            // The loop driver zeroes with a discard whenever possible (Linux: drivers/block/loop.c, `lo_fallocate`).
            Some(partition) if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 => {
                let zeroes = mode & libc::FALLOC_FL_ZERO_RANGE != 0;
                let how = if zeroes { Cleared::Zeroed } else { Cleared::Discarded };
                self.held(self.exchange.clear(partition, offset, length, how, Reply::Empty(reply)));
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
