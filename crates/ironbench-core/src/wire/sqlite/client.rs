//! The SQLite client of a trial. Each client has its own connection and prepares its statements once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, OpenFlags, Statement};

use super::busy_handler::BusyHandler;
use super::session::{self, connect, text};
use crate::Result;
use crate::wire::library::{Answer, Library, Parameter, StatementError};
use pgbench_script::{ResultUse, Sql};

/// A client of a trial. The client's statements borrow the connection, so they must be dropped first. This is the case
/// because fields are dropped in their order.
pub struct Client {
    /// The statements of each SQL command, by `Sql::id`. Empty before the first use. A combined command has several
    /// statements.
    statements: Vec<Vec<Prepared>>,
    connection: Shared,
    give_up: Arc<AtomicBool>,
}

struct Prepared {
    statement: Statement<'static>,
    /// The index of each parameter of the statement among the parameters of the SQL command.
    parameter_indexes: Vec<usize>,
}

/// A connection at a fixed address. Statements can therefore point to it while the client moves.
struct Shared {
    connection: *mut Connection,
    busy_handler: *mut BusyHandler,
}

impl Shared {
    fn new(connection: Connection, give_up: Arc<AtomicBool>) -> rusqlite::Result<Self> {
        let busy_handler = BusyHandler::install(&connection, give_up)?;
        Ok(Self { connection: Box::into_raw(Box::new(connection)), busy_handler })
    }

    /// Returns a reference with an unlimited lifetime.
    ///
    /// # Safety
    /// Everything derived from the reference must be dropped before `self`.
    unsafe fn forever(&self) -> &'static Connection {
        // SAFETY: Box::into_raw created the pointer. The pointer is freed only in drop, and never borrowed mutably.
        unsafe { &*self.connection }
    }

    fn get(&self) -> &Connection {
        // SAFETY: Box::into_raw created the pointer. The borrow ends before `self` does.
        unsafe { &*self.connection }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: Box::into_raw created the pointer. `Client` has dropped all statements before (order of its fields).
        drop(unsafe { Box::from_raw(self.connection) });
        // SAFETY: Box::into_raw created the pointer, and the connection that called the handler is closed.
        drop(unsafe { Box::from_raw(self.busy_handler) });
    }
}

impl Client {
    /// Connects to an existing file. `statements` is the number of SQL commands in the program.
    ///
    /// SQLite waits up to 5 s for another writer, unless a pragma sets another `busy_timeout`. Setting `give_up`
    /// interrupts the client's statements and waits, both the current one and all later ones.
    pub fn open(path: &str, pragmas: &[String], statements: usize, give_up: Arc<AtomicBool>) -> Result<Self> {
        let connection = connect(path, pragmas, OpenFlags::empty())?;
        let connection =
            Shared::new(connection, Arc::clone(&give_up)).map_err(|error| session::failed(path, &error))?;
        Ok(Self { statements: (0..statements).map(|_| Vec::new()).collect(), connection, give_up })
    }

    /// Drops the statements of the SQL command with this ID, because its text has changed.
    pub fn forget(&mut self, id: usize) {
        self.statements[id].clear();
    }

    /// Prepares and runs the statements of a combined command one after the other.
    /// A statement may create the table that the next one reads.
    fn prepare_and_run<'v>(
        &self,
        sql: &Sql,
        value: &impl Fn(usize) -> Parameter<'v>,
        answer: &mut Answer,
    ) -> std::result::Result<Vec<Prepared>, StatementError> {
        // SAFETY: the statements move into `self.statements` or are dropped here. In both cases, they are dropped
        // before the connection.
        let connection = unsafe { self.connection.forever() };
        let mut batch = Batch::new(connection, &sql.text);
        let mut prepared = Vec::new();
        while let Some(statement) = batch.next().map_err(|error| StatementError::of(&error))? {
            let parameter_indexes = parameter_indexes(&statement, sql.parameters.len())?;
            let mut one = Prepared { statement, parameter_indexes };
            one.run(value, &sql.result_use, answer).map_err(|error| StatementError::of(&error))?;
            prepared.push(one);
        }
        Ok(prepared)
    }
}

impl Library for Client {
    fn run<'v>(
        &mut self,
        sql: &Sql,
        value: impl Fn(usize) -> Parameter<'v>,
    ) -> std::result::Result<Answer, StatementError> {
        let mut answer = Answer::default();
        let mut prepared = std::mem::take(&mut self.statements[sql.id]);
        let outcome = if prepared.is_empty() {
            self.prepare_and_run(sql, &value, &mut answer).map(|made| prepared = made)
        } else {
            let outcome = prepared.iter_mut().try_for_each(|one| one.run(&value, &sql.result_use, &mut answer));
            outcome.map_err(|error| StatementError::of(&error))
        };
        self.statements[sql.id] = prepared;
        match outcome {
            Ok(()) => Ok(answer),
            Err(trouble) if self.give_up.load(Ordering::Relaxed) => Err(trouble.interrupted()),
            Err(trouble) => Err(trouble),
        }
    }

    fn in_transaction(&self) -> bool {
        !self.connection.get().is_autocommit()
    }

    fn rollback(&mut self) -> std::result::Result<(), StatementError> {
        self.connection.get().execute_batch("ROLLBACK").map_err(|error| StatementError::of(&error))
    }
}

