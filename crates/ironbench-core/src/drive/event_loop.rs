//! One thread driving many clients: send, wait for whichever answers, send its next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::crew::{Ended, Start, Worker};
use super::jobs::Next;
use super::pace::Pace;
use super::transaction::{Ending, Step, Transaction};
use crate::measure::Recorder;
use crate::measure::clock::{self, MILLISECOND, NEVER};
use crate::wire::transport::{Arrival, Transport};

/// How often a thread with nothing else to do looks whether it should stop.
const LOOK_NS: u64 = 50 * MILLISECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for a transaction that is due.
    Idle,
    /// Has a message under way.
    Busy,
    /// Sleeps inside a transaction.
    Sleeping,
    /// Sleeps between transactions.
    Thinking,
    /// Waits in its line for work.
    Waiting,
    Ended,
}

struct Client<X> {
    transaction: X,
    state: State,
    line: Option<usize>,
    /// Response time counts from here,
    intended: u64,
    /// service time from here.
    begun: u64,
    /// Transactions it may still begin; of one that waits for work, none before there is some.
    left: u64,
}

pub struct EventLoop<T, X> {
    transport: T,
    clients: Vec<Client<X>>,
    /// Clients whose session ended in order, so that the engine is told when they leave.
    in_order: Vec<usize>,
}

impl<T: Transport, X: Transaction> EventLoop<T, X> {
    pub fn new(transport: T, transactions: Vec<X>) -> Self {
        let client = |transaction: X| {
            let line = transaction.line();
            Client { transaction, state: State::Idle, line, intended: 0, begun: 0, left: 0 }
        };
        Self { transport, clients: transactions.into_iter().map(client).collect(), in_order: Vec::new() }
    }
}

impl<T: Transport, X: Transaction> Worker for EventLoop<T, X> {
    fn io(&self) -> &'static str {
        T::NAME
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> Ended {
        let Self { transport, clients, in_order } = self;
        for client in clients.iter_mut() {
            let scheduled = if client.line.is_none() { u64::MAX } else { 0 };
            client.left = client.transaction.share().unwrap_or(scheduled);
        }
        let alive = clients.len();
        let pace = start.pace.clone();
        Running {
            transport,
            clients,
            in_order,
            recorder,
            start,
            pace,
            timers: BinaryHeap::with_capacity(alive),
            idle: VecDeque::with_capacity(alive),
            lines: Vec::new(),
            alive,
            busy: 0,
            look_at: 0,
            drain_until: NEVER,
            ended: Ended::default(),
        }
        .run()
    }

    fn leave(mut self) {
        for id in self.in_order {
            self.clients[id].transaction.farewell(self.transport.mailbox(id));
            self.transport.farewell(id);
        }
    }
}

/// Clients that do the same work, and wait for it.
#[derive(Default)]
struct Line {
    waiting: VecDeque<usize>,
    /// There was nothing for the first of them before.
    ask_at: u64,
}

struct Running<'a, 'r, T, X> {
    transport: &'a mut T,
    clients: &'a mut [Client<X>],
    in_order: &'a mut Vec<usize>,
    recorder: &'a mut Recorder<'r>,
    start: &'a Start<'a>,
    pace: Pace,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    idle: VecDeque<usize>,
    lines: Vec<Line>,
    /// Clients that have not ended,
    alive: usize,
    /// and those of them inside a transaction.
    busy: usize,
    look_at: u64,
    /// `NEVER` while the window is open.
    drain_until: u64,
    ended: Ended,
}

