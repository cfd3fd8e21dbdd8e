//! SQLite as an embedded library. Calls of the library block, so the drive loop runs every client in its own thread.
//!
//! Only this crate opens SQLite files, because two SQLite libraries in one process break each other's locks. Source:
//! sqlite.org/howtocorrupt.html, "Multiple copies of SQLite linked into the same application".

mod busy_handler;
mod client;
mod copy;
mod error;
mod session;

pub use client::Client;
pub use session::{Session, Table};
