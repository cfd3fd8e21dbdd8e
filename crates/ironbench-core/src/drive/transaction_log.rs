//! Writes a line for each measured transaction, like `pgbench -l` (PostgreSQL manual, "Per-Transaction Logging"):
//!
//! ```text
//! client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]
//! ```
//!
//! A driving thread fills its own buffers and passes full ones to one writer thread, so the driving thread never waits
//! for the disk. When [`MAX_WAITING`] buffers are queued, or writing has failed, the trial aborts. The log of a valid
//! trial is thus complete, and logging never slows down a transaction.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use super::plan::{Plan, TransactionLogFile};
use super::transaction::Ending;
use crate::measure::clock::{self, MICROSECOND, SECOND};
use crate::measure::threads::{BackgroundThread, Gate, ThreadSettings};
use crate::{Error, Result};
use pgbench_script::Random;

const BUFFER_BYTES: usize = 16 << 10;
/// Maximum number of queued buffers: 64 MiB, about 1.6 million lines.
const MAX_WAITING: usize = 4096;
/// Length of the longest line: eight 64-bit numbers, each followed by one character.
const LONGEST_LINE: usize = 8 * 21;

/// The file of a trial and the thread that writes it.
pub(super) struct TransactionLog {
    buffers: SyncSender<Vec<u8>>,
    writer: BackgroundThread,
    gate: Arc<Gate>,
    path: String,
    sampling_rate: f64,
    seed: u64,
    has_lag: bool,
    has_retries: bool,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC. The difference is read only once, so that time stamps never go back.
    epoch_ns: u64,
}

impl TransactionLog {
    /// Creates the log file.
    ///
    /// # Errors
    /// Input: the file exists or cannot be created.
    pub fn create(asked: &TransactionLogFile, plan: &Plan) -> Result<Self> {
        let file = File::create_new(&asked.path).map_err(|error| Error::input(&asked.path, error.to_string()))?;
        Self::writing_to(file, asked, plan)
    }

    fn writing_to(file: File, asked: &TransactionLogFile, plan: &Plan) -> Result<Self> {
        let (buffers, full) = sync_channel(MAX_WAITING);
        let gate = Arc::<Gate>::default();
        let path = asked.path.clone();
        let write = move |_: &Gate| write_all(file, &full).map_err(|error| Error::failure(path, error.to_string()));
        Ok(Self {
            buffers,
            writer: BackgroundThread::start(ThreadSettings::new("log-writer"), Arc::clone(&gate), write)?,
            gate,
            path: asked.path.clone(),
            sampling_rate: asked.sampling_rate,
            seed: plan.seed,
            has_lag: plan.schedule.is_open(),
            has_retries: plan.max_tries != 1,
            epoch_ns: clock::unix_now().wrapping_sub(clock::now()),
        })
    }

    /// Returns the log of a driving thread. The thread's clients are numbered from `first_client`.
    pub fn lines(&self, thread: usize, first_client: usize, clients: usize) -> Lines<'_> {
        let sample = Random::new(self.seed.wrapping_add(thread as u64 + 1));
        Lines { log: self, buffer: buffer(), first_client, numbers: vec![0; clients], sample }
    }

    /// Waits until all lines are written.
    ///
    /// # Errors
    /// Failure: writing failed.
    pub fn finish(self) -> Result<()> {
        drop(self.buffers);
        let _ = self.writer.join();
        self.gate.error().map_or(Ok(()), Err)
    }

    /// Returns why the writer did not accept a buffer.
    #[cold]
    fn refused(&self, error: &TrySendError<Vec<u8>>) -> Error {
        match error {
            TrySendError::Full(_) => {
                let cause = "the disk is slower than the transactions, and 64 MiB of lines are waiting; log a sample of them, or \
                             log to another disk";
                Error::failure(&self.path, cause)
            }
            TrySendError::Disconnected(_) => {
                self.gate.ended(1, Duration::from_secs(1));
                self.gate.error().unwrap_or_else(|| Error::failure(&self.path, "writing the log failed"))
            }
        }
    }
}

