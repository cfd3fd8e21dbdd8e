//! Opens a session: name resolution, connection, TLS, startup, authentication.
//!
//! [`Connector::new`] checks everything that can be checked without a network.
//! The connector can then open any number of connections from any thread.
//! [`Connector::connect`] returns a [`Connected`], which is idle and ready for queries.
//! A blocking session is created from it, or its [`Stream`] is passed to a nonblocking transport.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustls::ClientConfig;

use super::{
    address::{address, wanted},
    auth,
    channel::Channel,
    fault::{Fault, cannot_connect, server_at},
    protocol::{
        Malformed, Rows,
        backend::{backend_key, parameter_status, server_error, tag},
        frontend, is_unasked_allowed,
    },
};
use crate::wire::PostgresConnection;
use crate::wire::{
    address::{Address, Endpoint, deadline_after},
    interrupt::{self, Cancelling, Interrupt, Wish, answers},
    pipe::{Pipe, Stream},
    security::Security,
    tls::{self, Mode},
};
use crate::{Error, Result};

/// ALPN protocol name, which libpq sends since version 17. Older servers ignore it.
const PROTOCOL: &[u8] = b"postgresql";
/// Maximum number of session parameters that are kept. PostgreSQL 18 reports 15.
pub(super) const MOST_PARAMETERS: usize = 1000;
/// Time limit for a cancel request, which the server answers by closing the connection.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// An idle session.
#[derive(Debug)]
pub struct Connected {
    pub stream: Stream,
    /// Bytes that the server sent after ReadyForQuery. There are almost never any. They must be parsed before further
    /// bytes.
    pub unread: Vec<u8>,
    /// Parameters that the server reported at startup: `server_version`, `TimeZone`, …
    pub parameters: Vec<(String, String)>,
    pub backend_pid: i32,
    pub cancel: Cancel,
}

/// A connection attempt at one address.
struct Attempt<'a> {
    endpoint: &'a Endpoint,
    deadline: Instant,
    wish: Option<&'a Wish>,
}

/// Opens connections to one server as one user.
#[derive(Debug, Clone)]
pub struct Connector {
    connection: Arc<PostgresConnection>,
    address: Address,
    mode: Mode,
    /// TLS configuration; None without TLS.
    config: Option<Arc<ClientConfig>>,
}

