//! The client protocol of MySQL and MariaDB, version 10. The module `frontend` appends packets to a caller's buffer.
//! `framing` cuts the server's packets out of a stream, and `backend` parses them. These modules do no I/O, and
//! allocate no memory during a transaction.
//!
//! Sources: MySQL 8.4 Source Code Documentation, "Client/Server Protocol"; MariaDB Knowledge Base, "MariaDB Protocol".

pub mod backend;
pub mod binary;
mod commits;
pub mod framing;
pub mod frontend;

pub use commits::{Commits, is_rollback};
pub use framing::{Framer, Malformed, Packet, Rows, is_unexpected_allowed};

/// Capabilities of client and server, negotiated at the start.
pub mod capability {
    /// A capability that MySQL sets. MariaDB does not set it, and instead announces additional capabilities with
    /// `MARIADB_…`.
    pub const LONG_PASSWORD: u64 = 1;
    /// Makes an UPDATE count all rows that it found, even if it did not change them. Other databases count in the same
    /// way.
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const LONG_FLAG: u64 = 1 << 2;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    pub const LOCAL_FILES: u64 = 1 << 7;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const SSL: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const CONNECT_ATTRS: u64 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC_DATA: u64 = 1 << 21;
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// The server omits the descriptions of columns that have not changed since the last time.
    pub const MARIADB_CACHE_METADATA: u64 = 1 << 36;

    /// Capabilities that the client requires. Every server since MySQL 5.7.5 and MariaDB 10.2 has them.
    pub const NEEDED: u64 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH | DEPRECATE_EOF;
}

/// Session status flags in each OK packet.
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
}
