//! The steps of a MySQL connection: greeting, TLS, authentication.

use std::path::PathBuf;

use super::{
    auth::{self, Method},
    protocol::{
        Framer, Malformed, Rows,
        backend::{Done, Greeting, ServerError, head, server_error},
        capability as can,
        frontend::{self, HandshakeResponse},
        is_unexpected_allowed,
    },
};
use crate::wire::{
    MysqlConnection,
    address::Address,
    channel::Channel,
    connector::{self, Attempt},
    fault,
    pipe::Pipe,
    protocol::{ErrorCodes, ProtocolNames, ServerProtocol, Target, TlsAnswer},
    security::Security,
    tls::{SettingNames, TlsSettings},
};
use crate::{Error, Kind, Result};

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

/// The client protocol of MySQL and MariaDB. The counter of a channel is the sequence number of the next packet.
#[derive(Debug, Clone, Copy)]
pub struct Mysql;

pub(super) type Fault = fault::Fault<Mysql>;
type Connected = connector::Connected<Mysql>;
type Connector = connector::Connector<Mysql>;

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// State of a session on the client's side.
#[derive(Debug)]
pub struct MysqlState {
    pub(super) version: String,
    /// The negotiated capabilities.
    capabilities: u64,
    pub(super) connection_id: u32,
}

impl MysqlState {
    /// Whether the server omits column descriptions of prepared statements if they have not changed.
    pub fn caches_columns(&self) -> bool {
        self.capabilities & can::MARIADB_CACHE_METADATA != 0
    }
}

impl ServerProtocol for Mysql {
    /// The names cover both products, because the client knows only after the greeting whether the server is MySQL or
    /// MariaDB.
    const NAMES: ProtocolNames = ProtocolNames {
        server: "MySQL server",
        products: "MySQL or MariaDB",
        place: "host and port, or the path of its socket",
        no_tls: "install a certificate on the server (ssl_cert, ssl_key), or use tls=prefer",
    };

    type Settings = MysqlConnection;
    type Message<'a> = &'a [u8];
    type Counter = u8;
    type Malformed = Malformed;
    type ServerError = ServerError;
    type Greeting = Greeting;
    type State = MysqlState;
    /// ID of the connection.
    type CancelKey = u32;

    fn check(settings: &MysqlConnection) -> Result<()> {
        let texts = [&settings.host, &settings.user, &settings.database];
        if texts.into_iter().any(|text| text.contains('\0')) {
            return Err(Error::input("connection", "host, user and database must not contain a zero byte"));
        }
        Ok(())
    }

