//! PostgreSQL's frontend/backend protocol 3.0: `frontend` appends messages to a caller's buffer, `framing` cuts
//! the server's out of a stream and `backend` reads them. None does any I/O or allocates on the way of a transaction.
//!
//! Source: PostgreSQL 18 documentation, chapter 54 "Frontend/Backend Protocol".

pub mod backend;
mod commits;
pub mod framing;
pub mod frontend;

pub use commits::Commits;
pub use framing::{Framer, Malformed, Message, Rows, is_unasked_allowed};
