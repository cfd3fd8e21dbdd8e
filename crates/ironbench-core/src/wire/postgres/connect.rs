//! The steps of a PostgreSQL connection: TLS, startup, authentication.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    auth,
    protocol::{
        Commits, Framer, Malformed, Message, Rows,
        backend::{ServerError, backend_key, parameter_status, server_error, tag},
        frontend, is_unexpected_allowed,
    },
};
use crate::wire::{
    PostgresConnection,
    address::Address,
    channel::Channel,
    connector::{self, Attempt},
    fault,
    protocol::{ErrorCodes, ProtocolNames, ServerProtocol, Target, TlsAnswer},
    security::Security,
    tls::{self, Mode, SettingNames, TlsSettings},
};
use crate::{Error, Kind, Result};

/// Maximum number of session parameters that are kept. PostgreSQL 18 reports 15.
const MAX_PARAMETERS: usize = 1000;

/// PostgreSQL's frontend/backend protocol.
#[derive(Debug, Clone, Copy)]
pub struct Postgres;

pub(super) type Fault = fault::Fault<Postgres>;
type Connected = connector::Connected<Postgres>;
type Connector = connector::Connector<Postgres>;

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// State of a session on the client's side.
#[derive(Debug, Default)]
pub struct PostgresState {
    /// Parameters that the server reports: `server_version`, `TimeZone`, …
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) backend_pid: i32,
    secret: i32,
    /// The reason that the server gave in a message before it closed the connection.
    pub(super) last_words: Option<Box<ServerError>>,
    pub(super) committing: Commits,
    pub(super) commits: u64,
}

/// Process ID and secret of a session.
#[derive(Debug, Clone, Copy)]
pub struct BackendKey(i32, i32);

impl ServerProtocol for Postgres {
    const NAMES: ProtocolNames = ProtocolNames {
        server: "PostgreSQL server",
        products: "PostgreSQL",
        place: "host and port (a host starting with / is the directory of its Unix socket)",
        no_tls: "enable TLS on the server (ssl = on), or use sslmode=prefer",
    };
    /// libpq has sent this name since version 17. Older servers ignore it.
    const ALPN: Option<&'static [u8]> = Some(b"postgresql");

    type Settings = PostgresConnection;
    type Message<'a> = Message<'a>;
    type Counter = ();
    type Malformed = Malformed;
    type ServerError = ServerError;
    type Greeting = ();
    type State = PostgresState;
    type CancelKey = BackendKey;

    fn check(settings: &PostgresConnection) -> Result<()> {
        let texts = [&settings.host, &settings.user, &settings.database];
        let options = settings.options.iter().flat_map(|(name, value)| [name, value]);
        if texts.into_iter().chain(options).any(|text| frontend::has_zero_byte(text)) {
            return Err(Error::input("connection", "host, user, database and options must not contain a zero byte"));
        }
        Ok(())
    }

