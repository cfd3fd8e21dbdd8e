//! MySQL and MariaDB: packets (`protocol`), getting in (`connect`, `auth`, `proof`), and a blocking session for
//! everything outside the timed window (`session`, `copy`). `channel` is the stream of packets under connect and session.
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
