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

use super::delay_queue::DelayQueue;
use super::request_handler::{Clearing, PendingReply, RequestHandler, Responder};
use super::tree;

/// The reply to a FUSE request.
#[derive(Debug)]
pub enum FuseReply {
    Read(ReplyData),
    Write(ReplyWrite),
    Empty(ReplyEmpty),
}

impl Responder for FuseReply {
    fn send_data(self, bytes: &[u8]) {
        match self {
            Self::Read(reply) => reply.data(bytes),
            other => other.refuse(libc::EIO),
        }
    }

    fn confirm_write(self, length: u32) {
        match self {
            Self::Write(reply) => reply.written(length),
            other => other.refuse(libc::EIO),
        }
    }

    fn confirm(self) {
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

/// Translates FUSE requests for `RequestHandler`, which provides the answers.
#[derive(Debug)]
pub struct PartitionFiles {
    handler: Arc<RequestHandler>,
    queue: DelayQueue<PendingReply<FuseReply>>,
    /// Whether the kernel passes requests through to the files of the images.
    passthrough: Arc<AtomicBool>,
    /// Files to which the kernel passes requests through, by inode. The files must live as long as this value.
    passthrough_files: Mutex<HashMap<u64, BackingId>>,
    counters: tree::CounterReaders,
}

impl PartitionFiles {
    pub fn new(handler: Arc<RequestHandler>, passthrough: Arc<AtomicBool>) -> ironbench_core::Result<Self> {
        let (for_delay, for_replies) = (Arc::clone(&handler), Arc::clone(&handler));
        let queue = DelayQueue::start(
            handler.clock(),
            move |idle_ns| for_delay.send_ahead_ns(idle_ns),
            move |pending, ahead| for_replies.send_reply(pending, ahead),
        )?;
        Ok(Self {
            handler,
            queue,
            passthrough,
            passthrough_files: Mutex::default(),
            counters: tree::CounterReaders::default(),
        })
    }

    fn partition(&self, inode: INodeNo) -> Option<usize> {
        tree::partition(&self.handler, inode.0)
    }

    /// Queues a delayed reply. With None, the reply was already sent.
    fn queue_reply(&self, pending: Option<PendingReply<FuseReply>>) {
        if let Some(pending) = pending {
            self.queue.push(pending.arrival(), pending.due(), pending);
        }
    }
}

impl Filesystem for PartitionFiles {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        tree::configure(config);
        if self.handler.passthrough_file(0).is_some() {
            let granted = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
            self.passthrough.store(granted && config.set_max_stack_depth(1).is_ok(), Release);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match tree::lookup(&self.handler, parent.0, name) {
            Some(attributes) => reply.entry(&tree::ATTRIBUTE_TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match tree::attributes(&self.handler, inode.0) {
            Some(attributes) => reply.attr(&tree::ATTRIBUTE_TTL, &attributes),
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
        for (index, (inode, kind, name)) in tree::entries(&self.handler).enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if tree::is_counters(inode.0) {
            return reply.opened(FileHandle(self.counters.open()), tree::open_flags());
        }
        let ours = |reply: ReplyOpen| reply.opened(FileHandle(0), tree::open_flags());
        let file = self.partition(inode).and_then(|partition| self.handler.passthrough_file(partition));
        let Some(file) = file.filter(|_| self.passthrough.load(Acquire)) else { return ours(reply) };
        let mut passthrough_files = self.passthrough_files.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match passthrough_files.remove(&inode.0) {
            Some(id) => id,
            None => match reply.open_backing(file) {
                Ok(id) => id,
                // All files of a mount must be served in the same way. If passing through fails for the first file, it
                // is not used for the others either.
                Err(_) if passthrough_files.is_empty() => {
                    self.passthrough.store(false, Release);
                    return ours(reply);
                }
                Err(_) => return reply.error(Errno::EIO),
            },
        };
        reply.opened_passthrough(FileHandle(0), FopenFlags::empty(), passthrough_files.entry(inode.0).or_insert(id));
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
            return reply.data(&self.counters.read(handle.0, offset, size, || self.handler.counters()));
        }
        match self.partition(inode) {
            Some(partition) => self.queue_reply(self.handler.read(partition, offset, size, FuseReply::Read(reply))),
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
            Some(partition) => self.queue_reply(self.handler.write(partition, offset, data, FuseReply::Write(reply))),
            None => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data: bool, reply: ReplyEmpty) {
        if self.passthrough.load(Acquire) {
            return reply.error(Errno::ENOSYS); // nothing to do, and the kernel does not ask again
        }
        match self.partition(inode) {
            Some(partition) => self.queue_reply(self.handler.flush(partition, FuseReply::Empty(reply))),
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
                let how = if zeroes { Clearing::Zero } else { Clearing::Discard };
                self.queue_reply(self.handler.clear(partition, offset, length, how, FuseReply::Empty(reply)));
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
