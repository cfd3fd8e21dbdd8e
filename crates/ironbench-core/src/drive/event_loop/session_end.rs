//! Ends sessions and cancels running statements.
//!
//! PostgreSQL and MySQL notice a closed socket only when they write to it. Without a cancel request, a query would
//! continue to run during the next trial, and even after ironbench has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::EventLoop;
use crate::drive::transaction::Transaction;
use crate::measure::clock::{self, SECOND};
use crate::measure::threads::{BackgroundThread, Gate, ThreadSettings};
use crate::wire::Cancelling;
use crate::wire::transport::{Arrival, Transport};

/// Time limit for cancelling, because a paused server answers no request.
pub(super) const CANCEL_TIMEOUT_NS: u64 = 2 * SECOND;
/// Number of parallel cancel requests per driving thread.
const MAX_PARALLEL: usize = 8;

/// Clients that were still waiting for a reply at the end. The statements of these clients are cancelled.
#[derive(Default)]
pub(super) struct PendingCancels {
    pub clients: Vec<usize>,
    pub timeout_ns: u64,
}

impl<T: Transport, X: Transaction> EventLoop<T, X> {
    /// Sets the function that cancels each client's running statement on the server.
    pub fn cancelling(mut self, cancels: Vec<Option<Cancelling>>) -> Self {
        for (client, cancel) in self.clients.iter_mut().zip(cancels) {
            client.cancel = cancel;
        }
        self
    }

    pub(super) fn close_sessions(&mut self) {
        for &id in &self.ended_normally {
            self.clients[id].transaction.farewell(self.transport.mailbox(id));
            self.transport.farewell(id);
        }
        let clients = &mut self.clients;
        let cancels: Vec<_> = self.to_cancel.clients.iter().filter_map(|&id| clients[id].cancel.take()).collect();
        if !cancels.is_empty() {
            let until = clock::now() + self.to_cancel.timeout_ns;
            send(cancels, until);
            self.await_cancelled(until);
        }
    }

    /// Waits for the cancelled statements. The wait for a client ends when it has received something or its connection
    /// has closed. A cancelled statement returns no rows, so anything received is its end.
    fn await_cancelled(&mut self, until: u64) {
        let mut awaited = vec![false; self.clients.len()];
        for &id in &self.to_cancel.clients {
            awaited[id] = true;
        }
        let mut left = self.to_cancel.clients.len();
        while left > 0 {
            let now = clock::now();
            if now >= until || self.transport.wait(now, until).is_err() {
                return;
            }
            while let Some(arrival) = self.transport.next() {
                let id = match arrival {
                    Arrival::Bytes(id) => {
                        // The bytes are discarded, so that they do not accumulate.
                        let inbox = &mut self.transport.mailbox(id).inbox;
                        inbox.consume(inbox.bytes().len());
                        id
                    }
                    Arrival::Lost(id, _) => id,
                    Arrival::Sent(_) => continue,
                };
                left -= usize::from(std::mem::take(&mut awaited[id]));
            }
        }
    }
}

/// Sends as many cancel requests as possible before `until`.
fn send(cancels: Vec<Cancelling>, until: u64) {
    let hands = cancels.len().min(MAX_PARALLEL);
    let cancels = Arc::new(Mutex::new(cancels.into_iter()));
    let helper = |number: usize| {
        let cancels = Arc::clone(&cancels);
        let help = move |_: &Gate| {
            while clock::now() < until {
                let next = cancels.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(cancel) = next else { break };
                // Errors are ignored: if the server is unreachable, there is nothing to cancel.
                let _ = cancel();
            }
            Ok(())
        };
        BackgroundThread::start(ThreadSettings::new(format!("cancel-{number}")), Arc::default(), help).ok()
    };
    let helpers: Vec<BackgroundThread> = (0..hands).filter_map(helper).collect();
    for helper in helpers {
        // A helper may still wait for a server that does not accept its cancel request. Such a helper is not joined,
        // because the request ends by its own timeout.
        if !helper.ended(Duration::from_nanos(until.saturating_sub(clock::now()))) {
            helper.detach();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::transaction::Step;
    use crate::measure::Tally;
    use crate::wire::transport::Mailbox;
    use crate::wire::transport::null::Null;

    struct Asking;

    impl Transaction for Asking {
        fn begin(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            Step::Send
        }

        fn resume(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            Step::Receive
        }

        fn reply(&mut self, _: &mut Mailbox, _: &mut Tally) -> Step {
            Step::Receive
        }
    }

    #[test]
    fn what_was_given_up_is_cancelled_and_its_end_awaited() {
        let cancelled = Arc::new(Mutex::new(Vec::new()));
        let cancel = |id: usize| -> Option<Cancelling> {
            let cancelled = Arc::clone(&cancelled);
            Some(Box::new(move || {
                cancelled.lock().unwrap().push(id);
                Ok(())
            }))
        };
        let clients = vec![Asking, Asking, Asking, Asking];
        let mut event_loop = EventLoop::new(Null::new(4, 0), clients).cancelling((0..4).map(cancel).collect());
        event_loop.to_cancel = PendingCancels { clients: vec![0, 2], timeout_ns: 60 * SECOND };
        event_loop.transport.send(0);
        event_loop.transport.send(2);
        let began = clock::now();
        event_loop.close_sessions();
        assert!(clock::now() - began < 30 * SECOND, "the answers were there");
        let mut cancelled = cancelled.lock().unwrap().clone();
        cancelled.sort_unstable();
        assert_eq!(cancelled, [0, 2]);
    }

    #[test]
    fn an_end_that_does_not_come_is_not_awaited_for_long() {
        let cancels = vec![Some(Box::new(|| Ok(())) as Cancelling)];
        let mut event_loop = EventLoop::new(Null::new(1, 0), vec![Asking]).cancelling(cancels);
        event_loop.to_cancel = PendingCancels { clients: vec![0], timeout_ns: SECOND / 20 };
        let began = clock::now();
        event_loop.close_sessions();
        assert!(clock::now() - began >= SECOND / 20);
    }
}
