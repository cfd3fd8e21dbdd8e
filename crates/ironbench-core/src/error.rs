//! The error type of the core; the crate ironbench-python converts it to `ironbench.errors`.

/// An error shown as `subject: cause`. `hint` is advice for the user and may be empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {cause}")]
pub struct Error {
    pub kind: Kind,
    pub subject: String,
    pub cause: String,
    pub hint: String,
    /// The server's five-character SQLSTATE. Empty if the error does not come from a server.
    pub sqlstate: String,
    /// The error number of servers that have numbers in addition to SQLSTATEs. 0 if there is no number.
    pub number: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user's input cannot be used.
    Input,
    /// An operation failed.
    Failure,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn input(subject: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::new(Kind::Input, subject.into(), cause.into())
    }

    pub fn failure(subject: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::new(Kind::Failure, subject.into(), cause.into())
    }

    fn new(kind: Kind, subject: String, cause: String) -> Self {
        Self { kind, subject, cause, hint: String::new(), sqlstate: String::new(), number: 0 }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl From<pgbench_script::Error> for Error {
    fn from(error: pgbench_script::Error) -> Self {
        Self::input(error.subject, error.cause).hint(error.hint)
    }
}
