//! Opens a session: name resolution, connection, TLS, bind.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustls::ClientConfig;

use super::{
    auth::{self, Mechanism},
    channel::Channel,
    fault::{Fault, cannot_connect, server_at},
    message::code,
};
use crate::wire::LdapConnection;
use crate::wire::{
    address::{Address, Endpoint, deadline_after},
    interrupt::{self, Interrupt, Wish, answers},
    pipe::{Pipe, Stream},
    security::Security,
    tls::{self, Mode, Wanted, Words},
};
use crate::{Error, Result};

/// An idle session after its bind.
#[derive(Debug)]
pub struct Connected {
    pub stream: Stream,
    /// Bytes that the server sent after its last answer. There are almost never any.
    pub unread: Vec<u8>,
}

/// Opens connections to one server as one user.
#[derive(Debug, Clone)]
pub struct Connector {
    connection: Arc<LdapConnection>,
    address: Address,
    mechanism: Mechanism,
    mode: Mode,
    /// TLS configuration; None without TLS.
    config: Option<Arc<ClientConfig>>,
}

pub(super) fn wanted(connection: &LdapConnection) -> Wanted<'_> {
    let words = Words { mode: "tls", roots: "tls_ca" };
    Wanted { mode: &connection.tls, roots: connection.tls_ca.as_deref(), identity: None, sni: true, words }
}

impl Connector {
    /// Checks `connection` and reads the trusted certificates.
    pub fn new(connection: LdapConnection) -> Result<Self> {
        let address = match &connection.socket {
            Some(path) => Address::Unix(PathBuf::from(path)),
            None => Address::Tcp { host: connection.host.clone(), port: connection.port },
        };
        let asked = Mode::of(&wanted(&connection))?;
        // A Unix socket needs no TLS, as no third party can read it.
        let mode = if address.is_unix() { Mode::Disable } else { asked };
        let config =
            if mode == Mode::Disable { None } else { Some(tls::client_config(&wanted(&connection), mode, None)?) };
        let mechanism = Mechanism::of(&connection)?;
        Ok(Self { connection: Arc::new(connection), address, mechanism, mode, config })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the suffix for DNs that end with a comma.
    pub fn base(&self) -> &str {
        &self.connection.base
    }

    /// Connects, waiting at most `connect_timeout_s` for each address of the host.
    ///
    /// # Errors
    /// Input: the server rejects the settings of the DSN (password, user, certificate, TLS).
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
        self.address.resolve().map_or(true, |found| answers(found.iter().map(|endpoint| self.greet(endpoint))))
    }

    /// Waits for any answer of the server. A TCP connection is not enough, because the kernel also accepts it for a
    /// hung server.
    fn greet(&self, endpoint: &Endpoint) -> std::result::Result<(), Fault> {
        if self.connection.ldaps {
            return self.enter(endpoint, None).map(drop);
        }
        let deadline = deadline_after(self.connection.connect_timeout_s);
        let socket = endpoint.open(self.connection.relay.as_ref(), deadline, None)?;
        let mut channel = Channel::new(Pipe::new(socket, Some(deadline)));
        channel.ask_for_tls().map(drop)
    }

    fn enter(&self, endpoint: &Endpoint, wish: Option<&Wish>) -> std::result::Result<Connected, Fault> {
        let deadline = deadline_after(self.connection.connect_timeout_s);
        let mut interrupt = wish.map(|wish| Interrupt::new(wish.clone(), None));
        let socket = endpoint.open(self.connection.relay.as_ref(), deadline, interrupt.as_mut())?;
        let mut channel = Channel::new(Pipe::new(socket, Some(deadline)));
        channel.interrupt = interrupt;
        if let Some(config) = &self.config {
            self.secure(&mut channel, config)?;
        }
        let security = Security::of(endpoint, channel.tls.is_some(), self.mode);
        let least = if self.connection.password_in_clear { Security::Plain } else { Security::least(self.mode) };
        auth::authenticate(&mut channel, &self.connection, self.mechanism, security, least)?;
        Ok(Connected { unread: channel.unread().to_vec(), stream: channel.into_pipe().into_stream() })
    }

    /// Starts TLS, immediately (`ldaps`) or with StartTLS.
    fn secure(&self, channel: &mut Channel, config: &Arc<ClientConfig>) -> std::result::Result<(), Fault> {
        if !self.connection.ldaps {
            let done = channel.ask_for_tls()?;
            if done.code != code::SUCCESS {
                if self.mode == Mode::Prefer {
                    return Ok(());
                }
                let cause =
                    format!("the server does not support TLS, but tls={} requires it: {done}", self.connection.tls);
                return Err(Error::input(server_at(&self.address), cause)
                    .hint("install a certificate on the server, or use tls=disable")
                    .into());
            }
        }
        Ok(channel.start_tls(tls::client(config, &self.connection.host)?)?)
    }
}
