//! Clients that no schedule moves: they stand in a line until a source of jobs has work for them.

use std::collections::VecDeque;

use super::Running;
use super::client::State;
use crate::drive::jobs::{LAGGING_LINE, Next};
use crate::drive::transaction::{Step, Transaction};
use crate::measure::clock::NEVER;
use crate::wire::transport::Transport;

/// Clients that do the same work, and wait for it.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<usize>,
    /// There was nothing for the first of them before.
    ask_at: u64,
}

impl Line {
    /// When there may be work; None: nobody waits for it.
    pub fn wake_at(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.ask_at)
    }
}

impl<T: Transport, X: Transaction> Running<'_, '_, T, X> {
    /// Work that is due goes to those who wait for it, in the order in which they came.
    #[cold]
    pub(super) fn serve_lines(&mut self, now: u64) {
        for number in 0..self.lines.len() {
            // Who ends at once waits for the next round, so that replies are not starved.
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

    /// The client begins what is due in its line, or waits there; or it has ended.
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
        }
    }

    fn note_lag(&mut self, client: usize, due: u64, now: u64) {
        if self.clients[client].line == Some(LAGGING_LINE) {
            self.recorder.waited(due, now);
        }
    }

    /// Whether the client stands in a line, and the trial goes on; otherwise it has ended.
    fn may_wait(&mut self, client: usize) -> bool {
        let open = self.clients[client].line.is_some() && self.drain_until == NEVER;
        if !open {
            self.end(client);
        }
        open
    }
}
