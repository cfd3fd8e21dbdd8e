//! Connection settings for each kind of server, as they appear in the plan of a drive or sampler.

use serde::{Deserialize, Serialize};

/// Address of a relay that delays connections (`relay`). Decisions about security do not depend on the relay: TLS, the
/// name in the certificate and the sending of passwords follow the server's own address.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayAddress {
    /// Where the relay listens: `127.0.0.1:PORT`, or `@` and the name of an abstract Unix socket.
    pub address: String,
    /// Secret that the relay expects: 32 hexadecimal digits.
    pub token: String,
}

/// Formats the address without the token.
impl std::fmt::Debug for RelayAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address)
    }
}

/// Connection settings of a PostgreSQL server. If `host` starts with `/`, it is a socket directory.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConnection {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
    #[serde(default)]
    pub password: Option<String>,
    /// Numeric address to connect to instead of resolving `host`.
    /// The name in the server's certificate must still match `host`.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// A value of libpq's `sslmode`: `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
    #[serde(default = "prefer")]
    pub sslmode: String,
    /// PEM file of trusted roots. If None, the roots of the system are used.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// PEM file of the client's certificate, or None for no certificate.
    #[serde(default)]
    pub sslcert: Option<String>,
    /// PEM file of the key of the client's certificate.
    #[serde(default)]
    pub sslkey: Option<String>,
    /// How TLS starts: `postgres` requests TLS first, and `direct` starts it immediately.
    #[serde(default = "postgres")]
    pub sslnegotiation: String,
    /// Whether the host name is sent in clear text at the start of TLS (SNI).
    #[serde(default = "yes")]
    pub sslsni: bool,
    /// Channel binding of the authentication: `disable`, `prefer` or `require`.
    #[serde(default = "prefer")]
    pub channel_binding: String,
    /// Authentication methods, separated by commas. Only these methods are accepted. Methods prefixed with `!` are
    /// rejected, and all others are accepted. An empty text accepts any method.
    #[serde(default)]
    pub require_auth: String,
    /// Run-time parameters sent at startup, e.g. `application_name`.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// Time limit in seconds for connecting to one address, including TLS and authentication.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
    /// Relay through which to connect, or None for a direct connection.
    #[serde(default)]
    pub relay: Option<RelayAddress>,
}

fn postgres() -> String {
    "postgres".to_owned()
}

fn yes() -> bool {
    true
}

/// Formats the settings without the password.
impl std::fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}:{}/{} sslmode={}", self.user, self.host, self.port, self.database, self.sslmode)
    }
}

/// Connection settings of a MySQL or MariaDB server.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MysqlConnection {
    /// Path of the server's Unix socket. If None, `host` and `port` are used.
    #[serde(default)]
    pub socket: Option<String>,
    pub host: String,
    pub port: u16,
    pub user: String,
    /// Default database. Empty for none.
    #[serde(default)]
    pub database: String,
    #[serde(default)]
    pub password: Option<String>,
    /// A value of libpq's `sslmode`. A connection over a Unix socket never uses TLS.
    #[serde(default = "prefer")]
    pub tls: String,
    /// PEM file of trusted roots. If None, the roots of the system are used.
    #[serde(default)]
    pub tls_ca: Option<String>,
    /// Statements without results that run once on every connection, e.g. `SET SESSION …`.
    #[serde(default)]
    pub init: Vec<String>,
    /// Name under which the server shows the connection (`program_name` in `session_connect_attrs`).
    #[serde(skip, default = "ironbench")]
    pub program: String,
    /// Time limit in seconds for connecting to one address, including TLS and authentication.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
    /// Relay through which to connect, or None for a direct connection.
    #[serde(default)]
    pub relay: Option<RelayAddress>,
}

/// Formats the settings without the password.
impl std::fmt::Debug for MysqlConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { socket, host, port, user, database, tls, .. } = self;
        let place = socket.clone().unwrap_or_else(|| format!("{host}:{port}"));
        write!(f, "{user}@{place}/{database} tls={tls}")
    }
}

/// Connection settings of a directory server.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LdapConnection {
    /// Path of the server's Unix socket. If None, `host` and `port` are used.
    #[serde(default)]
    pub socket: Option<String>,
    pub host: String,
    pub port: u16,
    /// Whether TLS starts immediately. If not, StartTLS is requested unless `tls` is `disable`.
    pub ldaps: bool,
    /// A value of libpq's `sslmode`. A connection over a Unix socket never uses TLS.
    pub tls: String,
    /// PEM file of trusted roots. If None, the roots of the system are used.
    #[serde(default)]
    pub tls_ca: Option<String>,
    /// Suffix for DNs that end with a comma.
    #[serde(default)]
    pub base: String,
    /// Authentication mechanism: `simple`, `EXTERNAL`, `PLAIN` or `SCRAM-SHA-256`.
    pub mechanism: String,
    /// DN of a simple bind, or user name of a SASL mechanism. Empty for an anonymous bind.
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub password: Option<String>,
    /// Whether the user allows sending the password over plain TCP.
    #[serde(default)]
    pub password_in_clear: bool,
    /// Time limit in seconds for connecting to one address, including TLS and authentication.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
    /// Relay through which to connect, or None for a direct connection.
    #[serde(default)]
    pub relay: Option<RelayAddress>,
}

/// Formats the settings without the password.
impl std::fmt::Debug for LdapConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { socket, host, port, user, tls, mechanism, .. } = self;
        let place = socket.clone().unwrap_or_else(|| format!("{host}:{port}"));
        write!(f, "{mechanism} {user}@{place} tls={tls}")
    }
}

/// A server of any kind. The settings do not name the kind. The kind is determined by a required field that the other
/// kinds do not have.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Server {
    Postgres(PostgresConnection),
    Mysql(MysqlConnection),
    Ldap(LdapConnection),
}

impl Server {
    /// Returns the settings for a connection without a relay.
    pub fn direct(&self) -> Self {
        let mut direct = self.clone();
        match &mut direct {
            Self::Postgres(connection) => connection.relay = None,
            Self::Mysql(connection) => connection.relay = None,
            Self::Ldap(connection) => connection.relay = None,
        }
        direct
    }
}

fn ironbench() -> String {
    "ironbench".to_owned()
}

fn ten() -> f64 {
    10.0
}

fn prefer() -> String {
    "prefer".to_owned()
}
