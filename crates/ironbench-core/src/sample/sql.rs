//! SQL statements sampled over a separate connection for the observers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::sampling_loop::{ReadError, Reader};
use crate::Result;
use crate::wire::{
    Connector, PostgresConnection, Rows, Server, Session, SessionProtocol, ldap::Ldap, mysql::Mysql, postgres::Postgres,
};

/// Name of the observers' connection in `pg_stat_activity` and `session_connect_attrs`.
pub const APPLICATION_NAME: &str = "ironbench observer";

/// An open connection, with one reader for each statement.
pub struct ObserverConnection {
    /// PID of the server process of this connection, or None if the server has no process per connection.
    pub backend_pid: Option<i32>,
    pub readers: Vec<Box<dyn Reader>>,
    /// A flag that ends a statement that does not return.
    pub give_up: Arc<AtomicBool>,
    /// Transactions that the server has committed on this connection so far.
    pub commits: Arc<AtomicU64>,
}

/// Connects to the server, without a relay, and creates a reader for each of `texts`.
pub fn connect(server: &Server, texts: &[&str]) -> Result<ObserverConnection> {
    let statements = texts.iter().map(|text| (*text).to_owned());
    match server.direct() {
        Server::Postgres(connection) => connect_postgres(connection, texts),
        Server::Mysql(mut connection) => {
            connection.program = APPLICATION_NAME.to_owned();
            let (session, give_up) = open::<Mysql>(connection)?;
            Ok(opened(session, statements.collect(), give_up))
        }
        Server::Ldap(connection) => {
            let (session, give_up) = open::<Ldap>(connection)?;
            Ok(opened(session, statements.collect(), give_up))
        }
    }
}

/// Connects and prepares each statement on the server, so that samples need no planning.
fn connect_postgres(mut connection: PostgresConnection, texts: &[&str]) -> Result<ObserverConnection> {
    connection.options.retain(|(name, _)| name != "application_name");
    connection.options.push(("application_name".to_owned(), APPLICATION_NAME.to_owned()));
    let (mut session, give_up) = open::<Postgres>(connection)?;
    let backend_pid = session.backend_pid();
    let statements: Vec<String> = texts.iter().enumerate().map(|(n, text)| prepared(&mut session, n, text)).collect();
    Ok(ObserverConnection { backend_pid: Some(backend_pid), ..opened(session, statements, give_up) })
}

/// Opens a session. Also returns a flag that interrupts a statement that hangs.
fn open<P: SessionProtocol>(settings: P::Settings) -> Result<(Session<P>, Arc<AtomicBool>)> {
    let give_up = Arc::new(AtomicBool::new(false));
    let wanted = Arc::clone(&give_up);
    let session = Session::open(&Connector::new(settings)?, Box::new(move || wanted.load(Ordering::Relaxed)))?;
    Ok((session, give_up))
}

fn opened<P: SessionProtocol>(
    session: Session<P>,
    statements: Vec<String>,
    give_up: Arc<AtomicBool>,
) -> ObserverConnection {
    let commits = Arc::new(AtomicU64::new(session.commits()));
    let session = Arc::new(Mutex::new(session));
    let reader = |statement| -> Box<dyn Reader> {
        let (session, given_up, commits) = (Arc::clone(&session), Arc::clone(&give_up), Arc::clone(&commits));
        Box::new(Statement { session, statement, given_up, commits })
    };
    let readers = statements.into_iter().map(reader).collect();
    ObserverConnection { backend_pid: None, readers, give_up, commits }
}

/// Prepares `text` on the server. Returns the statement that executes it. Returns `text` itself if it cannot be
/// prepared.
fn prepared(session: &mut Session<Postgres>, number: usize, text: &str) -> String {
    if !is_preparable(text) {
        return text.to_owned();
    }
    let name = format!("ironbench_observer_{number}");
    match session.query(&format!("PREPARE {name} AS {text}")) {
        Ok(_) => format!("EXECUTE {name}"),
        Err(_) => text.to_owned(),
    }
}

