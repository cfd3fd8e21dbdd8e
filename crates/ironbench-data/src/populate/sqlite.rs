//! Populates a table in an SQLite file. Calls of SQLite block, so every client has its own thread. One client writes at
//! a time while the others wait.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ironbench_core::drive::blocking::GiveUpTimer;
use ironbench_core::drive::engines::Poll;
use ironbench_core::drive::thread_results::{ThreadResults, UnfinishedWork};
use ironbench_core::drive::threads::{self, DriveContext, Start, Worker};
use ironbench_core::measure::{Recorder, clock};
use ironbench_core::wire::library::{INTERRUPTED, Library, Parameter, StatementError};
use ironbench_core::wire::sqlite::Client;
use ironbench_core::{Error, Result};
use pgbench_script::Sql;

use super::{ClientShare, Method, Populate};
use crate::row::{Sink, TextBuffer};
use crate::wide;

pub fn run(
    populate: &Populate,
    path: &str,
    pragmas: &[String],
    orders: &DriveContext,
    poll: Poll,
) -> Result<ThreadResults> {
    if populate.method == Method::Copy {
        return Err(Error::input("population", "SQLite has no COPY").hint("send rows in batches"));
    }
    let mut give_up_timer = GiveUpTimer::default();
    let give_up = give_up_timer.give_up();
    let make = |_, share: Range<usize>| {
        let engine = Client::open(path, pragmas, STATEMENTS, Arc::clone(&give_up))?;
        let share = ClientShare::new(populate, share.start, orders.plan.clients);
        Ok(Populator { engine, share, give_up: &give_up, values: Values::default(), short: (0, Sql::default()) })
    };
    threads::run(orders, make, &mut || {
        give_up_timer.check(orders.control, clock::now());
        poll()
    })
}

const BEGIN: usize = 0;
const COMMIT: usize = 1;
const FULL: usize = 2;
/// Index of the statement for an INSERT with fewer rows, which may be the last one of a commit. This statement is
/// prepared again when its number of rows changes.
const SHORT: usize = 3;
const STATEMENTS: usize = 4;

struct Populator<'a> {
    engine: Client,
    share: ClientShare<'a>,
    give_up: &'a AtomicBool,
    values: Values,
    /// Number of rows of the short INSERT, and its text.
    short: (u64, Sql),
}

impl Worker for Populator<'_> {
    fn io(&self) -> &'static str {
        "blocking"
    }

    fn blocks_in_calls(&self) -> bool {
        true
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork {
        let mut ended = UnfinishedWork::default();
        let mut left = self.share.left();
        let full = self.full();
        clock::sleep_until(start.origin);
        while left > 0 && !update_window(start, recorder) {
            let (rows, begun) = (self.share.take(), clock::now());
            left -= 1;
            if !self.commit(&rows, &full, start, recorder) {
                recorder.close(clock::now());
                ended.unfinished = 1;
                ended.unfinished_ns = recorder.inside_window(begun);
                break;
            }
            let now = clock::now();
            if now >= recorder.boundary() {
                recorder.pass_time(now);
            }
            recorder.tally.commits += 1;
            recorder.complete(0, begun, begun, now);
        }
        recorder.close(clock::now());
        ended
    }
}

