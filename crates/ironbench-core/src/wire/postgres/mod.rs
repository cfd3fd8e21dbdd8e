//! PostgreSQL. The module `protocol` contains the messages, and `connect` and `auth` open a connection. `session` and
//! `copy` implement a blocking session for everything outside the measured window.
mod auth;
mod connect;
mod copy;
pub mod protocol;
mod session;

pub use connect::Postgres;
pub use copy::CopyIn;
