//! LDAP version 3 (RFC 4511): basic encoding rules (`ber`), messages (`message`), operations in text form (`operation`,
//! `filter`, parsed by `text`, encoded by `writer`), connecting (`connect`, `auth`),
//! and a blocking session for everything outside the measured window (`session`, `ldif`).
mod auth;
pub mod ber;
mod channel;
pub mod connect;
mod fault;
pub mod filter;
mod ldif;
pub mod message;
pub mod operation;
pub mod session;
mod text;
mod writer;

pub use auth::OwnBind;
pub use connect::{Connected, Connector};
pub use session::Session;
