//! Protocols of the engines: `postgres`, `mysql` and `ldap` for servers, and `sqlite` for an embedded library. The
//! module `library` contains the trait of blocking engines. `connector` opens connections to any server, and `session`
//! runs statements on them, outside the measured window. `protocol` and `session` contain the traits that a server's
//! protocol implements. `channel` cuts messages out of a blocking stream (`pipe`), and `fault` formats the error
//! messages. `transport` sends and receives the bytes of many clients.
mod address;
mod channel;
mod connection;
mod connector;
mod display;
mod fault;
mod interrupt;
mod pipe;
mod protocol;
mod security;
mod session;
mod tls;

pub mod digest;
pub mod ldap;
pub mod library;
pub mod mysql;
pub mod postgres;
pub mod rows;
pub mod sqlite;
pub mod transport;

pub use address::Address;
pub(crate) use address::Endpoint;
pub use connection::{LdapConnection, MysqlConnection, PostgresConnection, RelayAddress, Server};
pub use connector::{Cancel, Connected, Connector, UnauthenticatedConnection};
pub use display::UNEXPECTED;
pub use interrupt::Cancelling;
pub use pipe::Stream;
pub use protocol::ServerProtocol;
pub use rows::Rows;
pub use session::{Session, SessionProtocol, StopCheck};
