//! Opens and closes the measured window, and ends clients.

use std::cmp::Reverse;

use super::Running;
use super::client::{Client, State};
use super::leave::CANCEL_PATIENCE_NS;
use crate::drive::crew::STOP_PATIENCE_NS;
use crate::drive::haul::{Ended, Scheduled};
use crate::drive::transaction::Transaction;
use crate::drive::turns::{REST_PATIENCE_NS, Turned};
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::tally::Counts;
use crate::wire::transport::Transport;

/// How often an idle thread checks whether it should stop.
const LOOK_NS: u64 = 50 * MILLISECOND;

impl<T: Transport, X: Transaction> Running<'_, '_, T, X> {
    #[cold]
    pub(super) fn look(&mut self, now: u64) {
        let warming_up = self.recorder.is_warming_up();
        let resting = self.recorder.is_resting();
        self.recorder.cross(now);
        if warming_up && !self.recorder.is_warming_up() {
            self.open();
        }
        if !resting && self.recorder.is_resting() {
            self.straddling = self.clients.iter().filter(|one| one.is_inside() && one.begun >= self.turn.from).count();
        }
        if self.busy > 0 && now >= self.rests_at.saturating_add(REST_PATIENCE_NS) {
            let patience_s = REST_PATIENCE_NS / SECOND;
            self.start.abort.abort(format!("a transaction was still running {patience_s} s after its slice"));
        }
        if self.start.must_end() {
            self.recorder.close(now);
        }
        if !self.lines.is_empty() && !self.start.goes_on() {
            self.recorder.close(now);
        }
        if self.drain_until == NEVER && self.recorder.is_closed() {
            self.close(now);
        }
        if self.drain_until != NEVER && self.start.control.is_stopped() {
            self.drain_until = self.drain_until.min(now + STOP_PATIENCE_NS);
        }
        self.look_at = self.recorder.boundary().min(now + LOOK_NS).min(self.drain_until);
    }

    /// Opens the window. Transactions in progress count if they end inside it.
    #[cold]
    fn open(&mut self) {
        let by_plan = |client: &&mut Client<X>| client.transaction.share().is_none() && client.line.is_none();
        for client in self.clients.iter_mut().filter(by_plan) {
            let inside = client.is_inside();
            client.left = self.start.transactions_per_client.saturating_sub(u64::from(inside));
        }
    }

    /// Whether clients may rest now that the slice has ended. Clients may rest when no thread has an unfinished
    /// measured transaction.
    #[cold]
    pub(super) fn rests(&mut self) -> bool {
        if !self.settled && self.straddling == 0 {
            self.settled = true;
            self.start.control.turns.settle();
        }
        self.start.control.turns.is_settled()
    }

    /// Counts the transactions in progress when the window closes. These transactions are not measured.
    fn cut(&mut self) {
        self.ended.unfinished += self.busy as u64;
        let under_way = self.clients.iter().filter(|client| client.is_inside());
        for client in under_way {
            self.ended.unfinished_ns += self.recorder.inside_window(client.begun);
            self.recorder.in_flight(client.intended, client.begun);
        }
    }

