//! The settings of a connection to each kind of server, as the plan of a drive or sampler has them.

use serde::{Deserialize, Serialize};

/// Where a PostgreSQL server listens. `host` starting with `/` is a socket directory.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConnection {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
    #[serde(default)]
    pub password: Option<String>,
    /// Numeric address to connect to instead of resolving `host`, which then only names the server in its certificate.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// libpq's words: `disable`, `allow`, `prefer`, `require`, `verify-ca`, `verify-full`.
    #[serde(default = "prefer")]
    pub sslmode: String,
    /// PEM file of trusted roots; None: the machine's own.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// PEM files of the client's certificate and its key; None: it shows none.
    #[serde(default)]
    pub sslcert: Option<String>,
    #[serde(default)]
    pub sslkey: Option<String>,
    /// `postgres`: TLS is asked for first; `direct`: it begins with the first byte.
    #[serde(default = "postgres")]
    pub sslnegotiation: String,
    /// Whether the name of the host is sent in the clear when TLS begins.
    #[serde(default = "yes")]
    pub sslsni: bool,
    /// `disable`, `prefer` or `require`.
    #[serde(default = "prefer")]
    pub channel_binding: String,
    /// Authentication methods that will do, or with `!` those that will not, with commas between; empty: any.
    #[serde(default)]
    pub require_auth: String,
    /// Run-time parameters sent at start, e.g. `application_name`.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// Seconds for connecting, TLS and authentication together, per address.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
}

fn postgres() -> String {
    "postgres".to_owned()
}

fn yes() -> bool {
    true
}

/// Never shows the password.
impl std::fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}:{}/{} sslmode={}", self.user, self.host, self.port, self.database, self.sslmode)
    }
}

/// Where a MySQL or MariaDB server listens.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MysqlConnection {
    /// Path of its Unix socket; None: `host` and `port`.
    #[serde(default)]
    pub socket: Option<String>,
    pub host: String,
    pub port: u16,
    pub user: String,
    /// Empty: none is chosen.
    #[serde(default)]
    pub database: String,
    #[serde(default)]
    pub password: Option<String>,
    /// The words of `sslmode`; a Unix socket goes without TLS.
    #[serde(default = "prefer")]
    pub tls: String,
    /// PEM file of trusted roots; None: the machine's own.
    #[serde(default)]
    pub tls_ca: Option<String>,
    /// Statements without rows, run once on every connection, e.g. `SET SESSION …`.
    #[serde(default)]
    pub init: Vec<String>,
    /// Seconds for connecting, TLS and authentication together, per address.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
}

/// Never shows the password.
impl std::fmt::Debug for MysqlConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { socket, host, port, user, database, tls, .. } = self;
        let place = socket.clone().unwrap_or_else(|| format!("{host}:{port}"));
        write!(f, "{user}@{place}/{database} tls={tls}")
    }
}

/// Where a directory server listens.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LdapConnection {
    /// Path of its Unix socket; None: `host` and `port`.
    #[serde(default)]
    pub socket: Option<String>,
    pub host: String,
    pub port: u16,
    /// TLS from the first byte; else `tls` other than `disable` asks for StartTLS.
    pub ldaps: bool,
    /// The words of `sslmode`; a Unix socket goes without TLS.
    pub tls: String,
    /// PEM file of trusted roots; None: the machine's own.
    #[serde(default)]
    pub tls_ca: Option<String>,
    /// What completes a DN that ends with a comma.
    #[serde(default)]
    pub base: String,
    /// `simple`, `EXTERNAL`, `PLAIN` or `SCRAM-SHA-256`.
    pub mechanism: String,
    /// DN of a simple bind, name of a SASL mechanism; empty: nobody.
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub password: Option<String>,
    /// The user accepts that the password goes over plain TCP.
    #[serde(default)]
    pub password_in_clear: bool,
    /// Seconds for connecting, TLS and authentication together, per address.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
}

/// Never shows the password.
impl std::fmt::Debug for LdapConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { socket, host, port, user, tls, mechanism, .. } = self;
        let place = socket.clone().unwrap_or_else(|| format!("{host}:{port}"));
        write!(f, "{mechanism} {user}@{place} tls={tls}")
    }
}

/// Where a server listens. Each has a field that it needs and no other has, so it tells itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Server {
    Postgres(PostgresConnection),
    Mysql(MysqlConnection),
    Ldap(LdapConnection),
}

fn ten() -> f64 {
    10.0
}

fn prefer() -> String {
    "prefer".to_owned()
}
