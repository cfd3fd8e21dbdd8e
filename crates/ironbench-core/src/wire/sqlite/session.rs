//! A blocking SQLite session for everything outside the measured window: schema, load, checks.

use std::path::Path;
use std::time::{Duration, Instant};

use fallible_iterator::FallibleIterator;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, InterruptHandle, OpenFlags};

use super::copy;
use crate::wire::digest::digest;
use crate::wire::library::StatementError;
use crate::{Error, Result};

/// Name of the digest function. The function is registered because SQLite has no hash function.
const DIGEST: &str = "ironbench_digest";
/// Number of instructions of SQLite's virtual machine between two readings of the clock. The instructions take less
/// than a millisecond.
const STEPS_PER_LOOK: i32 = 10_000;
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Rows as text. The values have the same format as in a PostgreSQL session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
}

#[derive(Debug)]
pub struct Session {
    connection: Connection,
    path: String,
}

impl Session {
    /// Opens the file, creating it if necessary, and runs `pragmas`.
    pub fn open(path: &str, pragmas: &[String]) -> Result<Self> {
        Ok(Self { connection: connect(path, pragmas, OpenFlags::SQLITE_OPEN_CREATE)?, path: path.to_owned() })
    }

    /// Runs one or more statements. Returns the rows of the last one.
    pub fn query(&mut self, sql: &str) -> Result<Table> {
        run_all(&self.connection, sql).map_err(|error| self.failed(&error))
    }

    /// Runs statements as `query` does, but only counts the rows of the last statement. Each row is dropped when it is
    /// read. Otherwise freeing all rows at the end would take additional time.
    ///
    /// Calls `ended` about twenty times per second in this thread, and interrupts the statement when `ended` returns
    /// true.
    pub fn count(&mut self, sql: &str, mut ended: impl FnMut() -> bool + Send + 'static) -> Result<u64> {
        let mut asked = Instant::now();
        let look = move || {
            let due = asked.elapsed() >= ASK_EVERY;
            if due {
                asked = Instant::now();
            }
            due && ended()
        };
        let counted = self
            .connection
            .progress_handler(STEPS_PER_LOOK, Some(look))
            .and_then(|()| count_all(&self.connection, sql));
        self.connection.progress_handler(0, None::<fn() -> bool>).map_err(|error| self.failed(&error))?;
        counted.map_err(|error| self.failed(&error))
    }

    /// Returns the number of rows that the last INSERT, UPDATE or DELETE changed.
    pub fn changes(&self) -> u64 {
        self.connection.changes()
    }

    /// Inserts rows in the text format of PostgreSQL's COPY. Either all rows are inserted or none. Returns the number
    /// of rows.
    ///
    /// `sql` is `COPY table [(columns)] FROM STDIN`, or an INSERT with as many parameters as the rows have fields.
    /// Values are bound as text. The affinity of the columns converts them to numbers.
    pub fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64> {
        let first = data.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let insert = copy::insert_for(sql, first.split(|&byte| byte == b'\t').count())
            .ok_or_else(|| Error::input(sql, "is neither COPY … FROM STDIN nor INSERT"))?;
        if data.is_empty() {
            return Ok(0);
        }
        // A savepoint works both inside the caller's transaction and outside of one.
        self.query("SAVEPOINT ironbench_copy")?;
        let copied = self.insert_all(&insert, data);
        let end = if copied.is_ok() {
            "RELEASE ironbench_copy"
        } else {
            "ROLLBACK TO ironbench_copy; RELEASE ironbench_copy"
        };
        let ended = self.query(end);
        let rows = copied?;
        ended.map(|_| rows)
    }