impl Prepared {
    fn run<'v>(
        &mut self,
        value: &impl Fn(usize) -> Parameter<'v>,
        result_use: &ResultUse,
        answer: &mut Answer,
    ) -> rusqlite::Result<()> {
        for (index, &place) in self.parameter_indexes.iter().enumerate() {
            let index = index + 1;
            match value(place) {
                Parameter::Null => self.statement.raw_bind_parameter(index, rusqlite::types::Null)?,
                Parameter::Integer(integer) => self.statement.raw_bind_parameter(index, integer)?,
                Parameter::Double(double) => self.statement.raw_bind_parameter(index, double)?,
                Parameter::Text(text) => self.statement.raw_bind_parameter(index, text)?,
            }
        }
        let stores = !matches!(result_use, ResultUse::Discard);
        let names: Vec<String> = match stores {
            true => self.statement.column_names().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        if matches!(result_use, ResultUse::Gset { .. }) {
            answer.gathered.clear();
        }
        answer.rows = 0;
        let before = answer.gathered.len();
        let mut rows = self.statement.raw_query();
        while let Some(row) = rows.next()? {
            answer.rows += 1;
            answer.gathered.truncate(before);
            for (place, name) in names.iter().enumerate() {
                answer.gathered.push((name.clone(), text(row.get_ref(place)?)));
            }
        }
        Ok(())
    }
}

