//! Errors in a script.

/// An error shown as `subject: cause`. `hint` is advice for the user and may be empty. The subject of an error in a
/// script's text is `NAME:LINE:COLUMN`. The cause shows the line with a caret below the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {cause}")]
pub struct Error {
    pub subject: String,
    pub cause: String,
    pub hint: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(subject: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { subject: subject.into(), cause: cause.into(), hint: String::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}
