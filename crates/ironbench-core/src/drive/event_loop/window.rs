//! Opens and closes the measured window, and ends clients.

use std::cmp::Reverse;

use super::EventLoopRun;
use super::client::{Client, State};
use super::session_end::CANCEL_TIMEOUT_NS;
use crate::drive::thread_results::{Scheduled, UnfinishedWork};
use crate::drive::threads::STOP_TIMEOUT_NS;
use crate::drive::transaction::Transaction;
use crate::drive::turns::{REST_TIMEOUT_NS, TurnTotals};
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::tally::Counts;
use crate::wire::transport::Transport;

/// How often an idle thread checks whether it should stop.
const CHECK_NS: u64 = 50 * MILLISECOND;

impl<T: Transport, X: Transaction> EventLoopRun<'_, '_, T, X> {
    /// Checks whether the window has opened or closed, and whether the trial must end.
    #[cold]
    pub(super) fn check_window(&mut self, now: u64) {
        let warming_up = self.recorder.is_warming_up();
        let resting = self.recorder.is_resting();
        self.recorder.pass_time(now);
        if warming_up && !self.recorder.is_warming_up() {
            self.open();
        }
        if !resting && self.recorder.is_resting() {
            self.slice_transactions =
                self.clients.iter().filter(|one| one.is_in_transaction() && one.begun >= self.turn.from).count();
        }
        if self.busy > 0 && now >= self.slice_end.saturating_add(REST_TIMEOUT_NS) {
            let patience_s = REST_TIMEOUT_NS / SECOND;
            self.start.abort.abort(format!("a transaction was still running {patience_s} s after its slice"));
        }
        if self.start.must_end() {
            self.recorder.close(now);
        }
        if !self.job_queues.is_empty() && !self.start.has_active_clients() {
            self.recorder.close(now);
        }
        if self.drain_until == NEVER && self.recorder.is_closed() {
            self.close(now);
        }
        if self.drain_until != NEVER && self.start.control.is_stopped() {
            self.drain_until = self.drain_until.min(now + STOP_TIMEOUT_NS);
        }
        self.check_at = self.recorder.boundary().min(now + CHECK_NS).min(self.drain_until);
    }

    /// Opens the window. Transactions in progress count if they end inside it.
    #[cold]
    fn open(&mut self) {
        let by_plan = |client: &&mut Client<X>| client.transaction.share().is_none() && client.job_queue.is_none();
        for client in self.clients.iter_mut().filter(by_plan) {
            let inside = client.is_in_transaction();
            client.transactions_left = self.start.transactions_per_client.saturating_sub(u64::from(inside));
        }
    }

    /// Whether clients may rest now that the slice has ended. Clients may rest when no thread has an unfinished
    /// measured transaction.
    #[cold]
    pub(super) fn may_rest(&mut self) -> bool {
        if !self.settled && self.slice_transactions == 0 {
            self.settled = true;
            self.start.control.turns.settle();
        }
        self.start.control.turns.is_settled()
    }

    /// Counts the transactions in progress when the window closes. These transactions are not measured.
    fn count_in_progress(&mut self) {
        self.unfinished.unfinished += self.busy as u64;
        let under_way = self.clients.iter().filter(|client| client.is_in_transaction());
        for client in under_way {
            self.unfinished.unfinished_ns += self.recorder.inside_window(client.begun);
            self.recorder.in_flight(client.intended, client.begun);
        }
    }

