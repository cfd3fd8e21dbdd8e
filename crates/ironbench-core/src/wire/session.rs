//! Operations of a blocking session, for every protocol.

use std::time::Instant;

use super::{Rows, ldap, mysql, postgres};
use crate::Result;

/// A function that is called regularly during a wait and returns whether to give up.
pub type Wish = Box<dyn FnMut() -> bool + Send>;

pub trait Session: Send + Sized {
    /// The engine's name in messages.
    const NAME: &'static str;

    /// The type that opens sessions, any number of them and from any thread.
    type Connector: Sync;

    /// Connects a session. `wish` is called while connecting and while statements run. When it returns true, the
    /// statement is cancelled.
    fn open(connector: &Self::Connector, wish: Wish) -> Result<Self>;

    /// Sets the deadline of statements, as explained at the session of each protocol.
    fn set_deadline(&mut self, deadline: Option<Instant>);

    /// Returns the rows of the last statement that returned rows, and how many rows the last statement affected.
    fn query(&mut self, sql: &str) -> Result<(Rows, u64)>;

    /// Runs a statement and returns the number of its rows, which are read and dropped.
    fn count(&mut self, sql: &str) -> Result<u64>;

    /// Copies `data` with the statement `sql`. Returns the number of rows copied.
    fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<u64>;

    /// Returns how many transactions the server has committed in this session, if the protocol shows that.
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

    /// Adds entries given in LDIF, and ignores the statement.
    fn copy_in(&mut self, _sql: &str, data: &[u8]) -> Result<u64> {
        Self::copy_in(self, data)
    }
}
