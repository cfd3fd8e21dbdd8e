//! The frozen plan that one `drive` call gets, as JSON. `src/ironbench/trial/drive/run.py` writes it.

use serde::{Deserialize, Serialize};

use crate::measure::curve::Piece;
use crate::wire::{LdapConnection, MysqlConnection, PostgresConnection, Server};

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
        connection: PostgresConnection,
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
