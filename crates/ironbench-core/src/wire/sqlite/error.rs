//! Classifies SQLite's result codes for a trial and for messages.

use rusqlite::ffi;

use crate::wire::library::StatementError;

impl StatementError {
    pub fn of(error: &rusqlite::Error) -> Self {
        let code = error.sqlite_extended_error_code().unwrap_or(ffi::SQLITE_ERROR);
        let primary = code & 0xff;
        let message = match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            other => other.to_string(),
        };
        Self {
            class: class(code).or_else(|| class(primary)).unwrap_or("SQLITE_ERROR").into(),
            message,
            retryable: matches!(primary, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED),
            lasting: matches!(
                primary,
                ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_CANTOPEN
            ),
        }
    }
}

/// Returns the name from sqlite.org/rescode.html for codes that a workload can encounter.
fn class(code: i32) -> Option<&'static str> {
    let name = match code {
        ffi::SQLITE_ERROR => "SQLITE_ERROR",
        ffi::SQLITE_BUSY => "SQLITE_BUSY",
        ffi::SQLITE_BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
        ffi::SQLITE_BUSY_RECOVERY => "SQLITE_BUSY_RECOVERY",
        ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
        ffi::SQLITE_NOMEM => "SQLITE_NOMEM",
        ffi::SQLITE_READONLY => "SQLITE_READONLY",
        ffi::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
        ffi::SQLITE_IOERR => "SQLITE_IOERR",
        ffi::SQLITE_CORRUPT => "SQLITE_CORRUPT",
        ffi::SQLITE_FULL => "SQLITE_FULL",
        ffi::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
        ffi::SQLITE_SCHEMA => "SQLITE_SCHEMA",
        ffi::SQLITE_TOOBIG => "SQLITE_TOOBIG",
        ffi::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
        ffi::SQLITE_CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
        ffi::SQLITE_CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
        ffi::SQLITE_CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
        ffi::SQLITE_MISMATCH => "SQLITE_MISMATCH",
        ffi::SQLITE_AUTH => "SQLITE_AUTH",
        ffi::SQLITE_NOTADB => "SQLITE_NOTADB",
        _ => return None,
    };
    Some(name)
}