    /// Lets the thread rest until the next turn. Returns the time at which that turn starts.
    #[cold]
    pub(super) fn rest(&mut self) -> u64 {
        let rested = clock::now();
        // Some clients are in their think time when the turn ends. This think time counts in full.
        let cut = self.clients.iter_mut().filter_map(|client| client.paused.take()).count();
        self.recorder.paused(self.pace.think_ns() * cut as u64);
        self.recorder.paused(self.absence());
        let (Counts { transactions, failed, .. }, busy_ns) = self.recorder.turned();
        let last_ns = self.clients.iter().map(|client| client.took).sum();
        let brought = Turned { transactions, failed, busy_ns, last_ns, ..Turned::default() };
        let next = self.start.control.turns.rest(self.turn, brought, || self.start.must_end());
        if next.is_none() && !self.start.must_end() {
            self.start.abort.abort("the kernel refused to pin a client thread to the CPUs of its slice");
        }
        let now = clock::now();
        if self.start.control.turns.is_forgotten(self.turn) {
            self.recorder.forget();
        }
        if let Some(turn) = next {
            self.turn = turn;
            (self.rests_at, self.straddling, self.settled) = (turn.until, 0, false);
            self.recorder.turn(turn.from, turn.until);
            // The time between two turns is not part of the think time. The timers are therefore postponed by that
            // time.
            let thinking = self.timers.drain().map(|Reverse((due, client))| Reverse((due + (now - rested), client)));
            self.timers = thinking.collect();
            while let Some(client) = self.idle.pop_front() {
                let delay = turn.delay_ns(self.clients[client].rank, self.start.plan.clients);
                self.pause(client, now + delay);
            }
        }
        self.look(now);
        now
    }

    /// Closes the window. Transactions in progress may finish, and transactions that were due inside the window may
    /// still start.
    fn close(&mut self, now: u64) {
        self.cut();
        let end = self.recorder.window_end();
        if self.pace.is_open() {
            self.due_until = end;
            self.ended.scheduled = Some(Scheduled { in_time: self.scheduled, begun: 0 });
        }
        for client in self.clients.iter() {
            // If the client is behind schedule, one of its due jobs is in progress. `not_begun` does not count this
            // job, because it may still end.
            let not_begun = client.not_begun(end);
            self.ended.not_started += not_begun;
            self.recorder.never_begun(not_begun);
        }
        self.drain_until = now + self.start.drain_patience_ns();
        for id in 0..self.clients.len() {
            let Client { state, intended, line, .. } = self.clients[id];
            let goes_on = match state {
                State::Scheduled => intended < end,
                State::Reconnecting | State::Disconnected => self.pace.is_open() && line.is_none(),
                State::Busy | State::Sleeping => true,
                State::Idle | State::Thinking | State::Waiting | State::Ended => false,
            };
            if !goes_on {
                self.leave(id);
            }
        }
        self.idle.clear();
        self.lines.clear();
    }

    pub(super) fn finish(mut self, now: u64) -> Ended {
        self.recorder.close(now);
        if self.drain_until == NEVER {
            self.close(now);
        }
        if let Some(scheduled) = &mut self.ended.scheduled {
            scheduled.begun = self.scheduled;
        }
        self.ended.receive_rearms = self.transport.rearms();
        self.given_up.patience_ns = self.start.drain_patience_ns().min(CANCEL_PATIENCE_NS);
        for id in 0..self.clients.len() {
            let state = self.clients[id].state;
            if self.clients[id].is_inside() {
                self.recorder.censored(self.clients[id].intended, now);
            }
            self.leave(id);
            match state {
                State::Busy => self.given_up.clients.push(id),
                // No statement is running. The server therefore rolls the transaction back as soon as the connection
                // closes.
                State::Sleeping => {}
                _ if self.start.abort.happened() => {}
                _ => self.in_order.push(id),
            }
        }
        self.ended
    }

    pub(super) fn leave(&mut self, id: usize) {
        let client = &mut self.clients[id];
        let inside = client.is_inside();
        self.ended.abandoned += u64::from(inside);
        self.busy -= usize::from(inside);
        self.end(id);
    }

    /// Ends the client.
    #[cold]
    pub(super) fn end(&mut self, id: usize) {
        let client = &mut self.clients[id];
        if client.state == State::Ended {
            return;
        }
        self.reconnecting -= usize::from(client.state == State::Disconnected);
        client.state = State::Ended;
        self.alive -= 1;
        if client.line.is_none() {
            self.start.gone();
            if !self.start.goes_on() && !self.lines.is_empty() {
                // This was the last client that follows the schedule. An immediate check ends the clients that
                // wait for jobs.
                self.look_at = 0;
            }
        }
    }
}
