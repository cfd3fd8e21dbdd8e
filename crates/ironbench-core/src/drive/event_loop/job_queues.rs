//! Clients that follow no schedule. Each of them waits in a queue until the source of jobs has work for it.

use std::collections::VecDeque;

use super::EventLoopRun;
use super::client::State;
use crate::drive::jobs::{LAG_QUEUE, Next};
use crate::drive::transaction::{Step, Transaction};
use crate::measure::clock::NEVER;
use crate::wire::transport::Transport;

/// The queue of clients that wait for the same kind of work.
#[derive(Default)]
pub(super) struct JobQueue {
    waiting: VecDeque<usize>,
    /// Instant before which no job becomes due.
    next_job_at: u64,
}

impl JobQueue {
    /// Returns the earliest instant at which a job may become due, or None if no client waits.
    pub fn wake_at(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.next_job_at)
    }

    /// Removes all clients for which `keeps` returns false.
    pub fn keep(&mut self, keeps: impl Fn(usize) -> bool) {
        self.waiting.retain(|client| keeps(*client));
    }
}

impl<T: Transport, X: Transaction> EventLoopRun<'_, '_, T, X> {
    /// Assigns due jobs to waiting clients, first come, first served.
    #[cold]
    pub(super) fn serve_job_queues(&mut self, now: u64) {
        for number in 0..self.job_queues.len() {
            // The loop runs once for each client that waits now. A client whose job ends immediately then waits for the
            // next round. Otherwise it could keep the event loop from handling replies.
            for _ in 0..self.job_queues[number].waiting.len() {
                let line = &self.job_queues[number];
                let Some(&client) = line.waiting.front() else { break };
                if line.next_job_at > now {
                    break;
                }
                if self.clients[client].transaction.wants_reconnect() && self.may_reconnect(client, now) {
                    self.job_queues[number].waiting.pop_front();
                    self.reconnect(client, now);
                    continue;
                }
                let line = &mut self.job_queues[number];
                match self.clients[client].transaction.claim(now) {
                    Next::Job { due, .. } => {
                        line.waiting.pop_front();
                        self.note_lag(client, due, now);
                        self.clients[client].transactions_left = 1;
                        self.begin(client, due, now);
                    }
                    Next::NotBefore(instant) => line.next_job_at = instant,
                    Next::Over => {
                        line.waiting.pop_front();
                        self.end(client);
                    }
                }
            }
        }
    }

    #[cold]
    pub(super) fn enqueue(&mut self, client: usize, ask_at: u64) {
        if !self.may_wait(client) {
            return;
        }
        let number = self.clients[client].job_queue.expect("called for those who wait");
        if self.job_queues.len() <= number {
            self.job_queues.resize_with(number + 1, JobQueue::default);
        }
        let line = &mut self.job_queues[number];
        line.waiting.push_back(client);
        line.next_job_at = line.next_job_at.min(ask_at);
        self.clients[client].state = State::Waiting;
        self.transport.watch_for_loss(client);
    }

    /// Starts the client's next job. If there is none, queues the client or ends it.
    #[cold]
    pub(super) fn next_unscheduled(&mut self, client: usize, now: u64) -> Option<Step> {
        if now >= self.slice_end
            && self.drain_until == NEVER
            && self.clients[client].job_queue.is_none()
            && self.may_rest()
        {
            self.rest_until_turn(client);
            return None;
        }
        if !self.may_wait(client) {
            return None;
        }
        match self.clients[client].transaction.claim(now) {
            Next::Job { due, .. } => {
                self.note_lag(client, due, now);
                self.clients[client].transactions_left = 1;
                Some(self.start_transaction(client, due, now))
            }
            Next::NotBefore(instant) => {
                self.enqueue(client, instant);
                None
            }
            Next::Over => {
                self.end(client);
                None
            }
        }
    }

    fn note_lag(&mut self, client: usize, due: u64, now: u64) {
        if self.clients[client].job_queue == Some(LAG_QUEUE) {
            self.recorder.record_wait(due, now);
        }
    }

    /// Returns true if the client may wait for a job. Otherwise ends the client and returns false. After the window has
    /// closed, clients start only the recorded transactions that were due inside it.
    fn may_wait(&mut self, id: usize) -> bool {
        let client = &self.clients[id];
        let open = client.job_queue.is_some() && (self.drain_until == NEVER || client.has_due(self.due_until));
        if !open {
            self.end(id);
        }
        open
    }
}
