//! The threads of a pass, which prepare, start together, and return their measurements.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ironbench_core::measure::clock::{self, NEVER};
use ironbench_core::measure::cpu::CpuTime;
use ironbench_core::measure::threads::{Gate, NO_LIMIT, ThreadSettings, run_with_leader};
use ironbench_core::{Error, Result};

use super::blocking::Blocking;
use super::plan::{Io, Pass, Sync, Until};
use super::record::{Outcome, Recording, Summary, seconds};
use super::sequence::{Cursor, IoSequence};
use super::uring::{self, Uring};

/// Interval at which the caller's `poll` is called.
const POLL: Duration = Duration::from_millis(20);
/// The progress is updated once for this many I/Os. Updates are rare, because they access memory that threads share.
const IOS_PER_UPDATE: u64 = 64;

/// Progress of a pass, which any thread can read and stop.
#[derive(Debug, Default)]
pub struct Progress {
    ios: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    pub fn ios(&self) -> u64 {
        self.ios.load(Relaxed)
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// The state that a working thread shares with others.
#[derive(Debug)]
pub struct ThreadContext<'a> {
    pub start: u64,
    deadline: u64,
    file: RawFd,
    evict: bool,
    progress: &'a Progress,
    gate: &'a Gate<u64>,
    unreported: std::cell::Cell<u64>,
}

impl ThreadContext<'_> {
    /// Whether the thread must start more I/Os. `ended` is the number of I/Os that have ended since the last call.
    #[inline]
    pub fn must_continue(&self, now: u64, ended: u64) -> bool {
        let unreported = self.unreported.get() + ended;
        if unreported >= IOS_PER_UPDATE {
            self.progress.ios.fetch_add(unreported, Relaxed);
            self.unreported.set(0);
        } else {
            self.unreported.set(unreported);
        }
        now < self.deadline && !self.progress.is_stopped() && !self.gate.is_stopped()
    }

    /// Called before the sequence starts again at the beginning of the file.
    #[cold]
    pub fn before_restart(&self) {
        if self.evict {
            // If eviction fails, the scan reads from memory and is too fast. The pass continues nevertheless.
            let _ = super::blocking::evict(self.file);
        }
    }
}

/// Runs one pass. `poll` is called every 20 ms and returns whether to continue.
///
/// # Errors
/// Input: the plan is invalid, or requests io_uring where it is not available. Failure: an I/O failed.
pub fn run(pass: &Pass, progress: &Progress, poll: &mut dyn FnMut() -> bool) -> Result<Outcome> {
    pass.validate()?;
    let (io, note) = chosen(pass)?;
    let by_ring = io == "io_uring";
    // Without io_uring, every concurrent I/O needs its own thread.
    let threads_per_sequence = if by_ring { 1 } else { pass.depth };
    let sequences: Vec<(usize, u32)> =
        (0..pass.files.len()).flat_map(|file| (0..pass.threads).map(move |number| (file, number))).collect();
    let cursors: Vec<Cursor> = sequences.iter().map(|_| Cursor::default()).collect();
    let count = sequences.len() * threads_per_sequence as usize;
    let gate = Gate::<u64>::default();
    let members = sequences.iter().enumerate().flat_map(|(place, &(file, number))| {
        let (gate, cursor) = (&gate, &cursors[place]);
        (0..threads_per_sequence).map(move |extra| {
            let stream = (place as u64) << 16 | u64::from(extra);
            let sequence = IoSequence::new(pass, number, stream, cursor);
            let work = move || {
                let failed =
                    |error: io::Error| Error::failure(format!("storage, file {}", file + 1), error.to_string());
                let fd = pass.files[file];
                let worker = Worker::prepare(by_ring, pass, fd, stream).map_err(failed)?;
                let mut recording = Recording::default();
                let Some(start) = gate.wait_for_start() else { return Ok((file, recording)) };
                let deadline = deadline(pass, start);
                let unreported = std::cell::Cell::new(0);
                let context =
                    ThreadContext { start, deadline, file: fd, evict: pass.evict, progress, gate, unreported };
                let before = CpuTime::of_thread();
                worker.run(sequence, &context, &mut recording).map_err(failed)?;
                if pass.sync_at_end && pass.read_percent < 100 {
                    super::blocking::fsync(fd).map_err(failed)?;
                    recording.counted(clock::now() - start, 0);
                }
                recording.cpu = recording.cpu.plus(CpuTime::of_thread().since(before));
                Ok((file, recording))
            };
            (ThreadSettings::new(format!("storage-{place}")).pin_to(&pass.cpus), work)
        })
    });
    let lead = || {
        gate.ready(count, NO_LIMIT);
        gate.open(clock::now());
        while !gate.ended(count, POLL) {
            if !poll() {
                progress.stop();
            }
        }
        Ok(())
    };
    let ((), recordings) = run_with_leader(&gate, members, lead)?;
    Ok(outcome(pass, &recordings, io, note, progress.is_stopped()))
}

enum Worker {
    Ring(Box<Uring>),
    Thread(Blocking),
}

impl Worker {
    fn prepare(by_ring: bool, pass: &Pass, file: RawFd, stream: u64) -> io::Result<Self> {
        if by_ring {
            return Uring::prepare(pass, file, stream).map(|ring| Self::Ring(Box::new(ring)));
        }
        Ok(Self::Thread(Blocking::prepare(pass, file, stream)))
    }

    fn run(self, sequence: IoSequence, context: &ThreadContext, recording: &mut Recording) -> io::Result<()> {
        match self {
            Self::Ring(ring) => ring.run(sequence, context, recording),
            Self::Thread(thread) => thread.run(sequence, context, recording),
        }
    }
}

/// Returns the I/O method, and the reason if io_uring is not available. Synced writes and scans through the page cache
/// use ordinary system calls, like databases.
fn chosen(pass: &Pass) -> Result<(&'static str, String)> {
    if pass.sync != Sync::None || pass.evict || pass.io == Io::Threads {
        return Ok(("threads", String::new()));
    }
    match uring::refusal() {
        None => Ok(("io_uring", String::new())),
        Some(cause) if pass.io == Io::Auto => Ok(("threads", format!("io_uring is not available here: {cause}"))),
        Some(cause) => Err(Error::input("io_uring", format!("is not available here: {cause}"))
            .hint("use io=auto, which uses threads here")),
    }
}

fn deadline(pass: &Pass, start: u64) -> u64 {
    match pass.until {
        Until::Seconds(seconds) | Until::FirstOf { seconds, .. } => start + clock::from_seconds(seconds),
        Until::Bytes(_) => NEVER,
    }
}

fn outcome(pass: &Pass, recordings: &[(usize, Recording)], io: &'static str, note: String, stopped: bool) -> Outcome {
    let mut whole = Recording::default();
    let mut file_bytes = vec![0; pass.files.len()];
    for (file, recording) in recordings {
        whole.merge(recording);
        file_bytes[*file] += (recording.reads.count() + recording.writes.count()) * u64::from(pass.block_bytes);
    }
    let (reads, writes) = (whole.reads.count(), whole.writes.count());
    let summary = Summary {
        elapsed_s: seconds(whole.ended_ns),
        reads,
        writes,
        bytes: (reads + writes) * u64::from(pass.block_bytes),
        file_bytes,
        cpu_user_s: seconds(whole.cpu.user_ns),
        cpu_system_s: seconds(whole.cpu.system_ns),
        io,
        note,
        stopped,
    };
    Outcome { summary, reads: whole.reads, writes: whole.writes, buckets: whole.buckets }
}