    /// Returns a handle that can interrupt this session's statement from another thread.
    pub fn interrupter(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Closes the file. When the last connection closes the file, SQLite checkpoints and removes its write-ahead log.
    pub fn close(self) -> Result<()> {
        let path = self.path;
        self.connection.close().map_err(|(_, error)| failed(&path, &error))
    }

    fn insert_all(&self, insert: &str, data: &[u8]) -> Result<u64> {
        let mut statement = self.connection.prepare(insert).map_err(|error| self.failed(&error))?;
        let mut rows = 0;
        let mut field = Vec::new();
        let ends = data.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let mut start = 0;
        for end in ends.chain((data.last() != Some(&b'\n') && !data.is_empty()).then_some(data.len())) {
            let mut fields = 0;
            for raw in data[start..end].split(|&byte| byte == b'\t') {
                fields += 1;
                if fields > statement.parameter_count() {
                    break;
                }
                let text = copy::unescape(raw, &mut field);
                let bound = match text {
                    None => statement.raw_bind_parameter(fields, rusqlite::types::Null),
                    Some(text) => {
                        let text = std::str::from_utf8(text)
                            .map_err(|_| Error::input(format!("row {}", rows + 1), "not UTF-8"))?;
                        statement.raw_bind_parameter(fields, text)
                    }
                };
                bound.map_err(|error| self.failed(&error))?;
            }
            if fields != statement.parameter_count() {
                return Err(Error::input(
                    format!("row {}", rows + 1),
                    format!("the number of fields differs from the {} of {insert}", statement.parameter_count()),
                ));
            }
            statement.raw_execute().map_err(|error| {
                let trouble = StatementError::of(&error);
                Error::failure(format!("row {} of {}", rows + 1, self.path), trouble.message)
            })?;
            rows += 1;
            start = end + 1;
        }
        Ok(rows)
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        failed(&self.path, error)
    }
}

/// Opens `path` and runs `pragmas`. An error names the file and SQLite's reason.
pub fn connect(path: &str, pragmas: &[String], more: OpenFlags) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| {
        let hint = match Path::new(path).parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                format!("the directory {} does not exist", folder.display())
            }
            _ if more.is_empty() && !Path::new(path).exists() => "load the data first".to_owned(),
            _ => String::new(),
        };
        failed(path, &error).hint(hint)
    })?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection
        .create_scalar_function(DIGEST, 1, flags, |call| Ok(digest(call.get_raw(0).as_bytes().unwrap_or_default())))
        .map_err(|error| failed(path, &error))?;
    for pragma in pragmas {
        run_all(&connection, pragma).map_err(|error| {
            Error::input(pragma.clone(), StatementError::of(&error).message).hint(format!("on {path}"))
        })?;
    }
    Ok(connection)
}

pub fn failed(path: &str, error: &rusqlite::Error) -> Error {
    let trouble = StatementError::of(error);
    let mut failure = Error::failure(format!("SQLite {path}"), format!("{} ({})", trouble.message, trouble.class));
    if !trouble.lasting {
        // SQLite has no SQLSTATEs, so this field contains the error class. A class tells callers that only the
        // statement failed and that the session stays usable.
        failure.sqlstate = trouble.class.into_owned();
    }
    failure
}

fn run_all(connection: &Connection, sql: &str) -> rusqlite::Result<Table> {
    let mut table = Table::default();
    let mut batch = Batch::new(connection, sql);
    while let Some(mut statement) = batch.next()? {
        table.columns = statement.column_names().map(str::to_owned).collect();
        table.rows.clear();
        let width = table.columns.len();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            table.rows.push((0..width).map(|place| row.get_ref(place).map(text)).collect::<rusqlite::Result<_>>()?);
        }
    }
    Ok(table)
}

fn count_all(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    let mut count = 0;
    let mut batch = Batch::new(connection, sql);
    while let Some(mut statement) = batch.next()? {
        count = 0;
        let width = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            for place in 0..width {
                std::hint::black_box(row.get_ref(place)?);
            }
            count += 1;
        }
    }
    Ok(count)
}

