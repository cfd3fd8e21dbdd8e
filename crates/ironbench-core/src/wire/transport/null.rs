//! The null engine, which answers every message immediately, or after a fixed time without using CPU. This engine is
//! used to measure the overhead of ironbench.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use super::{Arrival, Mailbox, Transport};
use crate::measure::clock;

#[derive(Debug)]
pub struct Null {
    mailboxes: Vec<Mailbox>,
    service_ns: u64,
    /// Clients whose messages have been sent but not answered. Used only if the engine has no service time.
    sent: VecDeque<usize>,
    message_sent: VecDeque<usize>,
    /// Number of answers that `next` may return in this round.
    answered: usize,
    served: BinaryHeap<Reverse<(u64, usize)>>,
    now: u64,
}

impl Null {
    pub fn new(clients: usize, service_ns: u64) -> Self {
        let mailboxes = (0..clients).map(|_| Mailbox::default()).collect();
        Self {
            mailboxes,
            service_ns,
            sent: VecDeque::new(),
            message_sent: VecDeque::new(),
            answered: 0,
            served: BinaryHeap::new(),
            now: clock::now(),
        }
    }
}

impl Transport for Null {
    const SENDS_AT_ONCE: bool = false;
    const NAME: &'static str = "null";

    #[inline]
    fn mailbox(&mut self, client: usize) -> &mut Mailbox {
        &mut self.mailboxes[client]
    }

    #[inline]
    fn send(&mut self, client: usize) {
        if self.service_ns == 0 {
            self.sent.push_back(client);
        } else {
            self.served.push(Reverse((clock::now() + self.service_ns, client)));
        }
    }

    fn send_without_reply(&mut self, client: usize) {
        self.message_sent.push_back(client);
    }

    fn receive(&mut self, client: usize) {
        self.sent.push_back(client);
    }

    #[inline]
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.now = now;
        self.answered = self.sent.len();
        if self.answered > 0 || !self.message_sent.is_empty() {
            return Ok(());
        }
        let wake = self.served.peek().map_or(until, |&Reverse((due, _))| due.min(until));
        if wake > now {
            clock::sleep_until(wake);
            self.now = clock::now();
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        if self.answered > 0 {
            self.answered -= 1;
            return self.sent.pop_front().map(Arrival::Bytes);
        }
        if let Some(client) = self.message_sent.pop_front() {
            return Some(Arrival::Sent(client));
        }
        match self.served.peek() {
            Some(&Reverse((due, client))) if due <= self.now => {
                self.served.pop();
                Some(Arrival::Bytes(client))
            }
            _ => None,
        }
    }
}
