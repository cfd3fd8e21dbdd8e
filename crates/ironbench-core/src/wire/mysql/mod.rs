//! MySQL and MariaDB: packets (`protocol`), connecting (`connect`, `auth`, `proof`),
//! and a blocking session for everything outside the measured window (`session`, `copy`).
//! `channel` is the packet stream that connect and session use.
mod address;
mod auth;
mod channel;
pub mod connect;
pub mod copy;
mod fault;
mod proof;
pub mod protocol;
pub mod session;

pub use connect::{Cancel, Connected, Connector};
pub use copy::CopyIn;
pub use session::Session;
