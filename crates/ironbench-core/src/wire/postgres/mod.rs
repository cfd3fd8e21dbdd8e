//! PostgreSQL: its messages (`protocol`), getting in (`connect`, `auth`, `tls`), and a blocking session for everything
//! outside the timed window (`session`, `copy`). `channel` is the blocking stream under connect and session.
pub mod address;
mod auth;
#[allow(dead_code)]
mod channel;
pub mod connect;
mod fault;
pub mod protocol;
mod tls;

pub use connect::{Cancel, Connected, Connector, Stream};
