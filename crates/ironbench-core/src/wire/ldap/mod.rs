//! LDAP version 3 (RFC 4511). The module `ber` implements the basic encoding rules, `message` the messages, and
//! `connect` and `auth` open a connection. `operation` and `filter` contain operations in text form, parsed by `text`
//! and encoded by `writer`. `session` and `ldif` implement a blocking session for everything outside the measured
//! window.
mod auth;
pub mod ber;
mod connect;
pub mod filter;
mod ldif;
pub mod message;
pub mod operation;
mod session;
mod text;
mod writer;

pub use auth::OwnBind;
pub use connect::Ldap;
