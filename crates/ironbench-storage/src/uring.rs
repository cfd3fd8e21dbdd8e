//! A thread that keeps `depth` I/Os in flight with io_uring.
//!
//! Each round is one system call. This call submits the I/Os that were started since the last round, and waits if there
//! is no completion. A round handles at most four completions. Therefore, even if a device completes many I/Os at once,
//! others are always in flight. Buffers and file are registered (io_uring_register(2)), so that the kernel need not pin
//! pages for each I/O. The clock is read once per round. The time of an I/O is from the round that submitted it to the
//! round that handled its completion.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};
use ironbench_core::measure::clock;
use ironbench_core::measure::cpu::CpuTime;

use super::buffer::Buffer;
use super::plan::Pass;
use super::record::Recording;
use super::sequence::IoSequence;
use super::threads::ThreadContext;
use ironbench_core::SplitMix64;

/// Maximum number of completions per round. fio replaces each completed I/O separately. Without a limit, the disk of a
/// virtual machine completed only 84% to 91% as many random 4 KiB I/Os as with fio. With a limit of four, it completed
/// as many as with fio, and the CPU time was two thirds of fio's (`bench/storage.py`).
const ROUND: usize = 4;

pub struct Uring {
    ring: IoUring,
    slots: Vec<Slot>,
    /// Whether the buffers are registered.
    fixed: bool,
}

struct Slot {
    buffer: Buffer,
    began: u64,
    reads: bool,
}

impl Uring {
    /// Creates the ring of the calling thread. The same thread must call `run`.
    pub fn prepare(pass: &Pass, file: RawFd, stream: u64) -> io::Result<Self> {
        let ring = ring(pass.depth, may_block(file))?;
        ring.submitter().register_files(&[file])?;
        let mut random = SplitMix64::new(pass.seed.wrapping_add(stream));
        let mut slots: Vec<_> =
            (0..pass.depth).map(|_| Slot { buffer: Buffer::new(pass, &mut random), began: 0, reads: false }).collect();
        let vectors: Vec<_> = slots
            .iter_mut()
            .map(|slot| libc::iovec { iov_base: slot.buffer.as_mut_ptr().cast(), iov_len: slot.buffer.len() })
            .collect();
        // SAFETY: the buffers live as long as the ring, which is dropped first (fields are dropped in order). If the
        // limit of locked memory (RLIMIT_MEMLOCK) is too low, the buffers are not registered. This costs a little CPU
        // time.
        let fixed = unsafe { ring.submitter().register_buffers(&vectors) }.is_ok();
        Ok(Self { ring, slots, fixed })
    }

