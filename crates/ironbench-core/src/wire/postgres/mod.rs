//! PostgreSQL: its messages (`protocol`), getting in (`connect`, `auth`, `tls`), and a blocking session for everything
//! outside the timed window (`session`, `copy`). `channel` is the blocking stream under connect and session.
pub mod address;
mod auth;
mod channel;
pub mod connect;
pub mod copy;
mod fault;
mod interrupt;
pub mod protocol;
pub mod rows;
pub mod session;
mod tls;

pub use connect::{Cancel, Connected, Connector, Stream};
pub use copy::CopyIn;
pub use rows::Rows;
pub use session::Session;
