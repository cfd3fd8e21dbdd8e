//! Error messages for connections to a directory.

use super::ber::Malformed;
use super::connect::wanted;
use super::message::{Done, code};
use crate::wire::LdapConnection;
use crate::wire::address::Address;
use crate::wire::fault::{self, not_reached, not_trusted};
use crate::{Error, Kind};

pub(super) type Fault = fault::Fault<Malformed, Done>;

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// The form in which users write the server's address.
const PLACE: &str = "host and port, or the path of its socket";

pub(super) fn server_at(address: &Address) -> String {
    format!("directory server at {address}")
}

/// Words the error of a failed connection attempt.
pub(super) fn cannot_connect(fault: Fault, connection: &LdapConnection, address: &Address) -> Error {
    let server = server_at(address);
    match fault {
        Fault::Told(error) => error,
        Fault::Io(error) => not_reached(&error, server, address, PLACE),
        Fault::Tls(error) => not_trusted(&error, server, &wanted(connection)),
        Fault::Malformed(malformed) => Error::failure(server, malformed.to_string())
            .hint("check host and port: something other than a directory server seems to listen there"),
        Fault::Server(done) => not_admitted(&done, server, connection),
    }
}

fn not_admitted(done: &Done, server: String, connection: &LdapConnection) -> Error {
    let (kind, hint) = match done.code {
        code::INVALID_CREDENTIALS => (Kind::Input, "correct DN and password in the DSN"),
        code::CONFIDENTIALITY_REQUIRED | 8 => (Kind::Input, "use TLS (tls=require, or ldaps://)"),
        7 => (Kind::Input, "choose another mechanism: simple, EXTERNAL, PLAIN or SCRAM-SHA-256"),
        48 | 53 => (Kind::Input, "bind as an entry that has a password, or allow anonymous clients on the server"),
        34 => (Kind::Input, "write the user as a DN, such as cn=admin,dc=example,dc=com"),
        code::BUSY | 52 => (Kind::Failure, "wait and try again, or use fewer clients"),
        _ => (Kind::Failure, ""),
    };
    let subject = match connection.user.as_str() {
        "" => server,
        user => format!("{server}, user {user}"),
    };
    Error {
        kind,
        subject,
        cause: done.to_string(),
        hint: hint.to_owned(),
        sqlstate: String::new(),
        number: number(done),
    }
}

/// Returns the result code as the number of an [`Error`].
pub(super) fn number(done: &Done) -> u16 {
    u16::try_from(done.code).unwrap_or(0)
}
