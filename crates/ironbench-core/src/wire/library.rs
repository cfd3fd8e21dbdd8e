//! Connections that are called: a call returns when its work is done, whoever does it (an engine's own library, a driver).

use std::borrow::Cow;

use crate::measure::clock;
use pgbench_script::Sql;

/// Class of a statement that was ended because its client had been told to give up.
pub const INTERRUPTED: &str = "interrupted";

/// A connection of one client of a trial.
pub trait Library {
    /// Runs one SQL command to its last row. `value` gives the parameter at a place in `sql.parameters`.
    fn run<'v>(&mut self, sql: &Sql, value: impl Fn(usize) -> Parameter<'v>) -> Result<Answer, Trouble>;

    /// Whether a transaction is open: a failed one must be rolled back before it is tried again.
    fn in_transaction(&self) -> bool;

    fn rollback(&mut self) -> Result<(), Trouble>;

    /// How records call it: `blocking`, where the engine does its work in the calling thread, or `driver`.
    fn io(&self) -> &'static str {
        "blocking"
    }

    /// Whether the connection can be lost without the engine: it goes to a server.
    fn is_remote(&self) -> bool {
        false
    }

    /// Does the client's whole work, its waiting included.
    fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        work(self)
    }

    fn sleep_until(&self, instant: u64) {
        clock::sleep_until(instant);
    }
}

/// A variable's value, typed: SQLite does not find 1 when it looks for '1'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    Null,
    Integer(i64),
    Double(f64),
    Text(&'a str),
}

impl<'a> Parameter<'a> {
    /// The number that `text` is, if writing that number gives `text` again (`007` stays text).
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

/// What one SQL command of a script gave.
#[derive(Debug, Default)]
pub struct Answer {
    /// Rows of the last statement.
    pub rows: u64,
    /// For `\gset`: the columns of the last row. For `\aset`: those of the last row of each statement that had any.
    pub gathered: Vec<(String, Option<String>)>,
}

/// A statement that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What records count it under: the engine's own name of the error, e.g. `SQLITE_BUSY`, or its SQLSTATE.
    pub class: Cow<'static, str>,
    pub message: String,
    /// Another client was in the way: the transaction may succeed when it is run again.
    pub retryable: bool,
    /// The engine is no longer usable.
    pub lasting: bool,
}

impl Trouble {
    /// The client had been told to give up: whatever the engine says, that is why.
    pub fn given_up(self) -> Self {
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
