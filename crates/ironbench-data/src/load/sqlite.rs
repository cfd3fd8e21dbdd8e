//! Loads rows into an SQLite file with one prepared INSERT per table.

use ironbench_core::{Error, Result};
use rusqlite::{Connection, Statement};

use super::{Piece, Progress};
use crate::plan::Generator;
use crate::row::{Sink, TextBuffer};

/// Inserts the pieces one after the other, each in its own transaction.
pub(super) fn insert(
    path: &str,
    pragmas: &[String],
    generator: &Generator,
    pieces: &[Piece],
    note: &str,
    progress: &Progress,
) -> Result<()> {
    let failed = |error: rusqlite::Error| explain(path, &error);
    let mut connection = Connection::open(path).map_err(failed)?;
    for pragma in pragmas {
        connection.execute_batch(pragma).map_err(failed)?;
    }
    for piece in pieces {
        let transaction = connection.transaction().map_err(failed)?;
        {
            let columns = piece.table.columns;
            let places = vec!["?"; columns.len()].join(", ");
            let sql = format!("insert into {} ({}) values ({places})", piece.table.name, columns.join(", "));
            let statement = transaction.prepare(&sql).map_err(failed)?;
            let mut sink = Inserts {
                statement,
                column: 0,
                bytes: 0,
                failure: None,
                buffer: TextBuffer::default(),
                progress,
                path,
            };
            generator.emit(piece.table.name, piece.units.clone(), &mut sink)?;
        }
        transaction.execute_batch(&piece.note_statement(note)).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

struct Inserts<'a> {
    statement: Statement<'a>,
    column: usize,
    bytes: u64,
    /// The first error of the current row. The error is returned at the end of the row, because the methods that add a
    /// value return no error.
    failure: Option<rusqlite::Error>,
    buffer: TextBuffer,
    progress: &'a Progress,
    path: &'a str,
}

impl Inserts<'_> {
    fn bind(&mut self, value: impl rusqlite::ToSql, bytes: u64) {
        self.column += 1;
        self.bytes += bytes + 1;
        if let Err(error) = self.statement.raw_bind_parameter(self.column, value) {
            self.failure.get_or_insert(error);
        }
    }
}

impl Sink for Inserts<'_> {
    type Error = Error;

    fn smallint(&mut self, value: i16) {
        self.bigint(value.into());
    }

    fn integer(&mut self, value: i32) {
        self.bigint(value.into());
    }

    fn bigint(&mut self, value: i64) {
        let digits = value.unsigned_abs().checked_ilog10().map_or(1, |n| u64::from(n) + 1);
        self.bind(value, digits + u64::from(value < 0));
    }

    /// Stores the number as integer hundredths, because SQLite has no exact decimals.
    fn decimal(&mut self, hundredths: i64) {
        self.bigint(hundredths);
    }

    /// Stores the number as integer ten-thousandths.
    fn rate(&mut self, ten_thousandths: i64) {
        self.bigint(ten_thousandths);
    }

    fn text(&mut self, value: &str) {
        self.bind(value, value.len() as u64);
    }

    fn date(&mut self, day: i32) {
        let text = self.buffer.date(day.into()).to_owned();
        self.text(&text);
    }

    fn timestamp(&mut self, second: i64) {
        let text = self.buffer.timestamp(second).to_owned();
        self.text(&text);
    }

    fn moment(&mut self, millisecond: i64) {
        let text = self.buffer.moment(millisecond).to_owned();
        self.text(&text);
    }

    fn null(&mut self) {
        self.bind(rusqlite::types::Null, 0);
    }

    fn end_row(&mut self) -> Result<()> {
        let result = match self.failure.take() {
            Some(error) => Err(error),
            None => self.statement.raw_execute(),
        };
        result.map_err(|error| explain(self.path, &error))?;
        self.progress.add(1, self.bytes)?;
        (self.column, self.bytes) = (0, 0);
        Ok(())
    }
}

fn explain(path: &str, error: &rusqlite::Error) -> Error {
    let failure = Error::failure(path, error.to_string());
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
        return failure.hint("free some space or choose a smaller scale; the loaded part is not used");
    }
    failure
}

#[cfg(test)]
mod tests {
    use crate::pgbench::Pgbench;
    use crate::plan::{Generator, LoadPlan};
    use crate::{Progress, load};
    use ironbench_core::drive::plan::Engine;

    #[test]
    fn rows_in_sqlite_are_those_of_the_generator() {
        let path = std::env::temp_dir().join(format!("ironbench-rows-{}.sqlite", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let name = path.to_str().unwrap().to_owned();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "create table pgbench_accounts (aid integer, bid integer, abalance integer, filler text);
                 create table pgbench_tellers (tid integer, bid integer, tbalance integer);
                 create table pgbench_branches (bid integer, bbalance integer);",
            )
            .unwrap();
        let generator = Generator::Pgbench(Pgbench { scale: 1 });
        let engine = Engine::Sqlite { path: name, pragmas: vec!["pragma synchronous=off".into()] };
        let plan = LoadPlan {
            engine,
            generator,
            connections: 4,
            done: Vec::new(),
            only: Vec::new(),
            note: String::new(),
            silence_s: None,
        };
        let loaded = load(&plan, &Progress::default()).unwrap();
        let found: (i64, i64, String) = connection
            .query_row("select count(*), sum(aid), max(filler) from pgbench_accounts", (), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        drop(connection);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, (100_000, 5_000_050_000, String::new()));
        assert_eq!((loaded.rows, loaded.connections), (100_011, 1));
    }
}
