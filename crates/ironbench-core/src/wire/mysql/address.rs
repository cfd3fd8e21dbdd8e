//! Derives address and TLS settings from a MySQL connection's settings.

use std::path::PathBuf;

use crate::wire::MysqlConnection;
use crate::wire::address::Address;
use crate::wire::tls::{Wanted, Words};

pub(super) fn address(connection: &MysqlConnection) -> Address {
    let MysqlConnection { socket, host, port, .. } = connection;
    match socket {
        Some(path) => Address::Unix(PathBuf::from(path)),
        None => Address::Tcp { host: host.clone(), port: *port },
    }
}

pub(super) fn wanted(connection: &MysqlConnection) -> Wanted<'_> {
    let words = Words { mode: "tls", roots: "tls_ca" };
    Wanted { mode: &connection.tls, roots: connection.tls_ca.as_deref(), identity: None, sni: true, words }
}
