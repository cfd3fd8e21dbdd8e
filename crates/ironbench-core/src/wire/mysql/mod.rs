//! MySQL and MariaDB. The module `protocol` contains the packets, and `connect`, `auth` and `password_proof::` open a
//! connection. `session` and `copy` implement a blocking session for everything outside the measured window.
mod auth;
mod connect;
mod copy;
mod password_proof;
pub mod protocol;
mod session;

pub use connect::Mysql;
pub use copy::CopyIn;