impl<T: Transport, X: Transaction> Running<'_, '_, T, X> {
    fn run(mut self) -> Ended {
        clock::sleep_until(self.start.origin);
        let mut now = clock::now();
        self.look(now);
        self.release_all(now);
        while self.alive > 0 && now < self.drain_until {
            self.fire_timers(now);
            self.begin_due(now);
            if !self.lines.is_empty() {
                self.serve_lines(now);
            }
            let until = self.wake_at();
            if let Err(error) = self.transport.wait(now, until) {
                self.start.abort.abort(format!("waiting for the engine failed: {error}"));
            }
            now = clock::now();
            self.look_if_due(now);
            while let Some(arrival) = self.transport.next() {
                if T::SENDS_AT_ONCE {
                    now = clock::now();
                    self.look_if_due(now);
                }
                match arrival {
                    Arrival::Bytes(client) => {
                        let mailbox = self.transport.mailbox(client);
                        let step = self.clients[client].transaction.reply(mailbox, &mut self.recorder.tally);
                        self.follow(client, step, now);
                    }
                    Arrival::Shipped(client) => {
                        let mailbox = self.transport.mailbox(client);
                        let step = self.clients[client].transaction.shipped(mailbox, &mut self.recorder.tally);
                        self.follow(client, step, now);
                    }
                    Arrival::Lost(client, error) => self.lost(client, &error.to_string(), now),
                }
            }
        }
        self.finish(now)
    }

    fn release_all(&mut self, now: u64) {
        for client in 0..self.clients.len() {
            if self.clients[client].line.is_some() {
                self.wait_in_line(client, now);
            } else if self.pace.is_open() {
                self.release(client);
            } else if self.may_begin(client) {
                self.timers.push(Reverse((now, client)));
                self.clients[client].state = State::Thinking;
            }
        }
    }

    fn wake_at(&self) -> u64 {
        let mut wake = self.look_at;
        if let Some(&Reverse((due, _))) = self.timers.peek() {
            wake = wake.min(due);
        }
        if let Pace::Open(schedule) = &self.pace
            && !self.idle.is_empty()
        {
            wake = wake.min(schedule.due());
        }
        for line in self.lines.iter().filter(|line| !line.waiting.is_empty()) {
            wake = wake.min(line.ask_at);
        }
        wake
    }

    fn fire_timers(&mut self, now: u64) {
        // Those set again for this very instant wait for the next round, so that replies are not starved.
        for _ in 0..self.timers.len() {
            let Some(&Reverse((due, client))) = self.timers.peek() else { return };
            if due > now {
                return;
            }
            self.timers.pop();
            match self.clients[client].state {
                State::Sleeping => {
                    self.recorder.late(due, now);
                    self.clients[client].state = State::Busy;
                    let mailbox = self.transport.mailbox(client);
                    let step = self.clients[client].transaction.resume(mailbox, &mut self.recorder.tally);
                    self.follow(client, step, now);
                }
                State::Thinking => {
                    self.recorder.late(due, now);
                    self.begin(client, now, now);
                }
                State::Idle | State::Busy | State::Waiting | State::Ended => {}
            }
        }
    }

    fn begin_due(&mut self, now: u64) {
        while let Pace::Open(schedule) = &mut self.pace
            && let due = schedule.due()
            && due <= now
            && let Some(client) = self.idle.pop_front()
        {
            schedule.advance();
            self.recorder.late(due, now);
            self.begin(client, due, now);
        }
    }

    /// Work that is due goes to those who wait for it, in the order in which they came.
    #[cold]
    fn serve_lines(&mut self, now: u64) {
        for number in 0..self.lines.len() {
            // Who ends at once waits for the next round, so that replies are not starved.
            for _ in 0..self.lines[number].waiting.len() {
                let line = &mut self.lines[number];
                let Some(&client) = line.waiting.front() else { break };
                if line.ask_at > now {
                    break;
                }
                match self.clients[client].transaction.claim(now) {
                    Next::Job { due, .. } => {
                        line.waiting.pop_front();
                        self.recorder.waited(due, now);
                        self.clients[client].left = 1;
                        self.begin(client, due, now);
                    }
                    Next::NotBefore(instant) => line.ask_at = instant,
                }
            }
        }
    }

    #[cold]
    fn wait_in_line(&mut self, client: usize, ask_at: u64) {
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
    }

    #[inline]
    fn begin(&mut self, client: usize, intended: u64, now: u64) {
        let step = self.enter(client, intended, now);
        self.follow(client, step, now);
    }

