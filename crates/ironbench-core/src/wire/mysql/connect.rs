//! Opens a session: name resolution, connection, greeting, TLS, authentication.
//!
//! [`Connector::new`] checks everything that can be checked without a network.
//! The connector can then open any number of connections from any thread.
//! [`Connector::connect`] returns a [`Connected`], which is idle and ready for commands.

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
    auth::{self, Method},
    channel::Channel,
    fault::{Fault, cannot_connect, server_at},
    protocol::{
        Malformed, Rows,
        backend::{Done, Greeting, head, server_error},
        capability as can,
        frontend::{self, Introduction},
        is_unasked_allowed,
    },
};
use crate::wire::MysqlConnection;
use crate::wire::{
    address::{Address, Endpoint, deadline_after},
    interrupt::{self, Cancelling, Interrupt, Wish, answers},
    pipe::{Pipe, Stream},
    security::Security,
    tls::{self, Mode},
};
use crate::{Error, Result};

/// Time limit for a second connection and the command on it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Capabilities requested from a server that offers them, including the required ones.
const WANTED: u64 = can::NEEDED
    | can::LONG_PASSWORD
    | can::FOUND_ROWS
    | can::LONG_FLAG
    | can::LOCAL_FILES
    | can::TRANSACTIONS
    | can::MULTI_STATEMENTS
    | can::MULTI_RESULTS
    | can::PS_MULTI_RESULTS
    | can::CONNECT_ATTRS
    | can::PLUGIN_AUTH_LENENC_DATA
    | can::MARIADB_CACHE_METADATA;

/// An idle session.
#[derive(Debug)]
pub struct Connected {
    pub stream: Stream,
    /// Bytes that the server sent after its last reply. There are almost never any. They must be parsed before further
    /// bytes.
    pub unread: Vec<u8>,
    pub version: String,
    /// The negotiated capabilities.
    pub capabilities: u64,
    pub connection_id: u32,
    pub cancel: Cancel,
}

impl Connected {
    /// Whether the server omits descriptions of a prepared statement's columns that have not changed.
    pub fn caches_columns(&self) -> bool {
        self.capabilities & can::MARIADB_CACHE_METADATA != 0
    }
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
    connection: Arc<MysqlConnection>,
    address: Address,
    mode: Mode,
    /// TLS configuration; None without TLS.
    config: Option<Arc<ClientConfig>>,
    program: &'static str,
}

impl Connector {
    /// Checks `connection` and reads the trusted certificates.
    pub fn new(connection: MysqlConnection) -> Result<Self> {
        let texts = [&connection.host, &connection.user, &connection.database];
        if texts.into_iter().any(|text| text.contains('\0')) {
            return Err(Error::input("connection", "host, user and database must not contain a zero byte"));
        }
        let address = address(&connection);
        // A Unix socket needs no TLS, as no third party can read it.
        let asked = Mode::of(&wanted(&connection))?;
        let mode = if address.is_unix() { Mode::Disable } else { asked };
        let config =
            if mode == Mode::Disable { None } else { Some(tls::client_config(&wanted(&connection), mode, None)?) };
        Ok(Self { connection: Arc::new(connection), address, mode, config, program: "ironbench" })
    }

