//! PostgreSQL: its messages (`protocol`), getting in (`connect`, `auth`), and a blocking session for everything
//! outside the timed window (`session`, `copy`). `channel` is the stream of messages under connect and session.
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