    fn target(settings: &MysqlConnection) -> Target<'_> {
        let MysqlConnection { socket, host, port, .. } = settings;
        let address = match socket {
            Some(path) => Address::Unix(PathBuf::from(path)),
            None => Address::Tcp { host: host.clone(), port: *port },
        };
        let names = SettingNames { mode: "tls", roots: "tls_ca" };
        let roots = settings.tls_ca.as_deref();
        let tls = TlsSettings { mode: &settings.tls, host, roots, identity: None, sni: true, names };
        Target { address, tls, relay: settings.relay.as_ref(), timeout_s: settings.connect_timeout_s }
    }

    fn connect(connector: &Connector, attempt: &Attempt) -> std::result::Result<Connected, Fault> {
        connector.or_without_tls(attempt, connector.start(attempt, connector.tls()))
    }

    fn next_message<'a>(sequence: &mut u8, input: &mut &'a [u8]) -> std::result::Result<Option<&'a [u8]>, Fault> {
        let packet = Framer::new().next(input, Rows::Keep)?;
        Ok(packet.map(|packet| {
            *sequence = packet.sequence.wrapping_add(1);
            packet.body
        }))
    }

    fn greeting(connector: &Connector, channel: &mut Channel<Self>) -> std::result::Result<Greeting, Fault> {
        let body = channel.next()?;
        let greeting = match body.first() {
            Some(&head::ERROR) => return Err(Fault::Server(Box::new(server_error(body)))),
            _ => Greeting::read(body)?,
        };
        if greeting.capabilities & can::NEEDED != can::NEEDED {
            let cause = format!("version {} is too old for ironbench", greeting.version);
            return Err(Error::input(connector.server(), cause)
                .hint("use MySQL 5.7.5 or MariaDB 10.2, or a later one")
                .into());
        }
        Ok(greeting)
    }

    fn request_tls(
        connector: &Connector,
        channel: &mut Channel<Self>,
        greeting: &Greeting,
    ) -> std::result::Result<TlsAnswer, Fault> {
        if greeting.capabilities & can::SSL == 0 {
            return Ok(TlsAnswer::Refused(String::new()));
        }
        // Plain text that was injected after the greeting must not be taken for a packet received over TLS.
        if !channel.unread().is_empty() {
            return Err(Malformed::Invalid.into());
        }
        let sequence = channel.counter;
        let capabilities = capabilities(&connector.settings, greeting) | can::SSL;
        frontend::ssl_request(&mut channel.output, sequence, capabilities);
        channel.counter = sequence.wrapping_add(1);
        channel.flush()?;
        Ok(TlsAnswer::Accepted)
    }

    fn log_in(
        connector: &Connector,
        channel: &mut Channel<Self>,
        greeting: Greeting,
        security: Security,
    ) -> std::result::Result<MysqlState, Fault> {
        let MysqlConnection { user, database, password, init, program, .. } = &*connector.settings;
        let encrypted = channel.tls.is_some();
        let capabilities = capabilities(&connector.settings, &greeting) | if encrypted { can::SSL } else { 0 };
        // Without TLS, the server accepts the password itself only over a Unix socket. It does not accept it over
        // loopback.
        let security = if encrypted || connector.address().is_unix() { security } else { Security::Plain };
        let password = password.as_deref().unwrap_or_default().as_bytes();
        // An unknown method may be the server's default, while this user has another method. The server then requests
        // the user's method.
        let method = Method::of(greeting.plugin.as_bytes()).unwrap_or(Method::Native);
        let proof = method.proof(password, &greeting.nonce)?;
        let handshake_response =
            HandshakeResponse { capabilities, user, database, plugin: method.name(), proof: &proof, program };
        let sequence = channel.counter;
        frontend::handshake_response(&mut channel.output, sequence, &handshake_response);
        channel.flush()?;
        auth::authenticate(channel, method, password, security, Security::least(connector.mode))?;
        for sql in init {
            frontend::query(&mut channel.output, sql);
            channel.flush()?;
            settled(channel)?;
        }
        if !is_unexpected_allowed(channel.unread()) {
            return Err(Malformed::Unexpected.into());
        }
        Ok(MysqlState { version: greeting.version, capabilities, connection_id: greeting.connection_id })
    }

    fn cancel_key(state: &MysqlState) -> Option<u32> {
        Some(state.connection_id)
    }

    /// Waits until the server has executed KILL QUERY.
    fn cancel(connector: &Connector, attempt: &Attempt, id: &u32) -> std::result::Result<(), Fault> {
        let connected = Self::connect(connector, attempt)?;
        let mut channel = Channel::new(Pipe::resume(connected.stream, connected.unread));
        channel.deadline = Some(attempt.deadline);
        frontend::query(&mut channel.output, &format!("KILL QUERY {id}"));
        channel.flush()?;
        settled(&mut channel)?;
        frontend::quit(&mut channel.output);
        Ok(channel.flush()?)
    }

    fn codes(error: &ServerError) -> ErrorCodes<'_> {
        ErrorCodes { sqlstate: &error.sqlstate, number: error.number }
    }

    /// Sources of the error numbers: MySQL 8.4 Error Message Reference; MariaDB, "Error Codes".
    fn admission(error: &ServerError) -> (Kind, &str) {
        match error.number {
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
            1203 | 1226 => {
                (Kind::Failure, "use fewer clients, or raise the limits of the account (ALTER USER … WITH …)")
            }
            1053 => (Kind::Failure, "the server is stopping: wait and try again"),
            1129 => (Kind::Failure, "the server blocks this host after many errors: run FLUSH HOSTS there"),
            _ => (Kind::Failure, ""),
        }
    }

    fn user(settings: &MysqlConnection) -> String {
        match settings.database.as_str() {
            "" => format!(", user {}", settings.user),
            database => format!(", user {}, database {database}", settings.user),
        }
    }
}

/// Returns the negotiated capabilities, except TLS.
fn capabilities(settings: &MysqlConnection, greeting: &Greeting) -> u64 {
    let database = if settings.database.is_empty() { 0 } else { can::CONNECT_WITH_DB };
    greeting.capabilities & WANTED | database
}

/// Reads the reply to a statement that returns no rows.
fn settled(channel: &mut Channel<Mysql>) -> std::result::Result<(), Fault> {
    loop {
        let body = channel.next()?;
        match body.first() {
            Some(&head::OK) if Done::read(body)?.has_more() => {}
            Some(&head::OK) => return Ok(()),
            Some(&head::ERROR) => return Err(Fault::Server(Box::new(server_error(body)))),
            _ => return Err(Error::input("connection", "a statement of `init` returns rows").into()),
        }
    }
}

impl Channel<Mysql> {
    /// Sends `body` as the next packet.
    pub(super) fn answer(&mut self, body: &[u8]) -> std::result::Result<(), Fault> {
        let sequence = self.counter;
        frontend::packet(&mut self.output, sequence, |out| out.extend_from_slice(body));
        self.counter = sequence.wrapping_add(1);
        Ok(self.flush()?)
    }
}
