//! Production work, read from a server's logs. Entries become statements of sessions and transactions, and these become
//! rows of a capture.

mod analysis;
mod csv;
mod entry;
mod input;
mod json;
mod mask;
mod message;
mod reader;
pub mod rows;
mod scan;
mod secrets;
mod sessions;
mod statement;
mod stderr;
pub mod tape;
