//! Errors of a connection to a server, with the details that messages for users need.

use std::io;

use super::address::Address;
use super::protocol::{ErrorCodes, ServerProtocol};
use super::tls::{Mode, TlsSettings, Version1};
use crate::Error;

/// An error that makes the stream unusable.
#[derive(Debug)]
pub enum Broken {
    Io(io::Error),
    Tls(rustls::Error),
}

impl Broken {
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Tls(error) => io::Error::other(error),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// An error of a connection.
#[derive(Debug)]
pub enum Fault<P: ServerProtocol> {
    Io(io::Error),
    Tls(rustls::Error),
    Malformed(P::Malformed),
    Server(Box<P::ServerError>),
    /// An error that already is a message for users.
    Reported(Error),
}

impl<P: ServerProtocol> Fault<P> {
    /// Whether the wait was interrupted by the caller.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::Interrupted)
    }

    pub fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Tls(error) => io::Error::other(error),
            Self::Malformed(malformed) => io::Error::new(io::ErrorKind::InvalidData, malformed),
            Self::Server(error) => io::Error::other(error.to_string()),
            Self::Reported(error) => io::Error::other(error.cause),
        }
    }

    /// Converts the error of a failed connection attempt into a message for users. `server` is the server's name in
    /// messages.
    pub fn of_connecting(self, settings: &P::Settings, server: String) -> Error {
        let target = P::target(settings);
        match self {
            Self::Reported(error) => error,
            Self::Io(error) => not_reached(&error, server, &target.address, P::NAMES.place),
            Self::Tls(error) => not_trusted(&error, server, &target.tls),
            Self::Malformed(malformed) => Error::failure(server, malformed.to_string())
                .hint(format!("check host and port: something other than {} seems to listen there", P::NAMES.products)),
            Self::Server(error) => {
                let (kind, hint) = P::admission(&error);
                let ErrorCodes { sqlstate, number } = P::codes(&error);
                Error {
                    kind,
                    subject: format!("{server}{}", P::user(settings)),
                    cause: error.to_string(),
                    hint: hint.to_owned(),
                    sqlstate: sqlstate.to_owned(),
                    number,
                }
            }
        }
    }
}

impl<P: ServerProtocol> From<Broken> for Fault<P> {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Io(error) => Self::Io(error),
            Broken::Tls(error) => Self::Tls(error),
        }
    }
}

impl<P: ServerProtocol> From<io::Error> for Fault<P> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<P: ServerProtocol> From<Error> for Fault<P> {
    fn from(error: Error) -> Self {
        Self::Reported(error)
    }
}

/// Returns the error for a server that could not be reached. `place` describes where users write the server's address,
/// for the hint.
fn not_reached(error: &io::Error, server: String, address: &Address, place: &str) -> Error {
    use io::ErrorKind as E;
    let start = format!("start the server, or correct {place}");
    match error.kind() {
        E::NotFound => Error::failure(server, "no server listens: the socket does not exist").hint(start),
        E::ConnectionRefused if address.is_unix() => {
            Error::failure(server, "no server listens: the socket was left by a server that has ended").hint(start)
        }
        E::ConnectionRefused => Error::failure(server, "connection refused: no server listens there").hint(start),
        E::PermissionDenied => Error::failure(server, "permission denied on the socket")
            .hint("run as a user with permission to open that directory"),
        E::TimedOut => Error::failure(server, "no answer in time")
            .hint("check that the server is not overloaded or stopped and that no firewall drops the packets"),
        E::UnexpectedEof | E::ConnectionReset | E::BrokenPipe => {
            Error::failure(server, "the connection was closed before it was established")
                .hint("see the server's log: the server may be starting, stopping or out of resources")
        }
        E::Interrupted => Error::failure(server, "interrupted while connecting"),
        _ => Error::failure(server, format!("cannot connect: {error}")),
    }
}

fn not_trusted(error: &rustls::Error, server: String, settings: &TlsSettings) -> Error {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return Error::failure(server, format!("the TLS handshake failed: {error}"));
    };
    let (mode, roots) = (settings.names.mode, settings.names.roots);
    if let rustls::CertificateError::Other(other) = reason
        && other.0.is::<Version1>()
    {
        let verifies = Mode::of(settings).is_ok_and(Mode::verifies);
        let way_out = if verifies { format!("{mode}=require without {roots}") } else { format!("{mode}=disable") };
        return Error::input(server, "the certificate has version 1, which cannot be verified").hint(format!(
            "create one with version 3 (openssl x509 -req -extfile, with subjectAltName), or use {way_out}"
        ));
    }
    let hint = match reason {
        rustls::CertificateError::UnknownIssuer => match settings.roots {
            Some(file) => format!("add the certificate of its CA to {file} ({roots})"),
            None => format!(
                "set {roots} to the CA's certificate file, or use {mode}=require to encrypt without \
                 verifying the server"
            ),
        },
        rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. } => {
            format!("connect with a name that is in the certificate, or use {mode}=verify-ca")
        }
        _ if Mode::of(settings).is_ok_and(|mode| !mode.verifies()) => {
            format!("replace the server's certificate, or use {mode}=disable")
        }
        _ => String::new(),
    };
    Error::input(server, format!("the certificate is not trusted: {reason}")).hint(hint)
}
