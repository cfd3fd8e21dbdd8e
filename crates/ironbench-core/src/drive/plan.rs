//! The frozen plan that one `drive` call gets, as JSON. `src/ironbench/trial/drive/run.py` writes it.

use serde::{Deserialize, Serialize};

use crate::measure::curve::Piece;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub engine: Engine,
    pub scripts: Vec<ScriptSource>,
    /// Work that is no script, for whoever does it.
    #[serde(default)]
    pub work: Option<serde_json::Value>,
    /// Who chooses the transactions in place of weights, for whoever makes that.
    #[serde(default)]
    pub jobs: Option<serde_json::Value>,
    /// `-D` variables, defined for every client before the first transaction.
    pub variables: Vec<(String, String)>,
    pub clients: usize,
    pub threads: usize,
    /// CPUs the driving threads may use; empty: any.
    #[serde(default)]
    pub client_cpus: Vec<usize>,
    pub seed: u64,
    pub schedule: Schedule,
    pub stop: Stop,
    /// Transactions completed before this long after the start are not measured.
    pub warmup_s: f64,
    /// 1: no retry; 0: without limit (as pgbench's --max-tries).
    pub max_tries: u32,
    /// What becomes of the trial when a transaction fails in the first second.
    #[serde(default)]
    pub on_error: OnError,
    /// Clients that lose their connection open a new one, also where an error would end the trial.
    #[serde(default)]
    pub reconnect_on_loss: bool,
    /// Times every SQL command by itself.
    #[serde(default)]
    pub statements: bool,
    pub observers: Vec<ObserverSource>,
    /// It is one of several drives that load one system together; None: it is alone.
    #[serde(default)]
    pub part: Option<Part>,
    /// Where a line for each measured transaction goes.
    #[serde(default)]
    pub log: Option<TransactionLogFile>,
}

/// A log as `pgbench -l` writes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionLogFile {
    /// Must not exist.
    pub path: String,
    /// Fraction of the transactions that are logged; above 0, up to 1.
    pub sampling_rate: f64,
}

/// Which of several drives: together they do what one drive of all their clients would. All have as many threads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// From 0.
    pub number: usize,
    pub of: usize,
    /// Clients of the parts before this one: a client draws the same in whatever part it is.
    pub first_client: usize,
    pub all_clients: usize,
}

impl Part {
    /// The only one, of so many clients.
    pub fn whole(clients: usize) -> Self {
        Self { number: 0, of: 1, first_client: 0, all_clients: clients }
    }
}

impl Plan {
    /// Which part of a trial it drives: all of it unless it says so.
    pub fn its_part(&self) -> Part {
        self.part.unwrap_or(Part::whole(self.clients))
    }

    /// Whether the trial continues when a client loses its connection.
    pub fn survives_losses(&self) -> bool {
        self.reconnect_on_loss || self.on_error == OnError::Continue
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Engine {
    Postgres {
        connection: Connection,
        protocol: Protocol,
        io: Io,
        /// After so many transactions a client ends its connection and opens a new one; 0: never.
        #[serde(default)]
        reconnect: u64,
    },
    /// MySQL or MariaDB. The protocols are `prepared` (binary) and `simple` (text).
    Mysql {
        connection: MysqlConnection,
        protocol: Protocol,
        io: Io,
        /// As of `Postgres`.
        #[serde(default)]
        reconnect: u64,
        /// Of the clients' sessions; empty: not known.
        #[serde(default)]
        sql_mode: String,
    },
    Sqlite {
        path: String,
        /// Run on every connection after opening, e.g. `PRAGMA synchronous=FULL`.
        pragmas: Vec<String>,
    },
    /// A directory. Its commands are operations as `wire::ldap::operation` reads them.
    Ldap {
        connection: LdapConnection,
        io: Io,
        /// After so many requests a client ends its connection and opens a new one, between two transactions; 0: never.
        #[serde(default)]
        reconnect: u64,
        /// Whether a client that has bound as somebody else binds as the user of the connection again, before anything
        /// else is done and within the transaction.
        #[serde(default)]
        bind_back: bool,
    },
    /// Its connections are objects that the caller brings (`drive::called`): a driver in another language.
    Called {
        /// Whether scripts are written for MySQL or MariaDB.
        #[serde(default)]
        mysql: bool,
        /// As of `Mysql`.
        #[serde(default)]
        sql_mode: String,
    },
    /// Answers at once, or after `service_ns` without using CPU: measures the harness.
    Null {
        #[serde(default)]
        service_ns: u64,
    },
}

/// Where a PostgreSQL server listens. `host` starting with `/` is a socket directory.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
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

fn ten() -> f64 {
    10.0
}

fn postgres() -> String {
    "postgres".to_owned()
}

fn yes() -> bool {
    true
}

fn prefer() -> String {
    "prefer".to_owned()
}

/// Never shows the password.
impl std::fmt::Debug for Connection {
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
    Postgres(Connection),
    Mysql(MysqlConnection),
    Ldap(LdapConnection),
}

impl Engine {
    /// Where the engine listens, if it is a server.
    pub fn server(&self) -> Option<Server> {
        match self {
            Self::Postgres { connection, .. } => Some(Server::Postgres(connection.clone())),
            Self::Mysql { connection, .. } => Some(Server::Mysql(connection.clone())),
            Self::Ldap { connection, .. } => Some(Server::Ldap(connection.clone())),
            Self::Sqlite { .. } | Self::Called { .. } | Self::Null { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Simple,
    Extended,
    Prepared,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It ends with the error, unless repeating the transaction might have succeeded.
    Stop,
    /// It goes on, and the transaction counts as failed.
    #[default]
    Continue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    Auto,
    IoUring,
    Epoll,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSource {
    pub name: String,
    pub text: String,
    pub weight: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// The next transaction starts `think_time_s` after the last one ended.
    Closed { think_time_s: f64 },
    /// Transactions start at planned instants whatever the server does; response time counts from those.
    Open { rate: f64, arrivals: Arrivals },
    /// As `closed`, of so many clients as the curve says, from the start of the warm-up on; the others rest.
    ClosedCurve { pieces: Vec<Piece>, think_time_s: f64 },
    /// As `open`, at a rate that follows the curve, from the start of the warm-up on.
    OpenCurve { pieces: Vec<Piece>, arrivals: Arrivals },
}

impl Schedule {
    /// Whether transactions start at planned instants.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::OpenCurve { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    Fixed,
    Poisson,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Measured seconds, warm-up not included.
    DurationS(f64),
    /// Measured transactions of each client; those of the warm-up come before and are not counted.
    Transactions(u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserverSource {
    pub name: String,
    /// `file`, `sql` or `request`.
    pub kind: String,
    pub target: String,
    pub period_s: f64,
}
