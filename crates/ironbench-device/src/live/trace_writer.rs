//! Records the trace of a device, with one row per I/O. A separate thread writes the rows to the file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbench_core::measure::threads::{BackgroundThread, Gate, ThreadSettings};
use ironbench_core::{Error, Result};

use crate::Op;

const CHUNK_ROWS: usize = 16 << 10;
/// Maximum number of pieces that wait to be written. If there are more, their rows are dropped and counted.
const MAX_WAITING_CHUNKS: usize = 64;
/// Size of a row in bytes, little-endian. The columns time, offset and completed have 8 bytes each, length 4, op 1, and
/// padding 3.
const ROW_BYTES: usize = 32;

/// The writer of a trace. Rows are collected in chunks, and a separate thread writes full chunks to the file.
#[derive(Debug)]
pub struct TraceWriter {
    chunk: Mutex<Vec<u8>>,
    sender: Mutex<Option<SyncSender<Vec<u8>>>>,
    writer: Mutex<Option<BackgroundThread>>,
    dropped: AtomicU64,
}

impl TraceWriter {
    pub fn start(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| Error::failure("trace", error.to_string());
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        let (sender, pieces) = sync_channel::<Vec<u8>>(MAX_WAITING_CHUNKS);
        let writer = BackgroundThread::start(ThreadSettings::new("device-trace"), Arc::default(), move |_: &Gate| {
            pieces.iter().try_for_each(|chunk| file.write_all(&chunk)).and_then(|()| file.flush()).map_err(failed)
        })?;
        Ok(Self {
            chunk: Mutex::new(Vec::with_capacity(CHUNK_ROWS * ROW_BYTES)),
            sender: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(writer)),
            dropped: AtomicU64::new(0),
        })
    }

    pub fn add(&self, time: u64, op: Op, offset: u64, length: u32, completed: u64) {
        let mut chunk = locked(&self.chunk);
        for word in [time, offset, completed] {
            chunk.extend_from_slice(&word.to_le_bytes());
        }
        chunk.extend_from_slice(&length.to_le_bytes());
        chunk.extend_from_slice(&[op as u8, 0, 0, 0]);
        if chunk.len() >= CHUNK_ROWS * ROW_BYTES {
            let full = std::mem::replace(&mut *chunk, Vec::with_capacity(CHUNK_ROWS * ROW_BYTES));
            drop(chunk);
            self.send(full);
        }
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Writes the remaining rows and closes the file.
    pub fn end(&self) -> Result<()> {
        let rest = std::mem::take(&mut *locked(&self.chunk));
        if let Some(sender) = locked(&self.sender).take() {
            let _ = sender.send(rest);
        }
        let writer = locked(&self.writer).take();
        writer.map_or(Ok(()), BackgroundThread::join)
    }

    fn send(&self, chunk: Vec<u8>) {
        if let Some(sender) = &*locked(&self.sender)
            && let Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) = sender.try_send(chunk)
        {
            self.dropped.fetch_add((chunk.len() / ROW_BYTES) as u64, Relaxed);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_the_file_in_the_order_in_which_it_was_noted() {
        let path = std::env::temp_dir().join(format!("ironbench-trace-{}", std::process::id()));
        let recording = TraceWriter::start(&path).unwrap();
        for number in 0..40_000u64 {
            recording.add(number, Op::Write, number * 4096, 4096, number + 5);
        }
        recording.end().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!((bytes.len(), recording.dropped()), (40_000 * ROW_BYTES, 0));
        let word = |row: usize, place: usize| {
            u64::from_le_bytes(bytes[row * ROW_BYTES + place..row * ROW_BYTES + place + 8].try_into().unwrap())
        };
        assert!((0..40_000).all(|row| word(row, 0) == row as u64 && word(row, 16) == row as u64 + 5));
        assert_eq!((bytes[ROW_BYTES + 24], bytes[ROW_BYTES + 28]), (0, Op::Write as u8));
    }
}
