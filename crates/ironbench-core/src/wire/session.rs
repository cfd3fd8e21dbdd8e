//! What a blocking session of a server can do, whichever wire it speaks.

use std::time::Instant;

use super::{Rows, ldap, mysql, postgres};
use crate::Result;

/// Asked now and then while something is waited for: whether to give up.
pub type Wish = Box<dyn FnMut() -> bool + Send>;

pub trait Session: Send + Sized {
    /// How messages call the engine.
    const NAME: &'static str;

    /// Makes sessions; good for any number of them from any number of threads.
    type Connector: Sync;

    /// Connects. The wish is asked while connecting, and while a statement runs, which it cancels.
    fn open(connector: &Self::Connector, wish: Wish) -> Result<Self>;

    /// Statements are waited for until then; see the sessions of the wires.
    fn set_deadline(&mut self, deadline: Option<Instant>);

    /// Rows of the last statement that returned rows, and how many the last statement affected.
    fn query(&mut self, sql: &str) -> Result<(Rows, u64)>;

    /// Rows that are read, counted and let go.
    fn count(&mut self, sql: &str) -> Result<u64>;

    /// Rows copied of `data`, by the statement that takes them.
    fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64>;

    /// Transactions that the server has committed for this session, where the wire counts them.
    fn commits(&self) -> u64 {
        0
    }
}

impl Session for postgres::Session {
    fn set_deadline(&mut self, deadline: Option<Instant>) {
        Self::set_deadline(self, deadline);
    }

    const NAME: &'static str = "PostgreSQL";
    type Connector = postgres::Connector;

    fn open(connector: &Self::Connector, wish: Wish) -> Result<Self> {
        Self::open_unless(connector, wish)
    }

    fn query(&mut self, sql: &str) -> Result<(Rows, u64)> {
        let outcome = self.run(sql)?;
        Ok((outcome.rows, outcome.affected))
    }

    fn count(&mut self, sql: &str) -> Result<u64> {
        Self::count(self, sql)
    }

    fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64> {
        let mut copy = Self::copy_in(self, sql)?;
        copy.send(data)?;
        copy.finish()
    }

    fn commits(&self) -> u64 {
        Self::commits(self)
    }
}

impl Session for mysql::Session {
    fn set_deadline(&mut self, deadline: Option<Instant>) {
        Self::set_deadline(self, deadline);
    }

    const NAME: &'static str = "MySQL";
    type Connector = mysql::Connector;

    fn open(connector: &Self::Connector, wish: Wish) -> Result<Self> {
        Self::open_unless(connector, wish)
    }

    fn query(&mut self, sql: &str) -> Result<(Rows, u64)> {
        let outcome = self.run(sql)?;
        Ok((outcome.rows, outcome.affected))
    }

    fn count(&mut self, sql: &str) -> Result<u64> {
        Self::count(self, sql)
    }

    fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64> {
        let mut copy = Self::copy_in(self, sql)?;
        copy.send(data)?;
        copy.finish()
    }
}

impl Session for ldap::Session {
    fn set_deadline(&mut self, deadline: Option<Instant>) {
        Self::set_deadline(self, deadline);
    }

    const NAME: &'static str = "directory server";
    type Connector = ldap::Connector;

    fn open(connector: &Self::Connector, wish: Wish) -> Result<Self> {
        Self::open_unless(connector, wish)
    }

    fn query(&mut self, sql: &str) -> Result<(Rows, u64)> {
        self.run(sql)
    }

    fn count(&mut self, sql: &str) -> Result<u64> {
        Self::count(self, sql)
    }

    /// Entries as LDIF, whatever the statement.
    fn copy_in(&mut self, _sql: &str, data: &[u8]) -> Result<u64> {
        Self::copy_in(self, data)
    }
}
