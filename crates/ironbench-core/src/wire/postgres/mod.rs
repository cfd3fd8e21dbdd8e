//! PostgreSQL: its messages (`protocol`), connecting (`connect`, `auth`),
//! and a blocking session for everything outside the measured window (`session`, `copy`).
//! `channel` is the message stream that connect and session use.
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