fn write_all(mut file: File, full: &Receiver<Vec<u8>>) -> std::io::Result<()> {
    full.iter().try_for_each(|lines| file.write_all(&lines))
}

fn buffer() -> Vec<u8> {
    Vec::with_capacity(BUFFER_BYTES)
}

/// The log of one driving thread. When it is dropped, its remaining lines are passed to the writer. This may block, but
/// only after the window has closed.
pub(super) struct Lines<'a> {
    log: &'a TransactionLog,
    buffer: Vec<u8>,
    first_client: usize,
    /// Number of transactions measured so far, for each client.
    numbers: Vec<u64>,
    sample: Random,
}

impl Lines<'_> {
    /// Logs a measured transaction of the thread's client number `client`, which ended at `now`.
    ///
    /// # Errors
    /// Failure: the log cannot be complete any more.
    pub fn add(&mut self, client: usize, ending: Ending, intended: u64, begun: u64, now: u64) -> Result<()> {
        self.numbers[client] += 1;
        let log = self.log;
        if log.sampling_rate < 1.0 && self.sample.fraction() >= log.sampling_rate {
            return Ok(());
        }
        if self.buffer.len() + LONGEST_LINE > BUFFER_BYTES {
            let full = std::mem::replace(&mut self.buffer, buffer());
            log.buffers.try_send(full).map_err(|error| log.refused(&error))?;
        }
        self.number((self.first_client + client) as u64, b' ');
        self.number(self.numbers[client], b' ');
        if ending.well {
            self.number(rounded_us(now - intended), b' ');
        } else {
            self.buffer.extend_from_slice(b"failed ");
        }
        self.number(ending.kind as u64, b' ');
        let unix_ns = now.wrapping_add(log.epoch_ns);
        self.number(unix_ns / SECOND, b' ');
        self.number(unix_ns % SECOND / MICROSECOND, b' ');
        if log.has_lag {
            self.number(rounded_us(begun - intended), b' ');
        }
        if log.has_retries {
            self.number(u64::from(ending.retries), b' ');
        }
        *self.buffer.last_mut().expect("a line was added") = b'\n';
        Ok(())
    }

    fn number(&mut self, number: u64, end: u8) {
        self.buffer.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.buffer.push(end);
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        // If the writer has failed, sending fails too. `finish` then returns the writer's error.
        let _ = self.log.buffers.send(std::mem::take(&mut self.buffer));
    }
}

fn rounded_us(ns: u64) -> u64 {
    (ns + MICROSECOND / 2) / MICROSECOND
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::drive::plan::Stop;
    use crate::drive::tests::plan;

    const ENDING: Ending = Ending { kind: 0, well: true, retries: 0 };

    /// Adds lines until the log to `file` fails. Then calls `release`, so that the writer can end. Returns the error.
    fn end_of_log(file: File, release: impl FnOnce()) -> Error {
        let asked = TransactionLogFile { path: "log".to_owned(), sampling_rate: 1.0 };
        let log = TransactionLog::writing_to(file, &asked, &plan(1, 1, Stop::Transactions(1))).unwrap();
        let mut lines = log.lines(0, 0, 1);
        let most = MAX_WAITING * BUFFER_BYTES;
        let error = (0..most).find_map(|_| lines.add(0, ENDING, 0, 0, 1).err());
        release();
        error.expect("the log cannot take so many lines")
    }

    #[test]
    fn a_log_that_cannot_be_written_ends_with_the_cause() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(end_of_log(full, || ()).cause, std::io::Error::from_raw_os_error(libc::ENOSPC).to_string());
    }

    #[test]
    fn nothing_waits_for_a_slow_disk() {
        let (reader, writer) = std::io::pipe().unwrap();
        let error = end_of_log(File::from(OwnedFd::from(writer)), || drop(reader));
        assert!(error.cause.starts_with("the disk is slower"), "{error}");
    }
}