impl Populator<'_> {
    /// Inserts the rows of a commit, and retries until this succeeds. Returns false if the trial ends before.
    fn commit(&mut self, rows: &Range<u64>, full: &(u64, Sql), start: &Start, recorder: &mut Recorder) -> bool {
        loop {
            let Err(trouble) = self.attempt(rows, full) else { return true };
            if self.engine.in_transaction()
                && let Err(worse) = self.engine.rollback()
            {
                start.abort.abort(format!("cannot roll back: {}", worse.message));
            }
            if trouble.class == INTERRUPTED || start.must_end() {
                return false;
            }
            recorder.tally.error(&trouble.class, || trouble.message.clone());
            if !trouble.retryable {
                start.abort.abort(format!("{} ({})", trouble.message, trouble.class));
                return false;
            }
            recorder.tally.kinds[0].retries += 1;
            update_window(start, recorder);
        }
    }

    fn attempt(&mut self, rows: &Range<u64>, full: &(u64, Sql)) -> std::result::Result<(), StatementError> {
        let none = |_: usize| -> Parameter<'_> { Parameter::Null };
        self.engine.run(&plain(BEGIN, "BEGIN IMMEDIATE"), none)?;
        let mut next = rows.start;
        while next < rows.end && !self.give_up.load(Relaxed) {
            let size = full.0.min(rows.end - next);
            self.values.make(self.share.populate, next..next + size);
            next += size;
            let values = &self.values.values;
            let value = |place: usize| match &values[place] {
                Value::Integer(integer) => Parameter::Integer(*integer),
                Value::Text(text) => Parameter::Text(text),
            };
            if size == full.0 {
                self.engine.run(&full.1, value)?;
                continue;
            }
            if self.short.0 != size {
                self.engine.forget(SHORT);
                self.short = (size, insert(SHORT, self.share.populate, size));
            }
            self.engine.run(&self.short.1, value)?;
        }
        self.engine.run(&plain(COMMIT, "COMMIT"), none).map(drop)
    }

    /// Returns the number of rows of a full INSERT, and its text. Only the last INSERT of a commit may have fewer rows.
    fn full(&self) -> (u64, Sql) {
        let populate = self.share.populate;
        let rows = if populate.method == Method::Batch { populate.batch.min(populate.commit) } else { 1 };
        (rows, insert(FULL, populate, rows))
    }
}

fn plain(id: usize, text: &str) -> Sql {
    Sql { id, text: text.into(), line: 1, ..Sql::default() }
}

fn insert(id: usize, populate: &Populate, rows: u64) -> Sql {
    let columns = populate.table.columns();
    let count = columns.len() * rows as usize;
    let row = |row: u64| {
        let places = (0..columns.len() as u64).map(|column| format!("${}", row * columns.len() as u64 + column + 1));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let places: Vec<_> = (0..rows).map(row).collect();
    let text = format!("INSERT INTO {} ({}) VALUES {}", wide::TABLE, columns.join(", "), places.join(", "));
    Sql { id, text, parameters: (0..count).collect(), line: 1, ..Sql::default() }
}

/// Updates the timeline. Returns whether the trial is over.
fn update_window(start: &Start, recorder: &mut Recorder) -> bool {
    let now = clock::now();
    if now >= recorder.boundary() {
        recorder.pass_time(now);
    }
    if start.must_end() {
        recorder.close(now);
    }
    recorder.is_closed()
}

#[derive(Debug)]
enum Value {
    Integer(i64),
    Text(String),
}

/// The values of the rows of one statement.
#[derive(Default)]
struct Values {
    values: Vec<Value>,
    payload: Vec<u8>,
    buffer: TextBuffer,
}

impl Values {
    fn make(&mut self, populate: &Populate, rows: Range<u64>) {
        self.values.clear();
        let mut payload = std::mem::take(&mut self.payload);
        rows.for_each(|row| populate.table.row(row + 1, &mut payload, self));
        self.payload = payload;
    }
}

impl Sink for Values {
    type Error = std::convert::Infallible;

    fn smallint(&mut self, value: i16) {
        self.bigint(value.into());
    }

    fn integer(&mut self, value: i32) {
        self.bigint(value.into());
    }

    fn bigint(&mut self, value: i64) {
        self.values.push(Value::Integer(value));
    }

    /// Stores the number as integer hundredths, like `load`.
    fn decimal(&mut self, hundredths: i64) {
        self.bigint(hundredths);
    }

    fn rate(&mut self, ten_thousandths: i64) {
        self.bigint(ten_thousandths);
    }

    fn text(&mut self, value: &str) {
        self.values.push(Value::Text(value.to_owned()));
    }

    fn date(&mut self, day: i32) {
        let text = self.buffer.date(day.into()).to_owned();
        self.values.push(Value::Text(text));
    }

    fn timestamp(&mut self, second: i64) {
        let text = self.buffer.timestamp(second).to_owned();
        self.values.push(Value::Text(text));
    }

    fn null(&mut self) {
        unreachable!("wide rows have no NULL");
    }

    fn end_row(&mut self) -> std::result::Result<(), Self::Error> {
        Ok(())
    }
}