/// Whether PREPARE accepts the text. PREPARE accepts a single query, but no commands such as SHOW or CHECKPOINT. Trying
/// it out would leave an error in the server's log, and the server may belong to the user.
fn is_preparable(text: &str) -> bool {
    let text = text.trim();
    let query = ["select", "with", "values", "table"].iter().any(|word| {
        text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && text[word.len()..].starts_with(|next: char| next.is_whitespace() || next == '(')
    });
    query && !text.trim_end_matches(';').contains(';')
}

struct Statement<P: SessionProtocol> {
    session: Arc<Mutex<Session<P>>>,
    statement: String,
    given_up: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
}

impl<P: SessionProtocol> Reader for Statement<P> {
    fn read(&mut self, out: &mut Vec<u8>) -> std::result::Result<(), ReadError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = session.query(&self.statement);
        self.commits.store(session.commits(), Ordering::Relaxed);
        match answer {
            Ok(rows) => {
                write_rows(&rows, out);
                Ok(())
            }
            // The sampler has cancelled the statement itself, so there is nothing to report.
            Err(_) if self.given_up.load(Ordering::Relaxed) => Err(ReadError::Temporary(String::new())),
            Err(error) if is_temporary(&error.sqlstate, error.number) => Err(ReadError::Temporary(error.to_string())),
            Err(error) => Err(ReadError::Permanent(error.to_string())),
        }
    }
}

/// Whether the next try may succeed. This is the case if the statement was cancelled, if the server rolled it back, or
/// if resources or a lock were not available. PostgreSQL 18 documentation, Appendix A: classes 40, 53, 55 and code
/// 57014. MySQL's SQLSTATEs are too broad, so error numbers are used for lock wait timeout, interrupt and statement
/// timeout. A lost connection has no SQLSTATE, so it is permanent.
fn is_temporary(sqlstate: &str, number: u16) -> bool {
    ["40", "53", "55"].iter().any(|class| sqlstate.starts_with(class))
        || sqlstate == "57014"
        || matches!(number, 1205 | 1317 | 1969 | 3024)
}

/// Appends rows as tab-separated values, one row per line, with NULL as `\N`. Tab, newline, carriage return and
/// backslash are escaped as in COPY's text format.
fn write_rows(rows: &Rows, out: &mut Vec<u8>) {
    for row in 0..rows.len() {
        for column in 0..rows.columns().len() {
            if column > 0 {
                out.push(b'\t');
            }
            write_value(rows.get(row, column), out);
        }
        out.push(b'\n');
    }
}

fn write_value(value: Option<&str>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.extend_from_slice(b"\\N");
        return;
    };
    for byte in value.bytes() {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_holds_separators_stays_one_value() {
        let mut out = Vec::new();
        for value in [None, Some(""), Some("a\tb\nc\\N\r")] {
            write_value(value, &mut out);
            out.push(b'|');
        }
        assert_eq!(out, b"\\N||a\\tb\\nc\\\\N\\r|");
    }

    #[test]
    fn a_command_that_prepare_refuses_is_not_offered_to_it() {
        for text in ["select 1", " SELECT(1);", "with a as (select 1) select * from a", "TABLE t"] {
            assert!(is_preparable(text), "{text}");
        }
        for text in ["CHECKPOINT", "show all", "select 1; select 2", "selection", "vacuum t", ""] {
            assert!(!is_preparable(text), "{text}");
        }
    }

    #[test]
    fn only_trouble_that_may_pass_is_tried_again() {
        for (sqlstate, expected) in [("57014", true), ("40001", true), ("53300", true), ("42703", false), ("", false)] {
            assert_eq!(is_temporary(sqlstate, 0), expected, "{sqlstate}");
        }
        assert!(is_temporary("HY000", 1205) && !is_temporary("HY000", 1114));
    }
}
