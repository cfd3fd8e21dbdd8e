//! Opens a session: name resolution, connection, TLS, authentication.
//!
//! [`Connector::new`] checks everything that can be checked without a network. The connector can then open any number
//! of connections from any thread. [`Connector::connect`] returns a [`Connected`], which is idle and ready for
//! requests. To use it, create a blocking session from it, or pass its [`Stream`] to a nonblocking transport.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection};

use super::{
    address::{Address, Endpoint, deadline_after},
    channel::Channel,
    fault::Fault,
    interrupt::{self, Cancelling, Interrupt, SharedStopCheck, answers},
    pipe::{Pipe, Stream},
    protocol::{ServerProtocol, TlsAnswer},
    security::Security,
    tls::{self, Mode},
};
use crate::{Error, Result};

/// Time limit for the second connection that cancels a statement.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// An idle session.
#[derive(Debug)]
pub struct Connected<P: ServerProtocol> {
    pub stream: Stream,
    /// Bytes that the server sent after its last reply, which is rare. These bytes must be parsed before bytes that are
    /// read later.
    pub unread: Vec<u8>,
    pub state: P::State,
    pub(super) counter: P::Counter,
    pub(super) connector: Connector<P>,
}

impl<P: ServerProtocol> Connected<P> {
    /// Returns an object that cancels the session's statement. Returns None if the protocol has no such request.
    pub fn canceller(&self) -> Option<Cancel<P>> {
        self.connector.canceller(&self.state, self.stream.is_tls())
    }
}

/// A connection to a server before the log-in.
#[derive(Debug)]
pub struct UnauthenticatedConnection<G> {
    pub stream: Stream,
    /// Data that the server sent before the log-in.
    pub greeting: G,
    /// Whether the connection is secure enough to send the password itself.
    pub carries_passwords: bool,
    pub is_unix: bool,
}

/// A connection attempt at one address.
pub struct Attempt<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) deadline: Instant,
    pub(super) stop_check: Option<&'a SharedStopCheck>,
}

/// Opens connections to one server as one user.
#[derive(Debug)]
pub struct Connector<P: ServerProtocol> {
    pub(super) settings: Arc<P::Settings>,
    address: Address,
    pub(super) mode: Mode,
    /// TLS configuration, or None without TLS.
    config: Option<Arc<ClientConfig>>,
}

impl<P: ServerProtocol> Clone for Connector<P> {
    fn clone(&self) -> Self {
        let Self { settings, address, mode, config } = self;
        Self { settings: settings.clone(), address: address.clone(), mode: *mode, config: config.clone() }
    }
}

