//! What can go wrong on a connection, before it is put into words for people.

use std::io;

use super::{
    address::Address,
    protocol::{Malformed, backend::ServerError},
};
use crate::{Error, Kind, drive::plan::Connection};

#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    Tls(rustls::Error),
    Malformed(Malformed),
    Server(Box<ServerError>),
    /// Already in words.
    Told(Error),
}

impl Fault {
    /// Somebody wanted the wait to end.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::Interrupted)
    }

    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Tls(error) => io::Error::other(error),
            Self::Malformed(malformed) => io::Error::new(io::ErrorKind::InvalidData, malformed),
            Self::Server(error) => io::Error::other(error.to_string()),
            Self::Told(error) => io::Error::other(error),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

/// How messages name the server.
pub(super) fn server_at(address: &Address) -> String {
    format!("PostgreSQL server at {address}")
}

/// Why no connection came about.
pub(super) fn cannot_connect(fault: Fault, connection: &Connection, address: &Address) -> Error {
    let server = server_at(address);
    match fault {
        Fault::Told(error) => error,
        Fault::Io(error) => not_reached(&error, server, address),
        Fault::Tls(error) => not_trusted(&error, server, connection),
        Fault::Malformed(malformed) => Error::failure(server, malformed.to_string())
            .hint("check host and port: something other than PostgreSQL seems to listen there"),
        Fault::Server(error) => not_admitted(&error, server, connection),
    }
}

fn not_reached(error: &io::Error, server: String, address: &Address) -> Error {
    use io::ErrorKind as E;
    let start =
        "start the server, or correct host and port (a host starting with / is the directory of its Unix socket)";
    match error.kind() {
        E::NotFound => Error::failure(server, "no server listens: there is no such socket").hint(start),
        E::ConnectionRefused if address.is_unix() => {
            Error::failure(server, "no server listens: the socket is a leftover of one that is gone").hint(start)
        }
        E::ConnectionRefused => Error::failure(server, "connection refused: no server listens there").hint(start),
        E::PermissionDenied => {
            Error::failure(server, "permission denied on the socket").hint("run as a user who may open that directory")
        }
        E::TimedOut => Error::failure(server, "no answer in time")
            .hint("check that the server is not overloaded or stopped and that no firewall drops the packets"),
        E::UnexpectedEof | E::ConnectionReset | E::BrokenPipe => {
            Error::failure(server, "the connection was closed before it was set up")
                .hint("the server's log says why; it may be starting, stopping or out of resources")
        }
        E::Interrupted => Error::failure(server, "interrupted while connecting"),
        _ => Error::failure(server, format!("cannot connect: {error}")),
    }
}

fn not_trusted(error: &rustls::Error, server: String, connection: &Connection) -> Error {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return Error::failure(server, format!("the TLS handshake failed: {error}"));
    };
    let hint = match reason {
        rustls::CertificateError::UnknownIssuer => match &connection.sslrootcert {
            Some(file) => format!("put the certificate of the authority that signed it into {file} (sslrootcert)"),
            None => {
                "name the authority's certificate file with sslrootcert, or use sslmode=require to encrypt without \
                     knowing whom one talks to"
                    .to_owned()
            }
        },
        rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. } => {
            "connect by a name that is in the certificate, or use sslmode=verify-ca".to_owned()
        }
        _ => String::new(),
    };
    Error::input(server, format!("its certificate is not trusted: {reason}")).hint(hint)
}

/// The server answered and said no. Codes: PostgreSQL documentation, appendix A.
fn not_admitted(error: &ServerError, server: String, connection: &Connection) -> Error {
    let (kind, hint) = match error.sqlstate.as_str() {
        "28P01" => (Kind::Input, "correct the password: in the DSN, in PGPASSWORD or in ~/.pgpass"),
        "28000" if error.message.contains("does not exist") => {
            (Kind::Input, "correct the user, or create the role on the server (CREATE ROLE … LOGIN)")
        }
        "28000" => (Kind::Input, "the server's pg_hba.conf decides who may connect from where, with and without TLS"),
        "3D000" => (Kind::Input, "correct the database name, or create it first (createdb)"),
        "42501" => (Kind::Input, "the role lacks a right it needs to connect (GRANT CONNECT)"),
        "22023" | "42704" | "42601" | "55P02" => (Kind::Input, "correct the run-time parameters of the connection"),
        "53300" => (Kind::Failure, "use fewer clients or raise max_connections on the server"),
        "57P03" => (Kind::Failure, "the server is starting, stopping or recovering: wait and try again"),
        _ => (Kind::Failure, ""),
    };
    let hint = if hint.is_empty() { error.hint.as_str() } else { hint };
    let subject = format!("{server}, user {}, database {}", connection.user, connection.database);
    Error { kind, subject, cause: error.to_string(), hint: hint.to_owned(), sqlstate: error.sqlstate.clone() }
}
