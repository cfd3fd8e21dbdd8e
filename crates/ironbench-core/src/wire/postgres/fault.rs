//! Error messages for connections to PostgreSQL.

use super::address::wanted;
use super::protocol::{Malformed, backend::ServerError};
use crate::wire::PostgresConnection;
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
const PLACE: &str = "host and port (a host starting with / is the directory of its Unix socket)";

/// Returns the server's name in messages.
pub(super) fn server_at(address: &Address) -> String {
    format!("PostgreSQL server at {address}")
}

/// Words the error of a failed connection attempt.
pub(super) fn cannot_connect(fault: Fault, connection: &PostgresConnection, address: &Address) -> Error {
    let server = server_at(address);
    match fault {
        Fault::Told(error) => error,
        Fault::Io(error) => not_reached(&error, server, address, PLACE),
        Fault::Tls(error) => not_trusted(&error, server, &wanted(connection)),
        Fault::Malformed(malformed) => Error::failure(server, malformed.to_string())
            .hint("check host and port: something other than PostgreSQL seems to listen there"),
        Fault::Server(error) => not_admitted(&error, server, connection),
    }
}

/// Words the server's refusal of a connection. Source of the codes: PostgreSQL documentation, appendix A.
fn not_admitted(error: &ServerError, server: String, connection: &PostgresConnection) -> Error {
    let (kind, hint) = match error.sqlstate.as_str() {
        "28P01" => (Kind::Input, "correct the password: in the DSN, in PGPASSWORD or in ~/.pgpass"),
        "28000" if error.message.contains("does not exist") => {
            (Kind::Input, "correct the user, or create the role on the server (CREATE ROLE … LOGIN)")
        }
        "28000" => (Kind::Input, "the server's pg_hba.conf decides who may connect from where, with and without TLS"),
        "3D000" => (Kind::Input, "correct the database name, or create it first (createdb)"),
        "42501" => (Kind::Input, "the role lacks the privilege to connect (GRANT CONNECT)"),
        "22023" | "42704" | "42601" | "55P02" => (Kind::Input, "correct the run-time parameters of the connection"),
        "53300" => (Kind::Failure, "use fewer clients, or raise max_connections (of ironbench's own server by --set)"),
        "57P03" => (Kind::Failure, "the server is starting, stopping or recovering: wait and try again"),
        _ => (Kind::Failure, ""),
    };
    let hint = if hint.is_empty() { error.hint.as_str() } else { hint };
    let subject = format!("{server}, user {}, database {}", connection.user, connection.database);
    Error {
        kind,
        subject,
        cause: error.to_string(),
        hint: hint.to_owned(),
        sqlstate: error.sqlstate.clone(),
        number: 0,
    }
}
