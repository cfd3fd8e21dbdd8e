//! Clients that reconnect between two transactions.

use super::client::State;
use super::{EventLoop, EventLoopRun};
use crate::drive::parallel_connect::ClientConnection;
use crate::drive::reconnector::Reconnector;
use crate::drive::transaction::Transaction;
use crate::measure::clock::{self, NEVER};
use crate::measure::tally::Reconnects;
use crate::wire::transport::Transport;
use crate::{Error, Result};

impl<T: Transport, X: Transaction> EventLoop<T, X> {
    /// Sets the source of new connections.
    pub fn reconnecting(mut self, reconnector: Option<Reconnector>) -> Result<Self> {
        if let Some(made) = &reconnector {
            self.transport.wake_by(made.event()).map_err(|error| Error::failure("eventfd", error.to_string()))?;
        }
        self.reconnector = reconnector;
        Ok(self)
    }
}

impl<T: Transport, X: Transaction> EventLoopRun<'_, '_, T, X> {
    /// Whether the client can and should open a new connection. The client needs a new connection only if it will start
    /// another transaction in this turn.
    pub(super) fn may_reconnect(&self, id: usize, now: u64) -> bool {
        let client = &self.clients[id];
        let goes_on = client.transactions_left > 0 || client.job_queue.is_some();
        let in_time = self.drain_until == NEVER || client.has_due(self.due_until);
        goes_on && in_time && now < self.slice_end && self.reconnector.is_some()
    }

    /// Ends the client's session and requests a new connection.
    #[cold]
    pub(super) fn reconnect(&mut self, id: usize, now: u64) {
        let Some(reconnector) = self.reconnector.as_ref() else { return };
        let client = &mut self.clients[id];
        client.state = State::Reconnecting;
        client.begun = now;
        client.transaction.farewell(self.transport.mailbox(id));
        self.transport.farewell(id);
        self.reconnecting += 1;
        reconnector.request(id);
    }

    /// Continues the clients whose new connections are ready.
    #[cold]
    pub(super) fn take_connections(&mut self) {
        while let Some(made) = self.reconnector.as_ref().and_then(Reconnector::next) {
            self.reconnecting -= 1;
            let (id, now) = (made.client, clock::now());
            if self.clients[id].state != State::Reconnecting {
                continue; // the client has ended
            }
            let replaced =
                made.connection.map_err(|error| error.cause).and_then(|ClientConnection { stream, unread, cancel }| {
                    self.transport.replace(id, stream, &unread).map_err(|error| error.to_string())?;
                    Ok(cancel)
                });
            let cancel = match replaced {
                Ok(cancel) => cancel,
                Err(cause) => {
                    self.not_connected(id, &format!("a client could not connect again: {cause}"), now);
                    continue;
                }
            };
            let client = &mut self.clients[id];
            client.cancel = cancel;
            client.transaction.reconnected();
            let took = Reconnects { count: 1, sum_ns: now - client.begun, cpu: made.cpu };
            self.recorder.tally.reconnects = self.recorder.tally.reconnects.plus(took);
            if let Some(step) = self.next_transaction(id, now) {
                self.run_steps(id, step, now);
            }
        }
    }
}
