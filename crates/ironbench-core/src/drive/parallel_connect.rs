//! Opens many connections in parallel.
//!
//! PostgreSQL starts a process for each connection. If connections were opened one after the other, some cores of the
//! server would be idle. On 2 cores, 1000 connections take 5.7 s one by one, and 1.7 s with eight threads.

use super::threads::client_ranges;
use crate::Result;
use crate::measure::threads::run_parallel;
use crate::wire::{Cancel, Cancelling, Connected, ServerProtocol, Stream};

/// An open connection, to be taken over by a transport.
pub struct ClientConnection {
    pub stream: Stream,
    /// Bytes already read from the connection.
    pub unread: Vec<u8>,
    /// Cancels the connection's running statement on the server. The value is None if the protocol has no cancel
    /// request.
    pub cancel: Option<Cancelling>,
}

impl<P: ServerProtocol> From<Connected<P>> for ClientConnection {
    fn from(connected: Connected<P>) -> Self {
        let cancel = connected.canceller().map(Cancel::cancelling);
        Self { stream: connected.stream, unread: connected.unread, cancel }
    }
}

/// Number of connections opened in parallel by all driving threads. A higher number would not help, because one server
/// process accepts all connections.
const MAX_PARALLEL: usize = 8;
/// For fewer connections than this, no helper threads are started, because starting them would take longer than opening
/// all connections.
const MIN_FOR_HELPERS: usize = 16;

/// Opens `count` connections for one of `threads` driving threads. Stops at the first failure.
pub fn open_all<T: Send>(count: usize, threads: usize, one: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    let hands = MAX_PARALLEL / threads.max(1);
    if hands <= 1 || count < MIN_FOR_HELPERS {
        return (0..count).map(|_| one()).collect();
    }
    let client_ranges = client_ranges(count, hands);
    let opened = run_parallel("open", client_ranges.len(), |number, gate| {
        client_ranges[number].clone().take_while(|_| !gate.is_stopped()).map(|_| one()).collect::<Result<Vec<T>>>()
    });
    Ok(opened?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn as_many_are_opened_as_were_asked_for() {
        for (count, threads) in [(0, 1), (1, 1), (15, 1), (16, 1), (1000, 1), (1000, 3), (1000, 64)] {
            let opened = AtomicUsize::new(0);
            let all = open_all(count, threads, || Ok(opened.fetch_add(1, Ordering::Relaxed))).unwrap();
            assert_eq!((all.len(), opened.into_inner()), (count, count));
        }
    }

    #[test]
    fn a_refusal_ends_it_and_is_told() {
        let asked = AtomicUsize::new(0);
        let one = || match asked.fetch_add(1, Ordering::Relaxed) {
            100 => Err(Error::failure("PostgreSQL", "too many clients already")),
            number => Ok(number),
        };
        let error = open_all(100_000, 1, one).unwrap_err();
        assert_eq!(error.cause, "too many clients already");
        assert!(asked.into_inner() < 100_000);
    }

    #[test]
    fn several_are_opened_at_a_time() {
        let meeting = std::sync::Barrier::new(MAX_PARALLEL);
        assert_eq!(
            open_all(MAX_PARALLEL * 4, 1, || {
                meeting.wait();
                Ok(())
            })
            .unwrap()
            .len(),
            MAX_PARALLEL * 4
        );
    }
}
