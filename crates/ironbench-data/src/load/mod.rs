//! Distributes the rows of a plan over connections and streams them into the engine as they are generated.

mod mysql;
mod postgres;
mod sqlite;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ironbench_core::drive::plan::Engine;
use ironbench_core::measure::threads;
use ironbench_core::wire::{Connector, StopCheck};
use ironbench_core::{Error, Result};
use serde::Serialize;

use crate::plan::{Generator, LoadPlan, Table, Units};
use crate::row::{CopyBinary, CopyText};

/// Progress of a running load, which another thread can read and stop.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Progress {
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Returns the bytes sent to the engine so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Makes the load end soon. The rows copied so far stay in the tables, and must not be used.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Counts rows and bytes that were sent.
    ///
    /// # Errors
    /// Failure: the load was stopped.
    pub fn add(&self, rows: u64, bytes: u64) -> Result<()> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.is_stopped() { Err(stopped()) } else { Ok(()) }
    }

    /// Subtracts rows and bytes that were sent but rolled back.
    fn take_back(&self, rows: u64, bytes: u64) {
        self.rows.fetch_sub(rows, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns a function that says whether the load was stopped. A session calls it while it waits for the server.
    fn stop_check(&self) -> StopCheck {
        let stop = Arc::clone(&self.stop);
        Box::new(move || stop.load(Ordering::Relaxed))
    }
}

/// The result of a load.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    pub rows: u64,
    /// Number of bytes sent to the engine. For SQLite, the size of the values as text.
    pub bytes: u64,
    pub elapsed_s: f64,
    pub connections: usize,
}

/// A part of one table that is copied with one statement.
#[derive(Debug, Clone)]
struct Piece {
    table: Table,
    units: Range<u64>,
}

impl Piece {
    /// Returns the statement that records this piece as loaded.
    fn note_statement(&self, note: &str) -> String {
        let Range { start, end } = self.units;
        note.replace(":table", self.table.name).replace(":first", &start.to_string()).replace(":past", &end.to_string())
    }
}

/// Size limits of pieces in bytes. Larger pieces need fewer commits. Smaller pieces let the connections end at about
/// the same time.
const MAX_PIECE: u64 = 64 << 20;
const MIN_PIECE: u64 = 256 << 10;

/// Divides the tables into pieces, so that each of `workers` has about the same amount of work. The rows of a unit stay
/// together.
fn divide(tables: &[Table], workers: usize, done: &[Units]) -> Vec<Piece> {
    let total: u64 = tables.iter().map(|table| table.units * table.bytes_per_unit).sum();
    let size = (total / (workers as u64 * 4)).clamp(MIN_PIECE, MAX_PIECE);
    let mut pieces = Vec::new();
    for &table in tables {
        let step = (size / table.bytes_per_unit).max(1);
        for missing in missing(&table, done) {
            let starts = missing.clone().step_by(step as usize);
            pieces.extend(starts.map(|start| Piece { table, units: start..(start + step).min(missing.end) }));
        }
    }
    pieces
}

/// Returns the units of a table that no earlier load has copied.
fn missing(table: &Table, done: &[Units]) -> Vec<Range<u64>> {
    let mut there: Vec<_> = done.iter().filter(|done| done.table == table.name).collect();
    there.sort_by_key(|done| done.first);
    let mut missing = Vec::new();
    let mut next = 0;
    for done in there {
        missing.push(next..done.first);
        next = done.past;
    }
    missing.push(next..table.units);
    missing.retain(|units| !units.is_empty());
    missing
}

/// Returns the pieces that this load copies.
///
/// # Errors
/// Input: a requested piece is in no table of this generator, or beyond the table's end.
fn pieces(plan: &LoadPlan, workers: usize) -> Result<Vec<Piece>> {
    let tables = plan.generator.tables();
    if plan.only.is_empty() {
        return Ok(divide(&tables, workers, &plan.done));
    }
    let piece = |units: &Units| {
        let table = tables.iter().find(|table| table.name == units.table && units.past <= table.units);
        let table = *table.ok_or_else(|| Error::input(&units.table, "these data do not have this piece"))?;
        Ok(Piece { table, units: units.first..units.past })
    };
    plan.only.iter().map(piece).collect()
}

/// Divides the tables among `workers` like `load`. Returns the table, first unit and end unit of each piece.
pub fn cut_pieces(generator: &Generator, workers: usize, done: &[Units]) -> Vec<(&'static str, u64, u64)> {
    let pieces = divide(&generator.tables(), workers.max(1), done);
    pieces.into_iter().map(|piece| (piece.table.name, piece.units.start, piece.units.end)).collect()
}

/// The pieces that no worker has taken yet.
struct Queue {
    pieces: Vec<Piece>,
    next: AtomicUsize,
}

