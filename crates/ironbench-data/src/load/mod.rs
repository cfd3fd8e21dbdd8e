//! Shares the rows of a plan among connections and streams them into the engine as they are made.

mod mysql;
mod postgres;
mod sqlite;

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use ironbench_core::drive::plan::Engine;
use ironbench_core::measure::crew;
use ironbench_core::wire::{mysql as mysql_wire, postgres as postgres_wire};
use ironbench_core::{Error, Result};
use serde::Serialize;

use crate::plan::{Generator, LoadPlan, Table, Units};
use crate::row::{CopyBinary, CopyText};

/// Shared with a running load; read and stopped from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Bytes handed to the engine so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the load soon; what was copied so far stays and must not be used.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Counts what has been handed over.
    ///
    /// # Errors
    /// Failure: the load was stopped.
    pub fn add(&self, rows: u64, bytes: u64) -> Result<()> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::failure("load", "stopped before all rows were copied"));
        }
        Ok(())
    }
}

/// What a load did.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    pub rows: u64,
    /// Bytes handed to the engine; for SQLite, of the values as text.
    pub bytes: u64,
    pub elapsed_s: f64,
    pub connections: usize,
}

/// A part of one table that is copied in one go.
#[derive(Debug, Clone)]
struct Piece {
    table: Table,
    units: Range<u64>,
}

impl Piece {
    /// The statement that says that this piece is there.
    fn noted(&self, note: &str) -> String {
        let Range { start, end } = self.units;
        note.replace(":table", self.table.name).replace(":first", &start.to_string()).replace(":past", &end.to_string())
    }
}

/// Larger pieces commit less often, smaller ones end more evenly.
const LARGEST_PIECE: u64 = 64 << 20;
const SMALLEST_PIECE: u64 = 256 << 10;

