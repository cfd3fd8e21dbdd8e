//! A proxy between an application and its database server, which captures the statements of the application.
//!
//! Bytes pass unchanged in both directions. The proxy sends them on before it looks at them. The proxy passes the
//! statements through a bounded queue to the thread that stores them, so that the application never waits for a disk.
//! `forwarder` moves the bytes, `handshake` handles the start of connections, and `postgres` and `mysql` follow the messages
//! of a session.

mod forwarder;
mod framing;
mod handshake;
mod mysql;
mod postgres;
mod queue;
mod reserved;
mod socket;

pub mod proxy;

use ironbench_capture::observed::Event;

/// Follows the messages of a session, and reports its statements.
trait Tracker: Send {
    /// Follows bytes from the client, which arrived at `now`.
    fn client_sent(&mut self, bytes: &[u8], now: Instant);

    /// Follows bytes from the server, which arrived at `now`.
    fn server_sent(&mut self, bytes: &[u8], now: Instant);

    /// Ends the session. `by_server` says whether the server has closed the connection. Otherwise, it is not known how
    /// the running statement has ended, unless the server has reported an error.
    fn close(&mut self, by_server: bool, now: Instant);

    /// Returns the statements that have ended since the last call.
    fn events(&mut self) -> &mut Vec<Event>;

    /// Notes that statements have been dropped.
    fn lose_statements(&mut self);

    /// Whether the session uses messages that are not known. The statements of the session are then no longer captured.
    fn is_lost(&self) -> bool;

    /// Whether the client must wait until the server has answered some of its requests.
    fn is_congested(&self) -> bool;
}

/// An instant in nanoseconds (`ironbench_core::measure::clock::now`).
type Instant = u64;

/// Converts instants to the time of day. Changes of the system's clock have no effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WallClock {
    /// Time of instant 0, in nanoseconds since 1970.
    zero_ns: i64,
}

impl WallClock {
    fn new() -> Self {
        use ironbench_core::measure::clock;
        Self { zero_ns: clock::unix_now() as i64 - clock::now() as i64 }
    }

    /// Returns the microseconds since 1970.
    fn us(self, instant: Instant) -> i64 {
        (self.zero_ns + instant as i64) / 1000
    }
}