    #[inline]
    fn enter(&mut self, id: usize, intended: u64, now: u64) -> Step {
        let client = &mut self.clients[id];
        client.state = State::Busy;
        client.intended = intended;
        client.begun = now;
        client.left -= 1;
        self.busy += 1;
        let step = client.transaction.begin(self.transport.mailbox(id), &mut self.recorder.tally);
        match step {
            Step::Ended(ending) => self.ended_without_engine(id, ending),
            step => step,
        }
    }

    /// A transaction without a single message: the loop goes round before the next one, or it would never return.
    #[cold]
    fn ended_without_engine(&mut self, client: usize, ending: Ending) -> Step {
        let now = clock::now();
        self.record(client, ending, now);
        self.clients[client].state = State::Thinking;
        if self.clients[client].line.is_some() {
            self.wait_in_line(client, now);
        } else if self.pace.is_open() {
            self.release(client);
        } else if self.may_begin(client) {
            let think_ns = self.think_ns();
            self.timers.push(Reverse((now + think_ns, client)));
        }
        Step::Receive
    }

    fn think_ns(&self) -> u64 {
        match self.pace {
            Pace::Closed { think_ns } => think_ns,
            Pace::Open(_) => 0,
        }
    }

    #[inline]
    fn record(&mut self, client: usize, ending: Ending, now: u64) {
        self.busy -= 1;
        let Client { intended, begun, .. } = self.clients[client];
        if ending.well {
            self.recorder.complete(ending.kind, intended, begun, now);
        } else {
            self.failed(now);
        }
    }

    #[cold]
    fn failed(&mut self, now: u64) {
        self.start.failed(&self.recorder.tally, now);
        if self.start.abort.happened() {
            self.look_at = now;
        }
    }

    #[inline]
    fn follow(&mut self, client: usize, mut step: Step, now: u64) {
        loop {
            match step {
                Step::Send => return self.transport.send(client),
                Step::Ship => return self.transport.ship(client),
                Step::Receive if self.clients[client].state == State::Busy => return self.transport.receive(client),
                Step::Receive => return,
                Step::Ended(ending) => {
                    self.record(client, ending, now);
                    match self.next_transaction(client, now) {
                        Some(begun) => step = begun,
                        None => return,
                    }
                }
                Step::Sleep(ns) => {
                    self.clients[client].state = State::Sleeping;
                    return self.timers.push(Reverse((now.saturating_add(ns), client)));
                }
                Step::Broken(cause) => return self.lost(client, &cause, now),
            }
        }
    }

    /// The client begins its next transaction, thinks, waits for one that is due, or has ended.
    #[inline]
    fn next_transaction(&mut self, client: usize, now: u64) -> Option<Step> {
        if self.clients[client].left == 0 || self.drain_until != NEVER {
            return self.next_unscheduled(client, now);
        }
        match &mut self.pace {
            Pace::Closed { think_ns: 0 } => Some(self.enter(client, now, now)),
            Pace::Closed { think_ns } => {
                self.clients[client].state = State::Thinking;
                self.timers.push(Reverse((now + *think_ns, client)));
                None
            }
            Pace::Open(schedule) => {
                let due = schedule.due();
                if due > now {
                    self.release(client);
                    return None;
                }
                schedule.advance();
                Some(self.enter(client, due, now))
            }
        }
    }

    /// The client begins what is due in its line, or waits there; or it has ended.
    #[cold]
    fn next_unscheduled(&mut self, client: usize, now: u64) -> Option<Step> {
        if !self.may_wait(client) {
            return None;
        }
        match self.clients[client].transaction.claim(now) {
            Next::Job { due, .. } => {
                self.recorder.waited(due, now);
                self.clients[client].left = 1;
                Some(self.enter(client, due, now))
            }
            Next::NotBefore(instant) => {
                self.wait_in_line(client, instant);
                None
            }
        }
    }

