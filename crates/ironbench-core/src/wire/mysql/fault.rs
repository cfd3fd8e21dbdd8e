//! Error messages for connections to MySQL.

use super::address::wanted;
use super::protocol::{Malformed, backend::ServerError};
use crate::wire::MysqlConnection;
use crate::wire::address::Address;
use crate::wire::fault::{self, not_reached, not_trusted};
use crate::{Error, Kind};

pub(super) type Fault = fault::Fault<Malformed, ServerError>;

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// The form in which users write the server's address.
const PLACE: &str = "host and port, or the path of its socket";

/// Returns the server's name in messages. Whether it is MySQL or MariaDB is known only after its greeting.
pub(super) fn server_at(address: &Address) -> String {
    format!("MySQL server at {address}")
}

/// Words the error of a failed connection attempt.
pub(super) fn cannot_connect(fault: Fault, connection: &MysqlConnection, address: &Address) -> Error {
    let server = server_at(address);
    match fault {
        Fault::Told(error) => error,
        Fault::Io(error) => not_reached(&error, server, address, PLACE),
        Fault::Tls(error) => not_trusted(&error, server, &wanted(connection)),
        Fault::Malformed(malformed) => Error::failure(server, malformed.to_string())
            .hint("check host and port: something other than MySQL or MariaDB seems to listen there"),
        Fault::Server(error) => not_admitted(&error, server, connection),
    }
}

/// Words the server's refusal of a connection. Sources of the error numbers: MySQL 8.4 Error Message Reference;
/// MariaDB, "Error Codes".
fn not_admitted(error: &ServerError, server: String, connection: &MysqlConnection) -> Error {
    let (kind, hint) = match error.number {
        1045 | 1698 => {
            (Kind::Input, "correct user and password in the DSN; an account that requires TLS needs tls=require")
        }
        1044 => (Kind::Input, "the user lacks a privilege on the database (GRANT ALL ON database.* TO user)"),
        1049 => (Kind::Input, "correct the name of the database, or create it first (CREATE DATABASE …)"),
        1130 => (Kind::Input, "create the user for the host it connects from (CREATE USER user@'%')"),
        1820 | 1862 => (Kind::Input, "set a new password first (ALTER USER)"),
        1524 => (Kind::Input, "let the user log in with mysql_native_password, caching_sha2_password or ed25519"),
        3118 | 4151 => (Kind::Input, "unlock the account first (ALTER USER … ACCOUNT UNLOCK)"),
        3159 => (Kind::Input, "use TLS (tls=require), or the server's Unix socket"),
        1040 => (Kind::Failure, "use fewer clients, or raise max_connections (of ironbench's own server by --set)"),
        1203 | 1226 => (Kind::Failure, "use fewer clients, or raise the limits of the account (ALTER USER … WITH …)"),
        1053 => (Kind::Failure, "the server is stopping: wait and try again"),
        1129 => (Kind::Failure, "the server blocks this host after many errors: run FLUSH HOSTS there"),
        _ => (Kind::Failure, ""),
    };
    let database = match connection.database.as_str() {
        "" => String::new(),
        name => format!(", database {name}"),
    };
    let subject = format!("{server}, user {}{database}", connection.user);
    Error {
        kind,
        subject,
        cause: error.to_string(),
        hint: hint.to_owned(),
        sqlstate: error.sqlstate.clone(),
        number: error.number,
    }
}