    /// Runs I/Os until `context` says to stop. No I/O is in flight when it returns.
    pub fn run(
        mut self,
        mut sequence: IoSequence,
        context: &ThreadContext,
        recording: &mut Recording,
    ) -> io::Result<()> {
        let mut free: Vec<u16> = (0..self.slots.len() as u16).rev().collect();
        let mut stamps = SplitMix64::new(context.start ^ 0x5EED);
        let mut failed = None;
        let mut must_continue = true;
        let mut now = context.start;
        loop {
            while must_continue && let Some(slot) = free.pop() {
                let Some(next) = sequence.next() else {
                    free.push(slot);
                    must_continue = false;
                    break;
                };
                if next.wraps {
                    context.before_restart();
                }
                let entry = self.entry(slot, next.reads, next.offset, now, &mut stamps);
                // SAFETY: the buffer is not accessed while the I/O is in flight, because its slot is not free.
                unsafe { self.ring.submission().push(&entry) }.expect("the ring has an entry for every slot");
            }
            if free.len() == self.slots.len() {
                break;
            }
            let waited_for = usize::from(self.ring.completion().is_empty());
            match self.ring.submit_and_wait(waited_for) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => return Err(self.abandon(error)),
            }
            now = clock::now();
            let before = free.len();
            for completion in self.ring.completion().take(ROUND) {
                let slot = &self.slots[completion.user_data() as usize];
                free.push(completion.user_data() as u16);
                if completion.result() == slot.buffer.len() as i32 {
                    recording.ended(slot.reads, now - slot.began);
                } else {
                    failed.get_or_insert_with(|| fault(completion.result()));
                    must_continue = false;
                }
            }
            let ended = (free.len() - before) as u64;
            recording.counted(now - context.start, ended);
            must_continue &= context.must_continue(now, ended);
        }
        recording.cpu = recording.cpu.plus(helpers_cpu());
        failed.map_or(Ok(()), Err)
    }

    #[inline]
    fn entry(&mut self, number: u16, reads: bool, offset: u64, now: u64, stamps: &mut SplitMix64) -> squeue::Entry {
        let slot = &mut self.slots[usize::from(number)];
        slot.began = now;
        slot.reads = reads;
        let length = slot.buffer.len() as u32;
        if !reads {
            slot.buffer.stamp(stamps);
        }
        let start = slot.buffer.as_mut_ptr();
        let file = Fixed(0);
        let entry = match (reads, self.fixed) {
            (true, true) => opcode::ReadFixed::new(file, start, length, number).offset(offset).build(),
            (true, false) => opcode::Read::new(file, start, length).offset(offset).build(),
            (false, true) => opcode::WriteFixed::new(file, start, length, number).offset(offset).build(),
            (false, false) => opcode::Write::new(file, start, length).offset(offset).build(),
        };
        entry.user_data(u64::from(number))
    }

    /// Leaks the buffers. The kernel may still write to them, and it is not possible to wait for the completions.
    #[cold]
    fn abandon(self, error: io::Error) -> io::Error {
        std::mem::forget(self.slots);
        error
    }
}

/// Returns why this kernel or its administrator does not permit a ring. Returns None if a ring is permitted.
pub fn refusal() -> Option<String> {
    ring(1, false).err().map(|error| error.to_string())
}

/// Creates a ring. Completions are processed only when this thread waits for them (Linux 6.1), unless I/O may block.
///
/// If I/O may block, helper threads of the kernel do it. In an ordinary ring, they post the completions themselves.
/// This thread then often finds the next completion without waiting, which saves a sleep.
fn ring(depth: u32, may_block: bool) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two();
    if may_block {
        return IoUring::builder().build(entries);
    }
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::builder().build(entries))
}

/// Returns the CPU time of the kernel's helper threads, which do I/O that would block for this thread's ring. The
/// helper threads are named after the thread, `iou-wrk-TID` (Linux: io_uring/io-wq.c), and end with the ring. The time
/// counts as system time.
fn helpers_cpu() -> CpuTime {
    // SAFETY: the call takes no arguments and changes nothing.
    let name = format!("iou-wrk-{}\n", unsafe { libc::gettid() });
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return CpuTime::default() };
    let ran = |task: fs::DirEntry| {
        let path = task.path();
        if fs::read_to_string(path.join("comm")).ok()? != name {
            return None;
        }
        // The first field is the number of nanoseconds on a CPU (Linux: Documentation/scheduler/sched-stats.rst).
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    };
    CpuTime { user_ns: 0, system_ns: tasks.flatten().filter_map(ran).sum() }
}

/// Whether I/O to this file may block, because its file system does not support I/O without waiting (preadv2(2),
/// RWF_NOWAIT). An example is tmpfs.
fn may_block(file: RawFd) -> bool {
    let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    // SAFETY: the call reads nothing.
    let answer = unsafe { libc::preadv2(file, &raw const nothing, 1, 0, libc::RWF_NOWAIT) };
    answer < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EOPNOTSUPP)
}

fn fault(result: i32) -> io::Error {
    if result < 0 {
        return io::Error::from_raw_os_error(-result);
    }
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("only {result} bytes of a block were transferred"))
}
