//! Clients that follow no schedule. Each of them waits in a queue until the source of jobs has work for it.

use std::collections::VecDeque;

use super::Running;
use super::client::State;
use crate::drive::jobs::{LAGGING_LINE, Next};
use crate::drive::transaction::{Step, Transaction};
use crate::measure::clock::NEVER;
use crate::wire::transport::Transport;

/// The queue of clients that wait for the same kind of work.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<usize>,
    /// Instant before which no job becomes due.
    ask_at: u64,
}

impl Line {
    /// Returns the earliest instant at which a job may become due, or None if no client waits.
    pub fn wake_at(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.ask_at)
    }
}

impl<T: Transport, X: Transaction> Running<'_, '_, T, X> {
    /// Assigns due jobs to waiting clients, first come, first served.
    #[cold]
    pub(super) fn serve_lines(&mut self, now: u64) {
        for number in 0..self.lines.len() {
            // The loop runs once for each client that waits now. A client whose job ends immediately then waits for the
            // next round. Otherwise it could keep the event loop from handling replies.
            for _ in 0..self.lines[number].waiting.len() {
                let line = &self.lines[number];
                let Some(&client) = line.waiting.front() else { break };
                if line.ask_at > now {
                    break;
                }
                if self.clients[client].transaction.wants_reconnect() && self.may_reconnect(client, now) {
                    self.lines[number].waiting.pop_front();
                    self.reconnect(client, now);
                    continue;
                }
                let line = &mut self.lines[number];
                match self.clients[client].transaction.claim(now) {
                    Next::Job { due, .. } => {
                        line.waiting.pop_front();
                        self.note_lag(client, due, now);
                        self.clients[client].left = 1;
                        self.begin(client, due, now);
                    }
                    Next::NotBefore(instant) => line.ask_at = instant,
                    Next::Over => {
                        line.waiting.pop_front();
                        self.end(client);
                    }
                }
            }
        }
    }

    #[cold]
    pub(super) fn wait_in_line(&mut self, client: usize, ask_at: u64) {
        if !self.may_wait(client) {
            return;
        }
        let number = self.clients[client].line.expect("called for those who wait");
        if self.lines.len() <= number {
            self.lines.resize_with(number + 1, Line::default);
        }
        let line = &mut self.lines[number];
        line.waiting.push_back(client);
        line.ask_at = line.ask_at.min(ask_at);
        self.clients[client].state = State::Waiting;
        self.transport.watch_for_loss(client);
    }

    /// Starts the client's next job. If there is none, queues the client or ends it.
    #[cold]
    pub(super) fn next_unscheduled(&mut self, client: usize, now: u64) -> Option<Step> {
        if now >= self.rests_at && self.drain_until == NEVER && self.clients[client].line.is_none() && self.rests() {
            self.release(client);
            return None;
        }
        if !self.may_wait(client) {
            return None;
        }
        match self.clients[client].transaction.claim(now) {
            Next::Job { due, .. } => {
                self.note_lag(client, due, now);
                self.clients[client].left = 1;
                Some(self.enter(client, due, now))
            }
            Next::NotBefore(instant) => {
                self.wait_in_line(client, instant);
                None
            }
            Next::Over => {
                self.end(client);
                None
            }
        }
    }

    fn note_lag(&mut self, client: usize, due: u64, now: u64) {
        if self.clients[client].line == Some(LAGGING_LINE) {
            self.recorder.waited(due, now);
        }
    }

    /// Returns true if the client may wait for a job. Otherwise ends the client and returns false, for example because
    /// the window has closed.
    fn may_wait(&mut self, client: usize) -> bool {
        let open = self.clients[client].line.is_some() && self.drain_until == NEVER;
        if !open {
            self.end(client);
        }
        open
    }
}
