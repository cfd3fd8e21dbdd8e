//! Blocking connections. The work is done by the engine's own library or by a driver. In both cases, a call returns
//! when its work is done.

use std::borrow::Cow;

use crate::measure::clock;
use pgbench_script::Sql;

/// Error class of a statement that ended because its client was interrupted.
pub const INTERRUPTED: &str = "interrupted";

/// A connection of one client of a trial.
pub trait Library {
    /// Runs one SQL command to its last row. `value` returns the parameter at an index of `sql.parameters`.
    fn run<'v>(&mut self, sql: &Sql, value: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, StatementError>;

    /// Whether a transaction is open. A failed transaction must be rolled back before a retry.
    fn in_transaction(&self) -> bool;

    fn rollback(&mut self) -> Result<(), StatementError>;

    /// Returns the name of the I/O method in records: `blocking` if the engine works in the calling thread, or
    /// `driver`.
    fn io(&self) -> &'static str {
        "blocking"
    }

    /// Whether the connection goes to a server. Such a connection can be lost while the server runs.
    fn is_remote(&self) -> bool {
        false
    }

    /// Runs `work`, which is the client's whole work. This work includes the times in which the client waits.
    fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        work(self)
    }

    fn sleep_until(&self, instant: u64) {
        clock::sleep_until(instant);
    }
}

/// The value of a variable with its type. The type matters, because SQLite does not find the number 1 when searching
/// for '1'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Null,
    Integer(i64),
    Double(f64),
    Text(&'a str),
}

impl<'a> Parameter<'a> {
    /// Converts `text` to a number if a number would be written in exactly this way. For example, `007` stays text.
    pub fn of_text(text: &'a str) -> Self {
        if let Ok(integer) = text.parse::<i64>()
            && integer.to_string() == text
        {
            return Self::Integer(integer);
        }
        if text.contains(['.', 'e'])
            && let Ok(double) = text.parse::<f64>()
            && (format!("{double:?}") == text || format!("{double}") == text)
        {
            return Self::Double(double);
        }
        Self::Text(text)
    }
}

/// The result of one SQL command of a script.
#[derive(Debug, Default)]
pub struct Answer {
    /// Number of rows of the last statement.
    pub rows: u64,
    /// Names and values of result columns. With `\gset`, they come from the last row. With `\aset`, they come from the
    /// last row of each statement that returned rows.
    pub gathered: Vec<(String, Option<String>)>,
}

/// The error of a failed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementError {
    /// Error class in records: the engine's name of the error, e.g. `SQLITE_BUSY`, or its SQLSTATE.
    pub class: Cow<'static, str>,
    pub message: String,
    /// Whether a retry of the transaction may succeed, as after a conflict with another client.
    pub retryable: bool,
    /// Whether the connection has become unusable.
    pub lasting: bool,
}

impl StatementError {
    /// Reclassifies the error as an interrupt of the client, whatever cause the engine reports.
    pub fn interrupted(self) -> Self {
        Self { class: INTERRUPTED.into(), retryable: false, lasting: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_a_number_is_bound_as_one_and_other_text_stays_text() {
        assert_eq!(Parameter::of_text("42"), Parameter::Integer(42));
        assert_eq!(Parameter::of_text("-0"), Parameter::Text("-0"));
        assert_eq!(Parameter::of_text("007"), Parameter::Text("007"));
        assert_eq!(Parameter::of_text("0.5"), Parameter::Double(0.5));
        assert_eq!(Parameter::of_text("1.50"), Parameter::Text("1.50"));
        assert_eq!(Parameter::of_text("nan"), Parameter::Text("nan"));
        assert_eq!(Parameter::of_text("9223372036854775808"), Parameter::Text("9223372036854775808"));
    }
}
