//! PostgreSQL's frontend/backend protocol 3.0. The module `frontend` appends messages to a caller's buffer. `framing`
//! cuts the server's messages out of a stream, and `backend` parses them. These modules do no I/O, and allocate no
//! memory during a transaction.
//!
//! Source: PostgreSQL 18 documentation, chapter 54 "Frontend/Backend Protocol".

pub mod backend;
mod commits;
pub mod framing;
pub mod frontend;

pub use commits::Commits;
pub use framing::{Framer, Malformed, Message, Rows, is_unexpected_allowed};
