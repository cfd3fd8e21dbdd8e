//! SQLite as a library: calls block, so the drive loop gives every client a thread of its own.
//!
//! Only the core opens SQLite files: two SQLite libraries in one process break each other's locks
//! (sqlite.org/howtocorrupt.html, "Multiple copies of SQLite linked into the same application").

mod client;
mod copy;
mod error;
mod patience;
mod session;

pub use client::Client;
pub use session::{Session, Table};