    /// Sets the name under which the server shows the connections (`program_name` in `session_connect_attrs`).
    pub fn named(self, program: &'static str) -> Self {
        Self { program, ..self }
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
            match self.enter(&Attempt {
                endpoint: &endpoint,
                deadline: deadline_after(self.connection.connect_timeout_s),
                wish,
            }) {
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
        self.address.resolve().map_or(true, |found| {
            answers(found.iter().map(|endpoint| {
                self.enter(&Attempt {
                    endpoint,
                    deadline: deadline_after(self.connection.connect_timeout_s),
                    wish: None,
                })
            }))
        })
    }

    fn enter(&self, attempt: &Attempt) -> std::result::Result<Connected, Fault> {
        match self.start(attempt, self.config.as_ref()) {
            // With `prefer`, a server that offers TLS but rejects the client over TLS may accept the client without
            // TLS. The attempt fails if the client rejects the server's certificate, because encryption must not be
            // dropped silently.
            Err(Fault::Tls(error)) if self.mode == Mode::Prefer && !tls::is_about_certificate(&error) => {
                self.start(attempt, None)
            }
            result => result,
        }
    }

    fn start(&self, attempt: &Attempt, config: Option<&Arc<ClientConfig>>) -> std::result::Result<Connected, Fault> {
        let mut interrupt = attempt.wish.map(|wish| Interrupt::new(wish.clone(), None));
        let socket = attempt.endpoint.open(self.connection.relay.as_ref(), attempt.deadline, interrupt.as_mut())?;
        let mut channel = Channel::new(Pipe::new(socket, Some(attempt.deadline)));
        channel.interrupt = interrupt;
        let greeting = greeting(&mut channel)?;
        if greeting.capabilities & can::NEEDED != can::NEEDED {
            return Err(self.too_old(&greeting.version).into());
        }
        let mut capabilities = greeting.capabilities & WANTED;
        if !self.connection.database.is_empty() {
            capabilities |= can::CONNECT_WITH_DB;
        }
        if let Some(config) = config {
            capabilities |= self.secure(&mut channel, config, greeting.capabilities, capabilities)?;
        }
        // Without TLS, the server accepts the password itself only over a Unix socket, not over loopback.
        let encrypted = channel.tls.is_some();
        let security = if encrypted || self.address.is_unix() {
            Security::of(attempt.endpoint, encrypted, self.mode)
        } else {
            Security::Plain
        };
        self.introduce(&mut channel, &greeting, capabilities, security)?;
        for sql in &self.connection.init {
            frontend::query(&mut channel.output, sql);
            channel.flush()?;
            settled(&mut channel)?;
        }
        let cancel = Cancel {
            connector: Self { config: channel.tls.as_ref().and(self.config.clone()), ..self.clone() },
            connection_id: greeting.connection_id,
        };
        if !is_unasked_allowed(channel.unread()) {
            return Err(Malformed::Unasked.into());
        }
        Ok(Connected {
            unread: channel.unread().to_vec(),
            stream: channel.into_pipe().into_stream(),
            version: greeting.version,
            capabilities,
            connection_id: greeting.connection_id,
            cancel,
        })
    }

    /// Switches to TLS if the server offers it. Returns the negotiated capability flag.
    fn secure(
        &self,
        channel: &mut Channel,
        config: &Arc<ClientConfig>,
        offered: u64,
        capabilities: u64,
    ) -> std::result::Result<u64, Fault> {
        if offered & can::SSL == 0 {
            if self.mode == Mode::Prefer {
                return Ok(0);
            }
            let cause = format!("the server does not support TLS, but tls={} requires it", self.connection.tls);
            return Err(Error::input(server_at(&self.address), cause)
                .hint("install a certificate on the server (ssl_cert, ssl_key), or use tls=prefer")
                .into());
        }
        // Plain text that was injected after the greeting must not be taken for a packet received over TLS.
        if !channel.unread().is_empty() {
            return Err(Malformed::Nonsense.into());
        }
        let sequence = channel.sequence;
        frontend::ssl_request(&mut channel.output, sequence, capabilities | can::SSL);
        channel.sequence = sequence.wrapping_add(1);
        channel.flush()?;
        channel.start_tls(tls::client(config, &self.connection.host)?)?;
        Ok(can::SSL)
    }

    fn introduce(
        &self,
        channel: &mut Channel,
        greeting: &Greeting,
        capabilities: u64,
        security: Security,
    ) -> std::result::Result<(), Fault> {
        let MysqlConnection { user, database, password, .. } = &*self.connection;
        let password = password.as_deref().unwrap_or_default().as_bytes();
        // An unknown method may be the server's default rather than this user's.
        // If so, the server requests another one.
        let method = Method::of(greeting.plugin.as_bytes()).unwrap_or(Method::Native);
        let proof = method.proof(password, &greeting.nonce)?;
        let introduction =
            Introduction { capabilities, user, database, plugin: method.name(), proof: &proof, program: self.program };
        let sequence = channel.sequence;
        frontend::introduction(&mut channel.output, sequence, &introduction);
        channel.flush()?;
        auth::authenticate(channel, method, password, security, Security::least(self.mode))
    }

    fn too_old(&self, version: &str) -> Error {
        let cause = format!("version {version} is too old for ironbench");
        Error::input(server_at(&self.address), cause).hint("use MySQL 5.7.5 or MariaDB 10.2, or a later one")
    }
}

fn greeting(channel: &mut Channel) -> std::result::Result<Greeting, Fault> {
    let body = channel.next(Rows::Keep)?;
    match body.first() {
        Some(&head::ERROR) => Err(Fault::Server(Box::new(server_error(body)))),
        _ => Ok(Greeting::read(body)?),
    }
}

/// Reads the reply to a statement that returns no rows.
fn settled(channel: &mut Channel) -> std::result::Result<(), Fault> {
    loop {
        let body = channel.next(Rows::Keep)?;
        match body.first() {
            Some(&head::OK) if Done::read(body)?.has_more() => {}
            Some(&head::OK) => return Ok(()),
            Some(&head::ERROR) => return Err(Fault::Server(Box::new(server_error(body)))),
            _ => return Err(Error::input("connection", "a statement of `init` returns rows").into()),
        }
    }
}

/// Cancels the statement of a session with KILL QUERY on a second connection. It can be used from any thread, any
/// number of times.
#[derive(Clone)]
pub struct Cancel {
    connector: Connector,
    connection_id: u32,
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cancel {{ connection: {} }}", self.connection_id)
    }
}

impl Cancel {
    /// Returns a function that calls `send`.
    pub fn cancelling(&self) -> Cancelling {
        let cancel = self.clone();
        Box::new(move || cancel.send())
    }

    /// Connects and waits until the server has executed the KILL QUERY. The running statement then ends with error 1317
    /// (SQLSTATE 70100), unless it has already completed.
    pub fn send(&self) -> Result<()> {
        let connector = &self.connector;
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let mut last = Fault::Io(io::ErrorKind::AddrNotAvailable.into());
        for endpoint in connector.address.resolve()? {
            match self.send_to(&Attempt { endpoint: &endpoint, deadline, wish: None }) {
                Ok(()) => return Ok(()),
                Err(fault) => last = fault,
            }
        }
        Err(cannot_connect(last, &connector.connection, &connector.address))
    }

    fn send_to(&self, attempt: &Attempt) -> std::result::Result<(), Fault> {
        let connected = self.connector.enter(attempt)?;
        let mut channel = Channel::new(Pipe::resume(connected.stream, connected.unread));
        channel.deadline = Some(attempt.deadline);
        frontend::query(&mut channel.output, &format!("KILL QUERY {}", self.connection_id));
        channel.flush()?;
        settled(&mut channel)?;
        frontend::quit(&mut channel.output);
        Ok(channel.flush()?)
    }
}