    fn release(&mut self, client: usize) {
        if self.may_begin(client) {
            self.clients[client].state = State::Idle;
            self.idle.push_back(client);
        }
    }

    #[inline]
    fn may_begin(&mut self, client: usize) -> bool {
        let open = self.clients[client].left > 0 && self.drain_until == NEVER;
        if !open {
            self.end(client);
        }
        open
    }

    /// Whether the client stands in a line, and the trial goes on; otherwise it has ended.
    fn may_wait(&mut self, client: usize) -> bool {
        let open = self.clients[client].line.is_some() && self.drain_until == NEVER;
        if !open {
            self.end(client);
        }
        open
    }

    #[cold]
    fn lost(&mut self, id: usize, cause: &str, now: u64) {
        let client = &mut self.clients[id];
        if client.state == State::Ended {
            return;
        }
        match client.transaction.last_words(self.transport.mailbox(id)) {
            Some(words) => self.start.abort.abort(format!("{cause}: {words}")),
            None => self.start.abort.abort(cause),
        }
        self.look(now);
        // Whether the engine still committed what it was doing is unknown.
        self.leave(id);
    }

    fn leave(&mut self, id: usize) {
        let client = &mut self.clients[id];
        let inside = matches!(client.state, State::Busy | State::Sleeping);
        self.ended.abandoned += u64::from(inside);
        self.busy -= usize::from(inside);
        self.end(id);
    }

    /// The client does nothing more.
    #[cold]
    fn end(&mut self, id: usize) {
        let client = &mut self.clients[id];
        if client.state == State::Ended {
            return;
        }
        client.state = State::Ended;
        self.alive -= 1;
        if client.line.is_none() {
            self.start.gone();
            if !self.start.goes_on() && !self.lines.is_empty() {
                // Those who wait for work end with the last of the others.
                self.look_at = 0;
            }
        }
    }

    #[inline]
    fn look_if_due(&mut self, now: u64) {
        if now >= self.look_at {
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: u64) {
        let warming_up = self.recorder.is_warming_up();
        self.recorder.cross(now);
        if warming_up && !self.recorder.is_warming_up() {
            self.open();
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
            self.drain_until = self.drain_until.min(now + super::crew::STOP_PATIENCE_NS);
        }
        self.look_at = self.recorder.boundary().min(now + LOOK_NS).min(self.drain_until);
    }

    /// The window has opened. What is under way will end inside it, and be counted.
    #[cold]
    fn open(&mut self) {
        let by_plan = |client: &&mut Client<X>| client.transaction.share().is_none() && client.line.is_none();
        for client in self.clients.iter_mut().filter(by_plan) {
            let inside = matches!(client.state, State::Busy | State::Sleeping);
            client.left = self.start.transactions_per_client.saturating_sub(u64::from(inside));
        }
    }

    /// The window has closed: what is under way may end, nothing new begins.
    fn close(&mut self, now: u64) {
        self.ended.unfinished = self.busy as u64;
        let under_way = self.clients.iter().filter(|client| matches!(client.state, State::Busy | State::Sleeping));
        self.ended.unfinished_ns = under_way.map(|client| self.recorder.inside_window(client.begun)).sum();
        if let Pace::Open(schedule) = &mut self.pace {
            self.ended.not_started = schedule.skip_until(self.recorder.window_end());
        }
        self.drain_until = now + self.start.drain_patience_ns();
        for id in 0..self.clients.len() {
            if matches!(self.clients[id].state, State::Idle | State::Thinking | State::Waiting) {
                self.leave(id);
            }
        }
        self.idle.clear();
        self.lines.clear();
    }

    fn finish(mut self, now: u64) -> Ended {
        self.recorder.close(now);
        if self.drain_until == NEVER {
            self.close(now);
        }
        for id in 0..self.clients.len() {
            let inside = matches!(self.clients[id].state, State::Busy | State::Sleeping);
            self.leave(id);
            if !inside && !self.start.abort.happened() {
                self.in_order.push(id);
            }
        }
        self.ended
    }
}
