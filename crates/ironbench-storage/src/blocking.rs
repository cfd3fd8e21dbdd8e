//! Threads that do one I/O at a time by ordinary system calls. These threads are used for synced writes, and if
//! io_uring is not available.

use std::io;
use std::os::fd::RawFd;

use ironbench_core::measure::clock;

use super::buffer::Buffer;
use super::plan::{Pass, Sync};
use super::record::Recording;
use super::sequence::IoSequence;
use super::threads::ThreadContext;
use ironbench_core::SplitMix64;

pub struct Blocking {
    file: RawFd,
    buffer: Buffer,
    sync: Sync,
    evict: bool,
}

impl Blocking {
    pub fn prepare(pass: &Pass, file: RawFd, stream: u64) -> Self {
        let mut random = SplitMix64::new(pass.seed.wrapping_add(stream));
        let buffer = Buffer::new(pass, &mut random);
        Self { file, buffer, sync: pass.sync, evict: pass.evict }
    }

    /// Runs I/Os until `context` says to stop.
    pub fn run(
        mut self,
        mut sequence: IoSequence,
        context: &ThreadContext,
        recording: &mut Recording,
    ) -> io::Result<()> {
        let mut stamps = SplitMix64::new(context.start ^ self.buffer.as_ptr() as u64);
        let mut began = context.start;
        while let Some(next) = sequence.next() {
            if next.wraps && self.evict {
                evict(self.file)?;
                began = clock::now();
            }
            if next.reads {
                self.read(next.offset)?;
            } else {
                self.buffer.stamp(&mut stamps);
                self.write(next.offset)?;
            }
            let now = clock::now();
            recording.ended(next.reads, now - began);
            recording.counted(now - context.start, 1);
            if !context.must_continue(now, 1) {
                break;
            }
            began = now;
        }
        Ok(())
    }

    fn read(&mut self, offset: u64) -> io::Result<()> {
        let length = self.buffer.len();
        let start = self.buffer.as_mut_ptr();
        // SAFETY: the buffer has `length` bytes.
        whole(length, || unsafe { libc::pread(self.file, start.cast(), length, offset as i64) })
    }

    fn write(&mut self, offset: u64) -> io::Result<()> {
        let length = self.buffer.len();
        let start = self.buffer.as_ptr();
        // SAFETY: the buffer has `length` bytes.
        whole(length, || unsafe { libc::pwrite(self.file, start.cast(), length, offset as i64) })?;
        // SAFETY: both calls take only a descriptor.
        let done = match self.sync {
            Sync::None => 0,
            Sync::Fsync => unsafe { libc::fsync(self.file) },
            Sync::Fdatasync => unsafe { libc::fdatasync(self.file) },
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Makes a call that must transfer `length` bytes, and repeats it if a signal interrupted it.
fn whole(length: usize, mut call: impl FnMut() -> isize) -> io::Result<()> {
    loop {
        match call() {
            n if n == length as isize => return Ok(()),
            n if n >= 0 => {
                let cause = format!("only {n} bytes of a block were transferred");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cause));
            }
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Flushes the file's data to stable storage.
pub fn fsync(file: RawFd) -> io::Result<()> {
    // SAFETY: the call takes only a descriptor.
    if unsafe { libc::fsync(file) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Evicts the file from the page cache. Dirty pages stay.
pub fn evict(file: RawFd) -> io::Result<()> {
    // SAFETY: the call takes a descriptor and numbers.
    match unsafe { libc::posix_fadvise(file, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
