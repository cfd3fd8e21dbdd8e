//! How engines are talked to: `postgres`, `mysql`, `ldap` and `sqlite`; `library` is what those have in common that are called. What the wires of servers share: where a server listens
//! (`address`), the blocking stream to it (`pipe`), `tls`, faults and rows; `transport` carries bytes of many clients.
mod address;
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
pub use interrupt::Cancelling;
pub use pipe::Stream;
pub use rows::Rows;
pub use session::{Session, Wish};
pub use words::UNASKED;
