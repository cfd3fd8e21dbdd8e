//! PostgreSQL's frontend/backend protocol 3.0: `frontend` appends messages to a caller's buffer, `backend` cuts and reads
//! the server's. Neither does any I/O, and neither allocates on the way of a transaction.
//!
//! Source: PostgreSQL 18 documentation, chapter 54 "Frontend/Backend Protocol".

pub mod backend;
pub mod frontend;

pub use backend::{Framer, Malformed, Message, Rows};