impl Connector {
    /// Checks `connection` and reads the trusted certificates.
    pub fn new(connection: PostgresConnection) -> Result<Self> {
        let texts = [&connection.host, &connection.user, &connection.database];
        let options = connection.options.iter().flat_map(|(name, value)| [name, value]);
        if texts.into_iter().chain(options).any(|text| frontend::has_zero_byte(text)) {
            return Err(Error::input("connection", "host, user, database and options must not contain a zero byte"));
        }
        let address = address(&connection);
        // As in libpq, TLS is never used on a Unix socket, which no third party can read.
        let mode = if address.is_unix() {
            Mode::of(&wanted(&connection)).map(|_| Mode::Disable)?
        } else {
            Mode::of(&wanted(&connection))?
        };
        let config = if mode == Mode::Disable {
            None
        } else {
            Some(tls::client_config(&wanted(&connection), mode, Some(PROTOCOL))?)
        };
        Ok(Self { connection: Arc::new(connection), address, mode, config })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects, waiting at most `connect_timeout_s` for each address of the host.
    ///
    /// # Errors
    /// Input: the server rejects the settings of the DSN (password, user, database, certificate, TLS).
    /// Failure: the server cannot be reached, is full, or is not ready.
    pub fn connect(&self) -> Result<Connected> {
        self.connect_unless(None)
    }

    /// Does the same as `connect`, but fails soon after `stop` becomes true.
    pub fn connect_until(&self, stop: Arc<AtomicBool>) -> Result<Connected> {
        let wish = interrupt::wish(Box::new(move || stop.load(Ordering::Relaxed)));
        self.connect_unless(Some(&wish))
    }

    /// Does the same as `connect`, but fails soon after `wish` becomes true.
    pub(super) fn connect_unless(&self, wish: Option<&Wish>) -> Result<Connected> {
        let told = |fault| cannot_connect(fault, &self.connection, &self.address);
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in self.address.resolve()? {
            match self.enter(&endpoint, wish) {
                Ok(connected) => return Ok(connected),
                Err(fault) if fault.is_interrupt() => return Err(told(fault)),
                // Another address is tried only if this one cannot be reached.
                Err(fault @ Fault::Io(_)) => last = fault,
                Err(fault) => return Err(told(fault)),
            }
        }
        Err(told(last))
    }

    /// Whether the server answers a new connection in time.
    pub(super) fn answers(&self) -> bool {
        self.address.resolve().map_or(true, |found| answers(found.iter().map(|endpoint| self.enter(endpoint, None))))
    }

    fn enter(&self, endpoint: &Endpoint, wish: Option<&Wish>) -> std::result::Result<Connected, Fault> {
        let attempt = Attempt { endpoint, deadline: deadline_after(self.connection.connect_timeout_s), wish };
        if self.mode == Mode::Allow {
            return match self.start(&attempt, None) {
                Err(Fault::Server(error)) if error.sqlstate == "28000" => self.start(&attempt, self.config.as_ref()),
                result => result,
            };
        }
        match self.start(&attempt, self.config.as_ref()) {
            // With `prefer`, a server that offers TLS but rejects the client over TLS may accept the client without
            // TLS. The attempt fails if the client rejects the server's certificate, because encryption must not be
            // dropped silently.
            Err(Fault::Tls(error)) if self.mode == Mode::Prefer && !tls::is_about_certificate(&error) => {
                self.start(&attempt, None)
            }
            Err(Fault::Server(error)) if self.mode == Mode::Prefer && error.sqlstate == "28000" => {
                self.start(&attempt, None).map_err(|_| Fault::Server(error))
            }
            result => result,
        }
    }

    fn start(&self, attempt: &Attempt, config: Option<&Arc<ClientConfig>>) -> std::result::Result<Connected, Fault> {
        let mut channel = self.open(attempt, config)?;
        let PostgresConnection { user, database, options, .. } = &*self.connection;
        let ours = [("client_encoding", "UTF8"), ("application_name", "ironbench")];
        let ours = ours.into_iter().filter(|(name, _)| options.iter().all(|(given, _)| given != name));
        let given = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let names = [("user", user.as_str()), ("database", database.as_str())];
        frontend::startup(&mut channel.output, names.into_iter().chain(ours).chain(given));
        channel.flush()?;
        let end_point = channel.tls.as_deref().and_then(tls::server_end_point);
        let security = Security::of(attempt.endpoint, channel.tls.is_some(), self.mode);
        auth::authenticate(&mut channel, &self.connection, security, end_point)?;
        self.settle(channel)
    }

    /// Opens a channel, with TLS if requested and available.
    fn open(&self, attempt: &Attempt, config: Option<&Arc<ClientConfig>>) -> std::result::Result<Channel, Fault> {
        let mut interrupt = attempt.wish.map(|wish| Interrupt::new(wish.clone(), None));
        let socket = attempt.endpoint.open(self.connection.relay.as_ref(), attempt.deadline, interrupt.as_mut())?;
        let mut channel = Channel::new(Pipe::new(socket, Some(attempt.deadline)));
        channel.interrupt = interrupt;
        let Some(config) = config else {
            return Ok(channel);
        };
        if self.connection.sslnegotiation == "direct" {
            channel.start_tls(tls::client(config, &self.connection.host)?)?;
            return Ok(channel);
        }
        frontend::ssl_request(&mut channel.output);
        channel.flush()?;
        match channel.read_byte()? {
            b'S' => channel.start_tls(tls::client(config, &self.connection.host)?)?,
            b'N' if self.mode == Mode::Prefer => {}
            b'N' => {
                let cause =
                    format!("the server does not support TLS, but sslmode={} requires it", self.connection.sslmode);
                return Err(Error::input(server_at(&self.address), cause)
                    .hint("enable TLS on the server (ssl = on), or use sslmode=prefer")
                    .into());
            }
            // The server sent an error instead of an answer. The text is unauthenticated and must not be shown to users
            // (CVE-2024-10977).
            b'E' => {
                return Err(Error::failure(
                    server_at(&self.address),
                    "the server answered the TLS request with an error",
                )
                .hint("see the server's log")
                .into());
            }
            _ => return Err(Fault::Malformed(Malformed::Nonsense)),
        }
        Ok(channel)
    }

    /// Reads the server's messages between authentication and the first ReadyForQuery.
    fn settle(&self, mut channel: Channel) -> std::result::Result<Connected, Fault> {
        let mut parameters = Vec::new();
        let (mut backend_pid, mut secret) = (0, 0);
        loop {
            let message = channel.next(Rows::Keep)?;
            match message.tag {
                tag::PARAMETER_STATUS => {
                    let (name, value) = parameter_status(message.body)?;
                    if parameters.len() < MOST_PARAMETERS {
                        parameters.push((name.to_owned(), value.to_owned()));
                    }
                }
                tag::BACKEND_KEY_DATA => (backend_pid, secret) = backend_key(message.body)?,
                tag::READY_FOR_QUERY => break,
                tag::ERROR_RESPONSE => return Err(Fault::Server(Box::new(server_error(message.body)))),
                tag::NOTICE_RESPONSE | tag::NEGOTIATE_PROTOCOL_VERSION => {}
                _ => return Err(Fault::Malformed(Malformed::Nonsense)),
            }
        }
        if !is_unasked_allowed(channel.unread()) {
            return Err(Malformed::Unasked.into());
        }
        let unread = channel.unread().to_vec();
        let cancel = Cancel {
            connector: Self { config: channel.tls.as_ref().and(self.config.clone()), ..self.clone() },
            backend_pid,
            secret,
        };
        let stream = channel.into_pipe().into_stream();
        Ok(Connected { stream, unread, parameters, backend_pid, cancel })
    }
}

/// Asks the server to cancel the statement of a session. It can be used from any thread, any number of times.
#[derive(Clone)]
pub struct Cancel {
    connector: Connector,
    backend_pid: i32,
    secret: i32,
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cancel {{ backend_pid: {} }}", self.backend_pid)
    }
}

impl Cancel {
    /// Returns a function that calls `send`.
    pub fn cancelling(&self) -> Cancelling {
        let cancel = self.clone();
        Box::new(move || cancel.send())
    }

    /// Sends the request and waits until the server has accepted it.
    /// The running statement then ends with SQLSTATE 57014, unless it has already completed.
    pub fn send(&self) -> Result<()> {
        let connector = &self.connector;
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in connector.address.resolve()? {
            let attempt = Attempt { endpoint: &endpoint, deadline, wish: None };
            let sent = connector.open(&attempt, connector.config.as_ref()).and_then(|mut channel| {
                frontend::cancel_request(&mut channel.output, self.backend_pid, self.secret);
                channel.flush()?;
                // The server answers by closing the connection. The request has been sent, however this wait ends.
                let _ = channel.next(Rows::Skip);
                Ok(())
            });
            match sent {
                Ok(()) => return Ok(()),
                Err(fault) => last = fault,
            }
        }
        Err(cannot_connect(last, &connector.connection, &connector.address))
    }
}
