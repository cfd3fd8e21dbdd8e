//! A proxy between an application and its database server, which captures the statements of the application.
//!
//! Bytes pass unchanged in both directions. The proxy sends them on before it looks at them, and hands statements over a
//! bounded queue to the thread that stores them, so that the application never waits for a disk. `lane` moves the bytes,
//! `opening` handles the start of connections, and `postgres` follows the messages.

mod framing;
mod lane;
mod opening;
mod postgres;
mod queue;
mod socket;

pub mod proxy;

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
