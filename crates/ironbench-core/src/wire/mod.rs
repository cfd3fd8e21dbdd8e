//! Protocols of the engines: `postgres`, `mysql` and `ldap` for servers, and `sqlite` for an embedded library. The
//! module `library` contains the trait of blocking engines. All servers use the modules for connection settings
//! (`connection`), addresses, the blocking stream (`pipe`), `tls`, errors and rows. `transport` sends and receives the
//! bytes of many clients.
mod address;
mod connection;
mod fault;
mod interrupt;

pub mod digest;
pub mod ldap;
pub mod library;
pub mod mysql;
pub mod pipe;
pub mod postgres;
pub mod rows;
mod security;
mod session;
pub mod sqlite;
mod tls;
pub mod transport;
mod words;

pub use address::Address;
pub(crate) use address::Endpoint;
pub use connection::{LdapConnection, MysqlConnection, PostgresConnection, RelayAddress, Server};
pub use interrupt::Cancelling;
pub use pipe::Stream;
pub use rows::Rows;
pub use session::{Session, Wish};
pub use words::UNASKED;
