//! Derives address and TLS settings from a PostgreSQL connection's settings.

use std::path::PathBuf;

use crate::wire::PostgresConnection;
use crate::wire::address::Address;
use crate::wire::tls::{Wanted, Words};

/// Returns the address.
/// As in libpq, a host that starts with `/` is the directory of a Unix socket, and `@` marks an abstract socket.
pub(super) fn address(connection: &PostgresConnection) -> Address {
    let PostgresConnection { host, hostaddr, port, .. } = connection;
    if host.starts_with(['/', '@']) && hostaddr.is_none() {
        Address::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{port}")))
    } else {
        Address::Tcp { host: hostaddr.as_ref().unwrap_or(host).clone(), port: *port }
    }
}

pub(super) fn wanted(connection: &PostgresConnection) -> Wanted<'_> {
    let words = Words { mode: "sslmode", roots: "sslrootcert" };
    Wanted {
        mode: &connection.sslmode,
        roots: connection.sslrootcert.as_deref(),
        identity: connection.sslcert.as_deref().zip(connection.sslkey.as_deref()),
        sni: connection.sslsni,
        words,
    }
}