impl Queue {
    fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces, next: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<&Piece> {
        self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Copies all rows of the plan into existing, empty tables.
pub fn load(plan: &LoadPlan, progress: &Progress) -> Result<Loaded> {
    let begin = Instant::now();
    let silence = plan.silence_s.map(|silence| Duration::from_secs_f64(silence.clamp(0.0, 3600.0)));
    let connections = match &plan.engine {
        Engine::Postgres { connection, .. } => {
            let queue = Queue::new(pieces(plan, plan.connections)?);
            let connections = plan.connections.clamp(1, queue.pieces.len().max(1));
            let connector = Connector::new(connection.clone())?;
            in_parallel(connections, progress, || {
                postgres::copy(&connector, &plan.generator, &queue, &plan.note, silence, progress)
            })?;
            connections
        }
        Engine::Mysql { connection, .. } => {
            let mut pieces = pieces(plan, plan.connections)?;
            if let Generator::Sysbench(_) = plan.generator {
                // Only one connection at a time can load a table with AUTO_INCREMENT. Therefore consecutive pieces are
                // from different tables.
                pieces.sort_by_key(|piece| piece.units.start);
            }
            let queue = Queue::new(pieces);
            let connections = plan.connections.clamp(1, queue.pieces.len().max(1));
            let connector = Connector::new(connection.clone())?;
            in_parallel(connections, progress, || {
                mysql::copy(&connector, &plan.generator, &queue, &plan.note, silence, progress)
            })?;
            connections
        }
        Engine::Sqlite { path, pragmas } => {
            // SQLite allows one writer at a time, so a single connection is used.
            sqlite::insert(path, pragmas, &plan.generator, &pieces(plan, 1)?, &plan.note, progress)?;
            1
        }
        Engine::Ldap { .. } => return Err(Error::input("load plan", "a directory has no tables to fill")),
        Engine::Called { .. } => {
            return Err(Error::input("load plan", "this engine loads data through its own connections"));
        }
        Engine::Null { .. } => {
            let queue = Queue::new(pieces(plan, plan.connections)?);
            in_parallel(plan.connections, progress, || discard(&plan.generator, &queue, progress))?;
            plan.connections
        }
    };
    Ok(Loaded { rows: progress.rows(), bytes: progress.bytes(), elapsed_s: begin.elapsed().as_secs_f64(), connections })
}

/// Runs `work` in `workers` threads. If one of them fails, the others are stopped, and its error is returned.
fn in_parallel(workers: usize, progress: &Progress, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    let failed = |error| {
        // When the load has been stopped, further errors are a consequence and not reported.
        if progress.is_stopped() {
            return stopped();
        }
        progress.stop();
        error
    };
    threads::run_parallel("load", workers.max(1), |_, _| work().map_err(failed)).map(drop)
}

fn stopped() -> Error {
    Error::failure("load", "stopped before all rows were copied")
}

/// Generates rows and discards them, to measure the speed of the generator.
fn discard(generator: &Generator, queue: &Queue, progress: &Progress) -> Result<()> {
    while let Some(piece) = queue.take() {
        let columns = piece.table.columns.len();
        let mut sink = CopyBinary::new(columns, |bytes: &[u8], rows| progress.add(rows, bytes.len() as u64));
        generator.emit(piece.table.name, piece.units.clone(), &mut sink)?;
        sink.finish()?;
    }
    Ok(())
}

/// Generates the rows of one table with `threads` threads, and writes them in order, in PostgreSQL's COPY text format.
pub fn write_text(generator: &Generator, table: &str, threads: usize, out: &mut impl Write) -> Result<u64> {
    let tables = generator.tables();
    let table = *tables
        .iter()
        .find(|known| known.name == table)
        .ok_or_else(|| Error::input(table, "no such table in this workload"))?;
    let pieces = divide(&[table], threads.max(1), &[]);
    let mut rows = 0;
    for wave in pieces.chunks(threads.max(1)) {
        let texts = threads::run_parallel("rows", wave.len(), |number, _| Ok(text_of(generator, &wave[number])))?;
        for (text, count) in texts {
            rows += count;
            out.write_all(&text).map_err(|error| Error::failure("rows", error.to_string()))?;
        }
    }
    Ok(rows)
}

/// Writes the rows as `write_text` does, into a new file.
pub fn write_file(generator: &Generator, table: &str, threads: usize, path: &str) -> Result<u64> {
    let failed = |error: std::io::Error| Error::failure(path, error.to_string());
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(failed)?);
    let rows = write_text(generator, table, threads, &mut file)?;
    file.flush().map_err(failed)?;
    Ok(rows)
}

fn text_of(generator: &Generator, piece: &Piece) -> (Vec<u8>, u64) {
    let (mut text, mut rows) = (Vec::new(), 0);
    let mut sink = CopyText::new(|bytes: &[u8], count| {
        text.extend_from_slice(bytes);
        rows += count;
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = generator.emit(piece.table.name, piece.units.clone(), &mut sink);
    let Ok(()) = sink.finish();
    (text, rows)
}

#[cfg(test)]
mod tests;