/// Returns the index of each of the statement's parameters among the command's parameters. The compiled text contains
/// the parameters as `$1`, `$2`, … SQLite treats these as names. It numbers them in the order in which they appear.
fn parameter_indexes(statement: &Statement<'_>, known: usize) -> std::result::Result<Vec<usize>, StatementError> {
    (1..=statement.parameter_count())
        .map(|index| {
            let name = statement.parameter_name(index).unwrap_or("?");
            let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
            number.filter(|number| (1..=known).contains(number)).map(|number| number - 1).ok_or_else(|| {
                StatementError {
                    class: "SQLITE_ERROR".into(),
                    message: format!("parameter {name} is not a variable of the script"),
                    retryable: false,
                    lasting: false,
                }
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use crate::wire::library::INTERRUPTED;
    use crate::wire::sqlite::Session;

    struct Database {
        folder: Folder,
    }

    impl Database {
        fn new(schema: &str) -> Self {
            let folder = Folder::new();
            let database = Self { folder };
            Session::open(&database.path(), &[]).unwrap().query(schema).unwrap();
            database
        }

        fn path(&self) -> String {
            self.folder.0.join("test.db").to_str().unwrap().to_owned()
        }

        fn client(&self) -> Client {
            let pragmas = ["PRAGMA journal_mode=WAL", "PRAGMA busy_timeout=0"].map(str::to_owned);
            Client::open(&self.path(), &pragmas, 8, Arc::default()).unwrap()
        }
    }

    fn sql(id: usize, text: &str, parameters: usize, result_use: ResultUse) -> Sql {
        Sql { id, text: text.into(), parameters: (0..parameters).collect(), result_use, line: 1, ..Sql::default() }
    }

    fn plain(id: usize, text: &str) -> Sql {
        sql(id, text, 0, ResultUse::Discard)
    }

    fn none(_: usize) -> Parameter<'static> {
        panic!("there are no parameters")
    }

    #[test]
    fn parameters_go_to_their_places_in_any_order_and_integers_compare_as_integers() {
        let database = Database::new("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')");
        let mut client = database.client();
        let find = sql(
            0,
            "SELECT a FROM t WHERE b = $2 AND a = $1 AND a + 0 = $1",
            2,
            ResultUse::Gset { prefix: String::new() },
        );
        for (a, b, rows) in [(1, "x", 1), (2, "y", 1), (2, "x", 0)] {
            let answer = client.run(&find, |place| [Parameter::Integer(a), Parameter::Text(b)][place]).unwrap();
            assert_eq!(answer.rows, rows);
            let expected = (rows == 1).then(|| ("a".to_owned(), Some(a.to_string())));
            assert_eq!(answer.gathered, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_combined_command_runs_all_its_statements_each_time() {
        let database = Database::new("CREATE TABLE t(a)");
        let mut client = database.client();
        let both = "INSERT INTO t VALUES ($1); SELECT count(*) AS n, max(a) AS m FROM t; SELECT 1 AS one WHERE false";
        for n in 1..=3 {
            let aset = sql(0, both, 1, ResultUse::Aset { prefix: String::new() });
            let answer = client.run(&aset, |_| Parameter::Integer(n * 10)).unwrap();
            let expected = [("n", n), ("m", n * 10)].map(|(name, value)| (name.to_owned(), Some(value.to_string())));
            assert_eq!(answer.gathered, expected);
        }
        let late = plain(1, "CREATE TABLE late(a); INSERT INTO late VALUES (1)");
        client.run(&late, none).unwrap();
    }

    #[test]
    fn a_parameter_that_is_no_variable_is_refused() {
        let database = Database::new("CREATE TABLE t(a)");
        let trouble = database.client().run(&plain(0, "SELECT ?"), none).unwrap_err();
        assert_eq!(trouble.message, "parameter ? is not a variable of the script");
    }

    #[test]
    fn another_writer_makes_a_transaction_retryable_and_its_own_fault_does_not() {
        let database = Database::new("CREATE TABLE t(a PRIMARY KEY)");
        let (mut first, mut second) = (database.client(), database.client());
        let (begin, insert) = (plain(0, "BEGIN IMMEDIATE"), plain(1, "INSERT INTO t VALUES (1)"));
        first.run(&begin, none).unwrap();
        first.run(&insert, none).unwrap();
        let busy = second.run(&begin, none).unwrap_err();
        assert_eq!((&*busy.class, busy.retryable, second.in_transaction()), ("SQLITE_BUSY", true, false));
        first.run(&plain(2, "COMMIT"), none).unwrap();
        second.run(&begin, none).unwrap();
        let twice = second.run(&insert, none).unwrap_err();
        assert_eq!((&*twice.class, twice.retryable), ("SQLITE_CONSTRAINT_PRIMARYKEY", false));
        assert!(second.in_transaction());
        second.rollback().unwrap();
        assert!(!second.in_transaction());
    }

    #[test]
    fn a_reader_that_wants_to_write_after_another_has_written_is_retryable() {
        let database = Database::new("CREATE TABLE t(a)");
        let (mut first, mut second) = (database.client(), database.client());
        second.run(&plain(0, "BEGIN"), none).unwrap();
        second.run(&plain(1, "SELECT * FROM t"), none).unwrap();
        let insert = plain(2, "INSERT INTO t VALUES (1)");
        first.run(&insert, none).unwrap();
        let stale = second.run(&insert, none).unwrap_err();
        assert_eq!((&*stale.class, stale.retryable, second.in_transaction()), ("SQLITE_BUSY_SNAPSHOT", true, true));
    }

    #[test]
    fn a_statement_that_runs_or_waits_for_long_ends_when_the_trial_does() {
        let database = Database::new("CREATE TABLE t(a)");
        let mut other = database.client();
        other.run(&plain(0, "BEGIN IMMEDIATE"), none).unwrap();
        let pragmas = ["PRAGMA busy_timeout=3600000".to_owned()];
        let give_up = Arc::new(AtomicBool::new(false));
        let mut client = Client::open(&database.path(), &pragmas, 8, Arc::clone(&give_up)).unwrap();
        for text in [
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
            "INSERT INTO t VALUES (1)",
        ] {
            give_up.store(false, Ordering::Relaxed);
            let trouble = std::thread::scope(|scope| {
                scope.spawn(|| give_up.store(true, Ordering::Relaxed));
                client.run(&plain(0, text), none).unwrap_err()
            });
            assert_eq!((&*trouble.class, trouble.retryable), (INTERRUPTED, false));
            client.statements[0].clear();
        }
    }

    #[test]
    fn a_client_waits_for_another_writer_as_long_as_its_busy_timeout_says() {
        let database = Database::new("CREATE TABLE t(a)");
        let pragmas = ["PRAGMA busy_timeout=3600000".to_owned()];
        let mut client = Client::open(&database.path(), &pragmas, 8, Arc::default()).unwrap();
        let turn = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut other = database.client();
                other.run(&plain(0, "BEGIN IMMEDIATE"), none).unwrap();
                turn.wait();
                turn.wait();
                other.run(&plain(1, "COMMIT"), none).unwrap();
            });
            turn.wait();
            turn.wait();
            client.run(&plain(0, "INSERT INTO t VALUES (1)"), none).unwrap();
        });
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made_by_driving_it() {
        let error = Client::open("/tmp/ironbench-no-such.db", &[], 0, Arc::default()).err().unwrap();
        assert_eq!(error.hint, "load the data first");
        assert!(!std::path::Path::new("/tmp/ironbench-no-such.db").exists());
    }
}
