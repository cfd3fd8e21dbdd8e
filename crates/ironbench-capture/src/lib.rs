//! Captures the work of a production server, from its logs or through a proxy. Log entries are joined into statements.
//! Each statement is assigned to a session and a transaction, and becomes a row of the capture.

mod analysis;
mod csv;
mod entry;
mod input;
mod json;
pub mod mask;
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
