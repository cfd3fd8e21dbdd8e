//! Reads production work from a server's logs or from a proxy. Entries are joined into statements, the statements are
//! assigned to sessions and transactions, and each statement becomes a row of a capture.

mod analysis;
mod csv;
mod entry;
mod input;
mod json;
mod mask;
mod message;
pub mod observed;
mod reader;
pub mod rows;
mod scan;
mod secrets;
mod sessions;
mod statement;
mod stderr;
pub mod tape;
