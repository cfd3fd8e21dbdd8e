//! PostgreSQL. The module `protocol` contains the messages, and `connect` and `auth` open a connection. `session` and
//! `copy` implement a blocking session for everything outside the measured window. `channel` is the message stream that
//! `connect` and `session` use.
mod address;
mod auth;
mod channel;
pub mod connect;
pub mod copy;
mod fault;
pub mod protocol;
pub mod session;

pub use connect::{Cancel, Connected, Connector};
pub use copy::CopyIn;
pub use session::Session;