/// Formats a value as the PostgreSQL session does: NULL is None, bytes are hexadecimal after `\x`.
pub fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(integer) => Some(integer.to_string()),
        ValueRef::Real(real) => Some(format!("{real:?}")),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            Some(std::iter::once("\\x".to_owned()).chain(digits).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session::open(":memory:", &["PRAGMA foreign_keys=ON".to_owned()]).unwrap()
    }

    fn cell(session: &mut Session, sql: &str) -> Option<String> {
        session.query(sql).unwrap().rows[0][0].clone()
    }

    #[test]
    fn a_script_answers_with_the_rows_of_its_last_statement() {
        let mut session = session();
        let table = session
            .query(
                "CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL); SELECT * FROM t; -- end",
            )
            .unwrap();
        assert_eq!(table.columns, ["a", "b"]);
        assert_eq!(table.rows, [[Some("1".into()), Some("x".into())], [Some("2".into()), None]]);
        assert_eq!(session.changes(), 2);
        let count = session.count("SELECT 1; SELECT * FROM t UNION ALL SELECT * FROM t; -- end", || true);
        assert_eq!(count.unwrap(), 4, "too short to be asked about");
        assert_eq!(cell(&mut session, "SELECT 0.5").as_deref(), Some("0.5"));
        assert_eq!(cell(&mut session, "SELECT x'00ff'").as_deref(), Some("\\x00ff"));
        assert_eq!(cell(&mut session, "PRAGMA foreign_keys").as_deref(), Some("1"));
    }

    #[test]
    fn copied_rows_take_the_types_of_their_columns_and_their_escapes_are_undone() {
        let mut session = session();
        session.query("CREATE TABLE t(a INTEGER, b TEXT, c REAL)").unwrap();
        let rows = session.copy_in("COPY t (a, b) FROM STDIN", b"1\tone\\ttab\n2\t\\N\n").unwrap();
        assert_eq!(rows, 2);
        assert_eq!(session.copy_in("INSERT INTO t VALUES (?1, ?2, ?3)", b"3\tthree\t1.5").unwrap(), 1);
        let table = session.query("SELECT typeof(a), b, typeof(c) FROM t ORDER BY a").unwrap();
        let words: Vec<Vec<&str>> =
            table.rows.iter().map(|row| row.iter().map(|v| v.as_deref().unwrap_or("NULL")).collect()).collect();
        assert_eq!(words, [["integer", "one\ttab", "null"], ["integer", "NULL", "null"], ["integer", "three", "real"]]);
        assert_eq!(session.copy_in("COPY t FROM STDIN", b"").unwrap(), 0);
    }

    #[test]
    fn a_row_that_does_not_fit_leaves_no_row_behind() {
        let mut session = session();
        session.query("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)").unwrap();
        for (data, cause) in
            [(&b"1\tx\n1\ty\n"[..], "UNIQUE"), (b"1\tx\n2\n", "fields"), (b"1\tx\n2\ty\tz\n", "fields")]
        {
            let error = session.copy_in("COPY t FROM STDIN", data).unwrap_err();
            assert!(error.subject.starts_with("row 2"), "{error}");
            assert!(error.cause.contains(cause), "{error}");
            assert_eq!(cell(&mut session, "SELECT count(*) FROM t").as_deref(), Some("0"));
        }
    }

    #[test]
    fn a_count_without_end_is_ended_by_whoever_is_asked_and_the_session_goes_on() {
        let mut session = session();
        let endless = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT n FROM s";
        let mut asked = 0;
        let error = session.count(endless, move || {
            asked += 1;
            asked == 2
        });
        assert!(error.unwrap_err().cause.contains("interrupted"));
        assert_eq!(session.query("SELECT nonsense").unwrap_err().sqlstate, "SQLITE_ERROR");
        assert_eq!(cell(&mut session, "SELECT count(*) FROM (VALUES (1), (2))").as_deref(), Some("2"));
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named_with_the_way_out() {
        let error = Session::open("/nowhere/at/all.db", &[]).unwrap_err();
        assert_eq!((error.subject.as_str(), error.sqlstate.as_str()), ("SQLite /nowhere/at/all.db", ""));
        assert_eq!(error.hint, "the directory /nowhere/at does not exist");
        let error = Session::open(":memory:", &["PRAGM x".to_owned()]).unwrap_err();
        assert_eq!((error.subject.as_str(), error.kind), ("PRAGM x", crate::Kind::Input));
    }
}