    /// As in libpq, a host that starts with `/` is the directory of a Unix socket, and `@` marks an abstract socket.
    fn target(settings: &PostgresConnection) -> Target<'_> {
        let PostgresConnection { host, hostaddr, port, .. } = settings;
        let address = if host.starts_with(['/', '@']) && hostaddr.is_none() {
            Address::Unix(PathBuf::from(host).join(format!(".s.PGSQL.{port}")))
        } else {
            Address::Tcp { host: hostaddr.as_ref().unwrap_or(host).clone(), port: *port }
        };
        let tls = TlsSettings {
            mode: &settings.sslmode,
            host,
            roots: settings.sslrootcert.as_deref(),
            identity: settings.sslcert.as_deref().zip(settings.sslkey.as_deref()),
            sni: settings.sslsni,
            names: SettingNames { mode: "sslmode", roots: "sslrootcert" },
        };
        Target { address, tls, relay: settings.relay.as_ref(), timeout_s: settings.connect_timeout_s }
    }

    /// Tries a second time if the server may accept only the other kind of connection (SQLSTATE 28000). With `prefer`,
    /// the second attempt is without TLS. With `allow`, it is with TLS.
    fn connect(connector: &Connector, attempt: &Attempt) -> std::result::Result<Connected, Fault> {
        let tls = connector.tls();
        match connector.start(attempt, tls.filter(|_| connector.mode != Mode::Allow)) {
            Err(Fault::Server(error)) if error.sqlstate == "28000" => match connector.mode {
                Mode::Allow => connector.start(attempt, tls),
                Mode::Prefer => connector.start(attempt, None).map_err(|_| Fault::Server(error)),
                _ => Err(Fault::Server(error)),
            },
            first => connector.or_without_tls(attempt, first),
        }
    }

    fn next_message<'a>((): &mut (), input: &mut &'a [u8]) -> std::result::Result<Option<Message<'a>>, Fault> {
        Ok(Framer::new().next(input, Rows::Keep)?)
    }

    fn greeting(_: &Connector, _: &mut Channel<Self>) -> std::result::Result<(), Fault> {
        Ok(())
    }

    fn request_tls(
        connector: &Connector,
        channel: &mut Channel<Self>,
        (): &(),
    ) -> std::result::Result<TlsAnswer, Fault> {
        if connector.settings.sslnegotiation == "direct" {
            return Ok(TlsAnswer::Accepted);
        }
        frontend::ssl_request(&mut channel.output);
        channel.flush()?;
        match channel.read_byte()? {
            b'S' => Ok(TlsAnswer::Accepted),
            b'N' => Ok(TlsAnswer::Refused(String::new())),
            // The server sent an error instead of an answer. The text was sent before authentication and must not be
            // shown to users (CVE-2024-10977).
            b'E' => Err(Error::failure(connector.server(), "the server answered the TLS request with an error")
                .hint("see the server's log")
                .into()),
            _ => Err(Malformed::Invalid.into()),
        }
    }

    fn log_in(
        connector: &Connector,
        channel: &mut Channel<Self>,
        (): (),
        security: Security,
    ) -> std::result::Result<PostgresState, Fault> {
        let PostgresConnection { user, database, options, .. } = &*connector.settings;
        let ours = [("client_encoding", "UTF8"), ("application_name", "ironbench")];
        let ours = ours.into_iter().filter(|(name, _)| options.iter().all(|(given, _)| given != name));
        let given = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let names = [("user", user.as_str()), ("database", database.as_str())];
        frontend::startup(&mut channel.output, names.into_iter().chain(ours).chain(given));
        channel.flush()?;
        let end_point = channel.tls.as_deref().and_then(tls::server_end_point);
        auth::authenticate(channel, &connector.settings, security, end_point)?;
        let state = settled(channel)?;
        if !is_unexpected_allowed(channel.unread()) {
            return Err(Malformed::Unexpected.into());
        }
        Ok(state)
    }

    fn cancel_key(state: &PostgresState) -> Option<BackendKey> {
        Some(BackendKey(state.backend_pid, state.secret))
    }

    fn cancel(connector: &Connector, attempt: &Attempt, key: &BackendKey) -> std::result::Result<(), Fault> {
        let (mut channel, ()) = connector.open(attempt, connector.tls())?;
        frontend::cancel_request(&mut channel.output, key.0, key.1);
        channel.flush()?;
        // When the server has received the request, it closes the connection. The request has been sent, so the result
        // of this wait does not matter.
        let _ = channel.next();
        Ok(())
    }

    fn codes(error: &ServerError) -> ErrorCodes<'_> {
        ErrorCodes { sqlstate: &error.sqlstate, number: 0 }
    }

    /// Source of the codes: PostgreSQL documentation, appendix A.
    fn admission(error: &ServerError) -> (Kind, &str) {
        match error.sqlstate.as_str() {
            "28P01" => (Kind::Input, "correct the password: in the DSN, in PGPASSWORD or in ~/.pgpass"),
            "28000" if error.message.contains("does not exist") => {
                (Kind::Input, "correct the user, or create the role on the server (CREATE ROLE … LOGIN)")
            }
            "28000" => {
                (Kind::Input, "the server's pg_hba.conf decides who may connect from where, with and without TLS")
            }
            "3D000" => (Kind::Input, "correct the database name, or create it first (createdb)"),
            "42501" => (Kind::Input, "the role lacks the privilege to connect (GRANT CONNECT)"),
            "22023" | "42704" | "42601" | "55P02" => (Kind::Input, "correct the run-time parameters of the connection"),
            "53300" => {
                (Kind::Failure, "use fewer clients, or raise max_connections (of ironbench's own server by --set)")
            }
            "57P03" => (Kind::Failure, "the server is starting, stopping or recovering: wait and try again"),
            _ => (Kind::Failure, &error.hint),
        }
    }

    fn user(settings: &PostgresConnection) -> String {
        format!(", user {}, database {}", settings.user, settings.database)
    }
}

/// Reads the server's messages between authentication and the first ReadyForQuery.
fn settled(channel: &mut Channel<Postgres>) -> std::result::Result<PostgresState, Fault> {
    let mut state = PostgresState::default();
    loop {
        let message = channel.next()?;
        match message.tag {
            tag::PARAMETER_STATUS => state.keep_parameter(message.body)?,
            tag::BACKEND_KEY_DATA => (state.backend_pid, state.secret) = backend_key(message.body)?,
            tag::READY_FOR_QUERY => return Ok(state),
            tag::ERROR_RESPONSE => return Err(Fault::Server(Box::new(server_error(message.body)))),
            tag::NOTICE_RESPONSE | tag::NEGOTIATE_PROTOCOL_VERSION => {}
            _ => return Err(Malformed::Invalid.into()),
        }
    }
}

impl PostgresState {
    /// Stores the parameter in the body of a ParameterStatus message.
    pub(super) fn keep_parameter(&mut self, body: &[u8]) -> std::result::Result<(), Malformed> {
        let (name, value) = parameter_status(body)?;
        if self.parameters.contains_key(name) || self.parameters.len() < MAX_PARAMETERS {
            self.parameters.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    }
}
