//! The plan of one `drive` call, read from JSON. The module `src/ironbench/trial/drive/run.py` writes the JSON.

use serde::{Deserialize, Serialize};

use crate::measure::curve::Piece;
use crate::wire::{LdapConnection, MysqlConnection, PostgresConnection, Server};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub engine: Engine,
    pub scripts: Vec<ScriptSource>,
    /// Work other than scripts. The crate that runs the work parses this JSON.
    #[serde(default)]
    pub work: Option<serde_json::Value>,
    /// The source of jobs that chooses the scripts instead of weights. The source parses this JSON.
    #[serde(default)]
    pub jobs: Option<serde_json::Value>,
    /// Variables of `-D`, defined for every client before the first transaction.
    pub variables: Vec<(String, String)>,
    pub clients: usize,
    pub threads: usize,
    /// CPUs to which the driving threads are pinned. An empty list means any CPU.
    #[serde(default)]
    pub client_cpus: Vec<usize>,
    pub seed: u64,
    pub schedule: Schedule,
    pub stop: Stop,
    /// Length of the warm-up. Transactions that end in it are not measured.
    pub warmup_s: f64,
    /// Maximum number of attempts at a transaction, like pgbench's --max-tries. Serialization failures and deadlocks
    /// lead to another attempt. 1 means no retry, and 0 means no limit.
    pub max_tries: u32,
    /// Further classes of errors after which a transaction is tried again, such as `23505`.
    #[serde(default)]
    pub retried_errors: Vec<String>,
    /// Whether a transaction that fails in the first second ends the trial.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether clients that lose their connection open a new one. The trial then continues after a loss, even if
    /// `on_error` is `Stop`.
    #[serde(default)]
    pub reconnect_on_loss: bool,
    /// Whether every SQL command is timed separately.
    #[serde(default)]
    pub statements: bool,
    pub observers: Vec<ObserverSource>,
    /// The part of a distributed load that this drive generates, or None if this drive generates the whole load.
    #[serde(default)]
    pub part: Option<Part>,
    /// The log that gets a line for each measured transaction, or None for no log.
    #[serde(default)]
    pub log: Option<TransactionLogFile>,
}

/// A transaction log in the format of `pgbench -l`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionLogFile {
    /// Path of a file that must not exist yet.
    pub path: String,
    /// Fraction of transactions that are logged, in (0, 1].
    pub sampling_rate: f64,
}

/// A part of a distributed load, which several drives generate together. The parts together do the same work as a
/// single drive with all clients. All parts have the same number of threads.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Number of the part, from 0.
    pub number: usize,
    pub of: usize,
    /// Number of clients in the parts before this one. This number ensures that a client draws the same random numbers
    /// however the load is divided.
    pub first_client: usize,
    pub all_clients: usize,
}

impl Part {
    /// Returns a part that is the whole load, with this many clients.
    pub fn whole(clients: usize) -> Self {
        Self { number: 0, of: 1, first_client: 0, all_clients: clients }
    }
}

impl Plan {
    /// Returns the part of the load that this plan drives. This is the whole load by default.
    pub fn part_or_whole(&self) -> Part {
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
        connection: PostgresConnection,
        protocol: Protocol,
        io: Io,
        /// Number of transactions after which a client reconnects; 0 means never.
        #[serde(default)]
        reconnect: u64,
    },
    /// MySQL or MariaDB. The mode `prepared` uses the binary protocol, and `simple` the text protocol.
    Mysql {
        connection: MysqlConnection,
        protocol: Protocol,
        io: Io,
        /// Number of transactions after which a client reconnects; 0 means never.
        #[serde(default)]
        reconnect: u64,
        /// SQL mode of the clients' sessions. Empty if unknown.
        #[serde(default)]
        sql_mode: String,
    },
    Sqlite {
        path: String,
        /// Statements that run on every connection after opening, e.g. `PRAGMA synchronous=FULL`.
        pragmas: Vec<String>,
    },
    /// An LDAP directory. The commands are the operations that `wire::ldap::operation` parses.
    Ldap {
        connection: LdapConnection,
        io: Io,
        /// Number of requests after which a client reconnects. The client reconnects only between two transactions. 0
        /// means never.
        #[serde(default)]
        reconnect: u64,
        /// Whether a client that has bound as another user binds as the connection's own user again at the end of the
        /// transaction.
        #[serde(default)]
        bind_back: bool,
    },
    /// A driver that the caller provides as objects (`drive::drive_with`), such as a Python driver.
    Called {
        /// Whether scripts are written for MySQL or MariaDB.
        #[serde(default)]
        mysql: bool,
        /// SQL mode of the clients' sessions. Empty if unknown.
        #[serde(default)]
        sql_mode: String,
    },
    /// An engine that replies immediately, or after `service_ns` without using CPU. This engine is used to measure the
    /// overhead of ironbench.
    Null {
        #[serde(default)]
        service_ns: u64,
    },
}

impl Engine {
    /// Returns the server to connect to. Returns None if the engine is not a server.
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
    /// The trial ends with the error, unless a retry may succeed.
    Stop,
    /// The trial continues, and the transaction counts as failed.
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
    /// Closed loop, in which the next transaction starts `think_time_s` after the last one ended.
    Closed { think_time_s: f64 },
    /// Open loop, in which transactions start on a schedule, however slow the server is. Response time counts from the
    /// scheduled start.
    Open { rate: f64, arrivals: Arrivals },
    /// Closed loop in which a curve gives the number of active clients. The curve starts with the warm-up.
    ClosedCurve { pieces: Vec<Piece>, think_time_s: f64 },
    /// Open loop in which a curve gives the rate. The curve starts with the warm-up.
    OpenCurve { pieces: Vec<Piece>, arrivals: Arrivals },
}

impl Schedule {
    /// Whether transactions start on a schedule.
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
    /// Length of the window in seconds, without the warm-up.
    DurationS(f64),
    /// Number of measured transactions of each client, without the warm-up.
    Transactions(u64),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserverSource {
    pub name: String,
    /// Kind of source: `file`, `sql` or `request`.
    pub kind: String,
    pub target: String,
    pub period_s: f64,
}