impl<P: ServerProtocol> Connector<P> {
    /// Checks the settings and reads the trusted certificates.
    pub fn new(settings: P::Settings) -> Result<Self> {
        P::check(&settings)?;
        let target = P::target(&settings);
        let requested = Mode::of(&target.tls)?;
        // As in libpq, TLS is never used on a Unix socket, because no third party can read its traffic.
        let mode = if target.address.is_unix() { Mode::Disable } else { requested };
        let config = match mode {
            Mode::Disable => None,
            mode => Some(tls::client_config(&target.tls, mode, P::ALPN)?),
        };
        let address = target.address;
        Ok(Self { settings: Arc::new(settings), address, mode, config })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the server's name in messages.
    pub(super) fn server(&self) -> String {
        format!("{} at {}", P::NAMES.server, self.address)
    }

    /// Returns the TLS configuration. Returns None without TLS.
    pub(super) fn tls(&self) -> Option<&Arc<ClientConfig>> {
        self.config.as_ref()
    }

    /// Connects, waiting at most `connect_timeout_s` for each address of the host.
    ///
    /// # Errors
    /// Input: the server rejects the settings of the DSN (password, user, database, certificate, TLS).
    /// Failure: the server cannot be reached, is full, or is not ready.
    pub fn connect(&self) -> Result<Connected<P>> {
        self.connect_unless(None)
    }

    /// Does the same as `connect`, but fails soon after `stop` becomes true.
    pub fn connect_until(&self, stop: Arc<AtomicBool>) -> Result<Connected<P>> {
        let stop_check = interrupt::shared(Box::new(move || stop.load(Ordering::Relaxed)));
        self.connect_unless(Some(&stop_check))
    }

    /// Does the same as `connect`, but fails soon after `stop_check` returns true.
    pub(super) fn connect_unless(&self, stop_check: Option<&SharedStopCheck>) -> Result<Connected<P>> {
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in self.address.resolve()? {
            match P::connect(self, &self.attempt(&endpoint, stop_check)) {
                Ok(connected) => return Ok(connected),
                Err(fault) if fault.is_interrupt() => return Err(self.cannot_connect(fault)),
                // The next address is tried only if this one cannot be reached.
                Err(fault @ Fault::Io(_)) => last = fault,
                Err(fault) => return Err(self.cannot_connect(fault)),
            }
        }
        Err(self.cannot_connect(last))
    }

    /// Connects without logging in. Uses TLS if the settings require it. A proxy calls this function for clients that
    /// log in themselves.
    ///
    /// # Errors
    /// The errors of `connect`.
    pub fn open_only(&self) -> Result<UnauthenticatedConnection<P::Greeting>> {
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in self.address.resolve()? {
            let attempt = self.attempt(&endpoint, None);
            let opened = match self.open(&attempt, self.tls().filter(|_| self.mode != Mode::Allow)) {
                Err(Fault::Tls(error)) if self.mode == Mode::Prefer && !tls::is_about_certificate(&error) => {
                    self.open(&attempt, None)
                }
                first => first,
            };
            match opened {
                Ok((channel, greeting)) => {
                    let security = Security::of(&endpoint, channel.tls.is_some(), self.mode);
                    return Ok(UnauthenticatedConnection {
                        greeting,
                        carries_passwords: security >= Security::least(self.mode),
                        is_unix: matches!(endpoint, Endpoint::Unix(_)),
                        stream: channel.into_pipe().into_stream(),
                    });
                }
                Err(fault @ Fault::Io(_)) => last = fault,
                Err(fault) => return Err(self.cannot_connect(fault)),
            }
        }
        Err(self.cannot_connect(last))
    }

    /// Connects without TLS, and reads nothing. The caller may start TLS later (`tls_session`), and
    /// `carries_passwords` is about the connection with TLS.
    ///
    /// # Errors
    /// The errors of `connect`.
    pub fn reach_only(&self) -> Result<UnauthenticatedConnection<()>> {
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in self.address.resolve()? {
            match self.reach(&self.attempt(&endpoint, None)) {
                Ok(channel) => {
                    let security = Security::of(&endpoint, self.config.is_some(), self.mode);
                    return Ok(UnauthenticatedConnection {
                        stream: channel.into_pipe().into_stream(),
                        greeting: (),
                        carries_passwords: security >= Security::least(self.mode),
                        is_unix: matches!(endpoint, Endpoint::Unix(_)),
                    });
                }
                Err(fault) => last = fault,
            }
        }
        Err(self.cannot_connect(last))
    }

    /// Returns the client's side of a new TLS session with the server. Returns None without TLS.
    ///
    /// # Errors
    /// Input: the name of the host cannot be used with TLS.
    pub fn tls_session(&self) -> Result<Option<ClientConnection>> {
        self.tls().map(|config| tls::client(config, P::target(&self.settings).tls.host)).transpose()
    }

    /// Whether the settings forbid connections without TLS.
    pub fn requires_tls(&self) -> bool {
        self.mode == Mode::Require || self.mode.verifies()
    }

    fn attempt<'a>(&self, endpoint: &'a Endpoint, stop_check: Option<&'a SharedStopCheck>) -> Attempt<'a> {
        Attempt { endpoint, deadline: deadline_after(P::target(&self.settings).timeout_s), stop_check }
    }

    fn cannot_connect(&self, fault: Fault<P>) -> Error {
        fault.of_connecting(&self.settings, self.server())
    }

    /// Whether the server answers a new connection in time.
    pub(super) fn answers(&self) -> bool {
        let wait = |endpoint: &Endpoint| P::wait_for_answer(self, &self.attempt(endpoint, None));
        self.address.resolve().map_or(true, |found| answers(found.iter().map(wait)))
    }

    /// Tries again without TLS if TLS failed in the mode `prefer`. A server may offer TLS, reject the client over TLS,
    /// and accept the client without TLS. There is no second attempt if the client rejected the server's certificate,
    /// because encryption must not be dropped silently.
    pub(super) fn or_without_tls(
        &self,
        attempt: &Attempt,
        first: std::result::Result<Connected<P>, Fault<P>>,
    ) -> std::result::Result<Connected<P>, Fault<P>> {
        match first {
            Err(Fault::Tls(error)) if self.mode == Mode::Prefer && !tls::is_about_certificate(&error) => {
                self.start(attempt, None)
            }
            first => first,
        }
    }

    /// Starts a session, with TLS if there is a `config` and the server supports it.
    pub(super) fn start(
        &self,
        attempt: &Attempt,
        config: Option<&Arc<ClientConfig>>,
    ) -> std::result::Result<Connected<P>, Fault<P>> {
        let (mut channel, greeting) = self.open(attempt, config)?;
        let security = Security::of(attempt.endpoint, channel.tls.is_some(), self.mode);
        let state = P::log_in(self, &mut channel, greeting, security)?;
        let (unread, counter) = (channel.unread().to_vec(), channel.counter);
        Ok(Connected { stream: channel.into_pipe().into_stream(), unread, state, counter, connector: self.clone() })
    }

    /// Opens a channel, with TLS if there is a `config` and the server supports it.
    pub(super) fn open(
        &self,
        attempt: &Attempt,
        config: Option<&Arc<ClientConfig>>,
    ) -> std::result::Result<(Channel<P>, P::Greeting), Fault<P>> {
        let mut channel = self.reach(attempt)?;
        let greeting = P::greeting(self, &mut channel)?;
        let Some(config) = config else {
            return Ok((channel, greeting));
        };
        let tls_settings = P::target(&self.settings).tls;
        match P::request_tls(self, &mut channel, &greeting)? {
            TlsAnswer::Accepted => channel.start_tls(tls::client(config, tls_settings.host)?)?,
            TlsAnswer::Refused(_) if self.mode == Mode::Prefer => {}
            TlsAnswer::Refused(reason) => {
                let setting = format!("{}={}", tls_settings.names.mode, tls_settings.mode);
                let cause = format!("the server does not support TLS, but {setting} requires it{reason}");
                return Err(Error::input(self.server(), cause).hint(P::NAMES.no_tls).into());
            }
        }
        Ok((channel, greeting))
    }

    /// Opens a channel without TLS.
    pub(super) fn reach(&self, attempt: &Attempt) -> std::result::Result<Channel<P>, Fault<P>> {
        let mut interrupt = attempt.stop_check.map(|stop_check| Interrupt::new(stop_check.clone(), None));
        let relay = P::target(&self.settings).relay;
        let socket = attempt.endpoint.open(relay, attempt.deadline, interrupt.as_mut())?;
        let mut channel = Channel::new(Pipe::new(socket, Some(attempt.deadline)));
        channel.interrupt = interrupt;
        Ok(channel)
    }

    /// Returns an object that cancels the statement of a session. Returns None if the protocol has no such request. The
    /// request uses TLS only if the session does.
    pub(super) fn canceller(&self, state: &P::State, over_tls: bool) -> Option<Cancel<P>> {
        let key = P::cancel_key(state)?;
        let config = self.config.clone().filter(|_| over_tls);
        Some(Cancel { connector: Self { config, ..self.clone() }, key })
    }
}

/// Cancels the statement of a session over a second connection. This works from any thread, any number of times.
pub struct Cancel<P: ServerProtocol> {
    connector: Connector<P>,
    key: P::CancelKey,
}

impl<P: ServerProtocol> Cancel<P> {
    /// Returns a function that calls `send`.
    pub fn cancelling(self) -> Cancelling {
        Box::new(move || self.send())
    }

    /// Sends the request and waits until the server has accepted it. The running statement then ends with an error
    /// (PostgreSQL: SQLSTATE 57014; MySQL: error 1317), unless it has already completed.
    pub fn send(&self) -> Result<()> {
        let connector = &self.connector;
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in connector.address.resolve()? {
            match P::cancel(connector, &Attempt { endpoint: &endpoint, deadline, stop_check: None }, &self.key) {
                Ok(()) => return Ok(()),
                Err(fault) => last = fault,
            }
        }
        Err(connector.cannot_connect(last))
    }
}
