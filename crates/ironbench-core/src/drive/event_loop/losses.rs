//! Handles clients that lose their connection.
//!
//! If possible, the client opens a new connection and continues. Otherwise the client ends, and the other clients
//! continue, as in pgbench. If the other clients cannot continue, the trial ends.

use std::cmp::Reverse;

use super::EventLoopRun;
use super::client::State;
use crate::drive::pace::Pace;
use crate::drive::plan::OnError;
use crate::drive::transaction::Transaction;
use crate::measure::clock::{MILLISECOND, NEVER, SECOND};
use crate::wire::transport::Transport;

/// Delay before a client retries a failed connection attempt. The delay is long because servers take seconds to
/// restart.
const RETRY_NS: u64 = 250 * MILLISECOND;
/// Time without a connection after which the client ends.
const RECONNECT_TIMEOUT_NS: u64 = if cfg!(test) { SECOND / 2 } else { 60 * SECOND };

impl<T: Transport, X: Transaction> EventLoopRun<'_, '_, T, X> {
    /// Handles the loss of a client's connection.
    #[cold]
    pub(super) fn lost(&mut self, id: usize, cause: &str, now: u64) {
        let client = &mut self.clients[id];
        if client.is_gone() || client.state == State::Waiting && client.transaction.lost_waiting() {
            return;
        }
        let said = client.transaction.last_words(self.transport.mailbox(id));
        let cause = said.map_or_else(|| cause.to_owned(), |said| format!("{cause}: {said}"));
        let inside = client.is_in_transaction();
        self.start.losses.note(&cause);
        let survives = self.start.plan.survives_losses();
        let ending = survives.then(|| client.transaction.abandon(inside, &cause, &mut self.recorder.tally)).flatten();
        let Some(ending) = ending else { return self.give_up(id, cause, now) };
        self.recorder.tally.connections_lost += 1;
        self.withdraw(id);
        if inside {
            // The engine may or may not have committed the transaction in progress.
            self.unfinished.abandoned += 1;
            self.record(id, ending, now);
        }
        let client = &mut self.clients[id];
        (client.begun, client.paused, client.last_duration) = (now, None, 0);
        let reconnects = self.start.plan.reconnect_on_loss && self.reconnector.is_some();
        match reconnects {
            _ if self.drain_until != NEVER => self.end(id),
            true if client.transactions_left == 0 => self.end(id),
            true => self.connect_at(id, now),
            false => self.end_alone(id, now),
        }
    }

    /// Handles a failed attempt to open a new connection for a client.
    #[cold]
    pub(super) fn not_connected(&mut self, id: usize, cause: &str, now: u64) {
        if self.drain_until != NEVER || self.start.must_end() {
            return self.end(id);
        }
        let plan = self.start.plan;
        let client = &mut self.clients[id];
        if plan.reconnect_on_loss && now < client.begun + RECONNECT_TIMEOUT_NS {
            return self.connect_at(id, now + RETRY_NS);
        }
        self.start.losses.note(cause);
        let alone = client.transaction.abandon(false, cause, &mut self.recorder.tally).is_some();
        if !alone || plan.on_error == OnError::Stop {
            return self.give_up(id, cause.to_owned(), now);
        }
        self.end_alone(id, now);
    }

    /// Ends the trial together with this client.
    fn give_up(&mut self, id: usize, cause: String, now: u64) {
        self.start.abort.abort(cause);
        self.check_window(now);
        self.end_session(id);
    }

    /// Ends the client. The other clients continue.
    fn end_alone(&mut self, id: usize, now: u64) {
        self.clients[id].lost = Some(now);
        self.end(id);
        if self.drain_until == NEVER {
            self.start.client_lost();
            self.check_window(now);
        }
    }

    /// Makes the client request a new connection at `instant`.
    fn connect_at(&mut self, id: usize, instant: u64) {
        self.clients[id].state = State::Disconnected;
        self.reconnecting += 1;
        self.timers.push(Reverse((instant, id)));
    }

    #[cold]
    pub(super) fn retry_connect(&mut self, id: usize) {
        self.clients[id].state = State::Reconnecting;
        if let Some(reconnector) = self.reconnector.as_ref() {
            reconnector.request(id);
        }
    }

    /// Removes the client's timers, and returns its scheduled transaction to the other clients.
    fn withdraw(&mut self, id: usize) {
        self.timers.retain(|Reverse((_, of))| *of != id);
        self.idle.retain(|of| *of != id);
        if let (State::Scheduled, Pace::Open(schedule)) = (self.clients[id].state, &self.pace) {
            schedule.give_back(self.clients[id].intended);
        }
    }

    /// Whether this thread must still take part in turns. Even if it has lost all its clients, the other threads wait
    /// for it after each turn.
    #[cold]
    pub(super) fn takes_part_in_turns(&self) -> bool {
        self.slice_end != NEVER && self.drain_until == NEVER && self.clients.iter().any(|client| client.lost.is_some())
    }

    /// Returns the time that lost clients were missing in this slice, summed over these clients. A client is missing
    /// from the loss of its connection to the end of the slice. This time counts as busy time, as if the client had
    /// stayed. The throughput is then what the remaining clients achieved.
    pub(super) fn lost_client_time_ns(&self) -> u64 {
        let lost = self.clients.iter().filter_map(|client| client.lost);
        lost.map(|lost| self.turn.until.saturating_sub(lost.max(self.turn.from))).sum()
    }
}