/// Cuts every table, so that `workers` have about equally much to do and rows that belong together stay together.
fn cut(tables: &[Table], workers: usize, done: &[Units]) -> Vec<Piece> {
    let total: u64 = tables.iter().map(|table| table.units * table.bytes_per_unit).sum();
    let size = (total / (workers as u64 * 4)).clamp(SMALLEST_PIECE, LARGEST_PIECE);
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

/// The units of a table that no earlier load has copied.
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

/// The pieces that this load copies.
///
/// # Errors
/// Input: one that is asked for is of no table of this generator, or beyond its end.
fn pieces(plan: &LoadPlan, workers: usize) -> Result<Vec<Piece>> {
    let tables = plan.generator.tables();
    if plan.only.is_empty() {
        return Ok(cut(&tables, workers, &plan.done));
    }
    let piece = |units: &Units| {
        let table = tables.iter().find(|table| table.name == units.table && units.past <= table.units);
        let table = *table.ok_or_else(|| Error::input(&units.table, "these data have no such piece"))?;
        Ok(Piece { table, units: units.first..units.past })
    };
    plan.only.iter().map(piece).collect()
}

/// Table, first unit and the one past the last of each piece, as `load` would share them among `workers`.
pub fn cut_pieces(generator: &Generator, workers: usize, done: &[Units]) -> Vec<(&'static str, u64, u64)> {
    let pieces = cut(&generator.tables(), workers.max(1), done);
    pieces.into_iter().map(|piece| (piece.table.name, piece.units.start, piece.units.end)).collect()
}

/// The pieces that nobody has taken yet.
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

/// Copies all rows of the plan into tables that exist and are empty.
pub fn load(plan: &LoadPlan, progress: &Progress) -> Result<Loaded> {
    let begin = Instant::now();
    let connections = match &plan.engine {
        Engine::Postgres { connection, .. } => {
            let queue = Queue::new(pieces(plan, plan.connections)?);
            let connections = plan.connections.clamp(1, queue.pieces.len().max(1));
            let connector = postgres_wire::Connector::new(connection.clone())?;
            in_parallel(
                connections,
                || postgres::copy(&connector, &plan.generator, &queue, &plan.note, progress),
                || progress.stop(),
            )?;
            connections
        }
        Engine::Mysql { connection, .. } => {
            let queue = Queue::new(pieces(plan, plan.connections)?);
            let connections = plan.connections.clamp(1, queue.pieces.len().max(1));
            let connector = mysql_wire::Connector::new(connection.clone())?;
            in_parallel(
                connections,
                || mysql::copy(&connector, &plan.generator, &queue, &plan.note, progress),
                || progress.stop(),
            )?;
            connections
        }
        Engine::Sqlite { path, pragmas } => {
            // One writer at a time is SQLite's rule, so one connection.
            sqlite::insert(path, pragmas, &plan.generator, &pieces(plan, 1)?, &plan.note, progress)?;
            1
        }
        Engine::Ldap { .. } => return Err(Error::input("load plan", "a directory has no tables to fill")),
        Engine::Called {} => return Err(Error::input("load plan", "whoever brings the connections loads by them")),
        Engine::Null { .. } => {
            let queue = Queue::new(pieces(plan, plan.connections)?);
            in_parallel(plan.connections, || discard(&plan.generator, &queue, progress), || progress.stop())?;
            plan.connections
        }
    };
    Ok(Loaded { rows: progress.rows(), bytes: progress.bytes(), elapsed_s: begin.elapsed().as_secs_f64(), connections })
}

/// Runs `work` in `workers` threads. On the first failure the others are told to stop, and that failure is the result.
fn in_parallel(workers: usize, work: impl Fn() -> Result<()> + Sync, stop: impl Fn() + Sync) -> Result<()> {
    crew::together("load", workers.max(1), |_, _| work().inspect_err(|_| stop())).map(drop)
}

/// Makes rows and forgets them: how fast is the generator alone?
fn discard(generator: &Generator, queue: &Queue, progress: &Progress) -> Result<()> {
    while let Some(piece) = queue.take() {
        let columns = piece.table.columns.len();
        let mut sink = CopyBinary::new(columns, |bytes: &[u8], rows| progress.add(rows, bytes.len() as u64));
        generator.emit(piece.table.name, piece.units.clone(), &mut sink)?;
        sink.finish()?;
    }
    Ok(())
}

/// Writes the rows of one table in PostgreSQL's COPY text format, in order, made by `threads`.
pub fn write_text(generator: &Generator, table: &str, threads: usize, out: &mut impl Write) -> Result<u64> {
    let tables = generator.tables();
    let table = *tables
        .iter()
        .find(|known| known.name == table)
        .ok_or_else(|| Error::input(table, "no such table in this workload"))?;
    let pieces = cut(&[table], threads.max(1), &[]);
    let mut rows = 0;
    for wave in pieces.chunks(threads.max(1)) {
        let texts = crew::together("rows", wave.len(), |number, _| Ok(text_of(generator, &wave[number])))?;
        for (text, count) in texts {
            rows += count;
            out.write_all(&text).map_err(|error| Error::failure("rows", error.to_string()))?;
        }
    }
    Ok(rows)
}

/// `write_text` into a file of that name.
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
mod tests {
    use super::*;
    use crate::igen::Igen;
    use crate::pgbench::Pgbench;
    use proptest::prelude::*;

    fn igen(seed: u64) -> Generator {
        Generator::Igen(Igen {
            region_ends: [400, 600, 720, 800, 860, 900],
            products: 200,
            categories: 10,
            most_orders: 20,
            most_lines: 7,
            seed,
        })
    }

    fn text(generator: &Generator, table: &str, threads: usize) -> String {
        let mut out = Vec::new();
        write_text(generator, table, threads, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn columns(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split('\t').collect()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn rows_do_not_depend_on_the_number_of_threads(seed: u64, threads in 2usize..7) {
            let generator = igen(seed);
            for table in generator.tables() {
                prop_assert_eq!(text(&generator, table.name, 1), text(&generator, table.name, threads));
            }
        }

        #[test]
        fn every_order_has_the_total_and_the_number_of_its_lines(seed: u64) {
            let generator = igen(seed);
            let lines = text(&generator, "igen_order_line", 1);
            let mut totals = std::collections::HashMap::new();
            for line in columns(&lines) {
                let total = totals.entry((line[0].to_owned(), line[1].to_owned())).or_insert((0i64, 0i64));
                total.0 += line[3].parse::<i64>().unwrap() * line[5].parse::<i64>().unwrap();
                total.1 += 1;
            }
            let orders = text(&generator, "igen_order", 1);
            for order in columns(&orders) {
                let expected = (order[0].parse().unwrap(), order[4].parse().unwrap());
                prop_assert_eq!(totals.remove(&(order[2].to_owned(), order[3].to_owned())), Some(expected));
            }
            prop_assert!(totals.is_empty());
        }

        #[test]
        fn lines_name_products_that_exist_at_their_price(seed: u64) {
            let generator = igen(seed);
            let products = text(&generator, "igen_product", 1);
            let prices: std::collections::HashMap<_, _> =
                columns(&products).into_iter().map(|product| (product[0].to_owned(), product[2].to_owned())).collect();
            let lines = text(&generator, "igen_order_line", 1);
            for line in columns(&lines) {
                prop_assert_eq!(prices.get(line[4]).map(String::as_str), Some(line[5]));
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_every_unit_once(units in 1u64..5_000_000, bytes in 1u64..3000, workers in 1usize..33) {
            let table = Table { name: "t", columns: &[], units, bytes_per_unit: bytes };
            let pieces = cut(&[table], workers, &[]);
            let mut next = 0;
            for piece in pieces {
                prop_assert_eq!(piece.units.start, next);
                next = piece.units.end;
            }
            prop_assert_eq!(next, units);
        }
    }

    proptest! {
        #[test]
        fn pieces_of_a_resumed_load_are_those_that_are_missing(units in 1u64..500, bounds in prop::collection::vec(0u64..500, 0..8)) {
            let table = Table { name: "t", columns: &[], units, bytes_per_unit: 100_000 };
            let mut bounds: Vec<u64> = bounds.into_iter().filter(|&bound| bound <= units).collect();
            bounds.sort_unstable();
            let done: Vec<Units> = bounds
                .chunks_exact(2)
                .map(|pair| Units { table: "t".into(), first: pair[0], past: pair[1] })
                .collect();
            let mut there: Vec<u64> = done.iter().flat_map(|done| done.first..done.past).collect();
            there.extend(cut(&[table], 2, &done).into_iter().flat_map(|piece| piece.units));
            there.sort_unstable();
            prop_assert_eq!(there, (0..units).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_customer_holds_from_one_to_the_most_orders_without_holes() {
        let orders = text(&igen(1), "igen_order", 1);
        let mut held = std::collections::BTreeMap::new();
        for order in columns(&orders) {
            let count = held.entry(order[2].parse::<u64>().unwrap()).or_insert(0u64);
            *count += 1;
            assert_eq!(order[3].parse::<u64>().unwrap(), *count);
        }
        assert_eq!(held.len(), 900);
        assert_eq!((held.values().min(), held.values().max()), (Some(&1), Some(&20)));
        let mean = held.values().sum::<u64>() as f64 / 900.0;
        // The mean of a uniform 1..=20 is 10.5, its standard deviation 5.77; five of the mean's.
        assert!((mean - 10.5).abs() < 0.97, "{mean}");
    }

    #[test]
    fn customers_live_in_the_regions_of_the_plan() {
        let text = text(&igen(1), "igen_customer", 1);
        let regions: Vec<u64> = columns(&text).iter().map(|customer| customer[1].parse().unwrap()).collect();
        let in_region = |region| regions.iter().filter(|&&r| r == region).count();
        assert_eq!((1..=6).map(in_region).collect::<Vec<_>>(), [400, 200, 120, 80, 60, 40]);
    }

    #[test]
    fn a_branch_has_ten_tellers_and_a_hundred_thousand_accounts() {
        let generator = Generator::Pgbench(Pgbench { scale: 2 });
        let accounts = text(&generator, "pgbench_accounts", 2);
        assert_eq!(accounts.lines().count(), 200_000);
        assert_eq!(accounts.lines().last(), Some("200000\t2\t0\t"));
        assert_eq!(text(&generator, "pgbench_tellers", 1).lines().last(), Some("20\t2\t0"));
        assert_eq!(text(&generator, "pgbench_branches", 1), "1\t0\n2\t0\n");
    }

    #[test]
    fn loads_of_single_pieces_make_together_what_one_load_makes() {
        let plan = |only| LoadPlan {
            engine: Engine::Null { service_ns: 0 },
            generator: igen(1),
            connections: 1,
            done: Vec::new(),
            only,
            note: String::new(),
        };
        let made = |only| load(&plan(only), &Progress::default()).unwrap();
        let whole = made(Vec::new());
        let each = cut_pieces(&igen(1), 3, &[]);
        let (mut rows, mut bytes) = (0, 0);
        for (table, first, past) in each {
            let one = made(vec![Units { table: table.into(), first, past }]);
            (rows, bytes) = (rows + one.rows, bytes + one.bytes);
        }
        // Each copy has a header of 19 bytes and a trailer of 2 (PostgreSQL manual, COPY, binary format).
        let framing = |connections| 21 * cut_pieces(&igen(1), connections, &[]).len() as u64;
        assert_eq!((rows, bytes - framing(3)), (whole.rows, whole.bytes - framing(1)));
        let strange = plan(vec![Units { table: "igen_order".into(), first: 0, past: u64::MAX }]);
        assert!(load(&strange, &Progress::default()).is_err());
    }

    #[test]
    fn a_stopped_load_ends_with_a_failure() {
        let plan = LoadPlan {
            engine: Engine::Null { service_ns: 0 },
            generator: igen(1),
            connections: 2,
            done: Vec::new(),
            only: Vec::new(),
            note: String::new(),
        };
        let progress = Progress::default();
        progress.stop();
        assert!(load(&plan, &progress).is_err());
        let progress = Progress::default();
        let loaded = load(&plan, &progress).unwrap();
        assert_eq!((loaded.rows, loaded.bytes), (progress.rows(), progress.bytes()));
    }
}