    /// Lets the thread rest until the next turn. Returns the time at which that turn starts.
    #[cold]
    pub(super) fn rest(&mut self) -> u64 {
        let rested = clock::now();
        // Some clients are in their think time when the turn ends. This think time counts in full.
        let cut = self.clients.iter_mut().filter_map(|client| client.paused.take()).count();
        self.recorder.add_think_time(self.pace.think_ns() * cut as u64);
        self.recorder.add_think_time(self.lost_client_time_ns());
        let (Counts { transactions, failed, .. }, busy_ns) = self.recorder.end_turn();
        let last_ns = self.clients.iter().map(|client| client.last_duration).sum();
        let brought = TurnTotals { transactions, failed, busy_ns, last_ns, ..TurnTotals::default() };
        let next = self.start.control.turns.rest(self.turn, brought, || self.start.must_end());
        if next.is_none() && !self.start.must_end() {
            self.start.abort.abort("the kernel refused to pin a client thread to the CPUs of its slice");
        }
        let now = clock::now();
        if self.start.control.turns.is_forgotten(self.turn) {
            self.recorder.discard_turn();
        }
        if let Some(turn) = next {
            self.turn = turn;
            (self.slice_end, self.slice_transactions, self.settled) = (turn.until, 0, false);
            self.recorder.turn(turn.from, turn.until);
            // The time between two turns is not part of the think time. The timers are therefore postponed by that
            // time.
            let thinking = self.timers.drain().map(|Reverse((due, client))| Reverse((due + (now - rested), client)));
            self.timers = thinking.collect();
            while let Some(client) = self.idle.pop_front() {
                let delay = turn.delay_ns(self.clients[client].rank, self.start.plan.clients);
                self.start_at(client, now + delay);
            }
        }
        self.check_window(now);
        now
    }

    /// Closes the window. Transactions in progress may finish, and transactions that were due inside the window may
    /// still start.
    fn close(&mut self, now: u64) {
        self.count_in_progress();
        let end = self.recorder.window_end();
        self.due_until = end;
        if self.pace.is_open() {
            self.unfinished.scheduled = Some(Scheduled { in_time: self.scheduled, begun: 0 });
        }
        for client in self.clients.iter() {
            for due in client.not_started_before(end) {
                self.unfinished.not_started += 1;
                self.recorder.waits(due);
            }
        }
        self.drain_until = now + self.start.drain_timeout_ns();
        for id in 0..self.clients.len() {
            let client = &self.clients[id];
            let goes_on = match client.state {
                State::Scheduled => client.intended < end,
                State::Reconnecting | State::Disconnected if client.job_queue.is_none() => self.pace.is_open(),
                State::Waiting | State::Reconnecting => client.has_due(end),
                State::Busy | State::Sleeping => true,
                State::Idle | State::Thinking | State::Disconnected | State::Ended => false,
            };
            if !goes_on {
                self.end_session(id);
            }
        }
        self.idle.clear();
        for queue in &mut self.job_queues {
            queue.keep(|client| self.clients[client].state == State::Waiting);
        }
    }

    pub(super) fn finish(mut self, now: u64) -> UnfinishedWork {
        self.recorder.close(now);
        if self.drain_until == NEVER {
            self.close(now);
        }
        if let Some(scheduled) = &mut self.unfinished.scheduled {
            scheduled.begun = self.scheduled;
        }
        self.unfinished.receive_rearms = self.transport.rearms();
        self.to_cancel.timeout_ns = self.start.drain_timeout_ns().min(CANCEL_TIMEOUT_NS);
        for id in 0..self.clients.len() {
            let state = self.clients[id].state;
            if self.clients[id].is_in_transaction() {
                self.recorder.censored(self.clients[id].intended, now);
            }
            for due in self.clients[id].not_started_before(self.due_until) {
                self.recorder.censored(due, now);
            }
            self.end_session(id);
            match state {
                State::Busy => self.to_cancel.clients.push(id),
                // No statement is running. The server therefore rolls the transaction back as soon as the connection
                // closes.
                State::Sleeping => {}
                _ if self.start.abort.is_aborted() => {}
                _ => self.ended_normally.push(id),
            }
        }
        self.unfinished
    }

    pub(super) fn end_session(&mut self, id: usize) {
        let client = &mut self.clients[id];
        let inside = client.is_in_transaction();
        self.unfinished.abandoned += u64::from(inside);
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
        if client.job_queue.is_none() {
            self.start.client_ended();
            if !self.start.has_active_clients() && !self.job_queues.is_empty() {
                // This was the last client that follows the schedule. An immediate check ends the clients that
                // wait for jobs.
                self.check_at = 0;
            }
        }
    }
}
