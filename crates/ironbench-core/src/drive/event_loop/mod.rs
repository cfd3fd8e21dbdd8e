//! The event loop, in which one thread drives many clients. The thread sends the message of one client, waits for a
//! reply to any client, and sends the next message of the client that got the reply.

mod client;
mod job_queues;
mod losses;
mod reconnects;
mod session_end;
mod window;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::pace::Pace;
use super::reconnector::Reconnector;
use super::thread_results::UnfinishedWork;
use super::threads::{Start, Worker};
use super::transaction::{EARLY, Ending, Step, Transaction, UNEXPECTED};
use crate::drive::transaction_log::Lines;
use crate::drive::turns::{self, Turn};
use crate::measure::Recorder;
use crate::measure::clock::{self, NEVER};
use crate::wire::transport::{Arrival, Transport};
use client::{Client, State};
use job_queues::JobQueue;
use session_end::PendingCancels;

/// The clients of a driving thread, and their transport.
pub struct EventLoop<T, X> {
    transport: T,
    clients: Vec<Client<X>>,
    /// Clients whose session ended normally. These clients send the protocol's closing message before their connection
    /// closes.
    ended_normally: Vec<usize>,
    to_cancel: PendingCancels,
    /// Opens new connections for clients. The value is None if no client needs a new connection.
    reconnector: Option<Reconnector>,
}

impl<T: Transport, X: Transaction> EventLoop<T, X> {
    pub fn new(transport: T, transactions: Vec<X>) -> Self {
        let clients = transactions.into_iter().map(Client::new).collect();
        Self { transport, clients, ended_normally: Vec::new(), to_cancel: PendingCancels::default(), reconnector: None }
    }
}

impl<T: Transport, X: Transaction> Worker for EventLoop<T, X> {
    fn io(&self) -> &'static str {
        T::NAME
    }

    fn waits_for_jobs(&self) -> bool {
        self.clients.iter().any(|client| client.job_queue.is_some())
    }

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork {
        let Self { transport, clients, ended_normally, to_cancel, reconnector } = self;
        for (place, client) in clients.iter_mut().enumerate() {
            client.rank = start.rank(place);
            client.transaction.start(start.origin);
            let scheduled = if client.job_queue.is_none() { u64::MAX } else { 0 };
            client.transactions_left = client.transaction.share().unwrap_or(scheduled);
        }
        let alive = clients.len();
        let pace = start.pace.clone();
        EventLoopRun {
            transport,
            clients,
            ended_normally,
            to_cancel,
            reconnector,
            reconnecting: 0,
            recorder,
            start,
            pace,
            timers: BinaryHeap::with_capacity(alive),
            idle: VecDeque::with_capacity(alive),
            job_queues: Vec::new(),
            alive,
            busy: 0,
            check_at: 0,
            turn: turns::NONE,
            slice_end: turns::rest_at(start.control.turns.asked()),
            slice_transactions: 0,
            settled: true,
            drain_until: NEVER,
            due_until: NEVER,
            scheduled: 0,
            log: start.log_lines(),
            unfinished: UnfinishedWork::default(),
        }
        .run()
    }

    fn end_sessions(mut self) {
        self.close_sessions();
    }
}

/// State of an event loop while it runs.
struct EventLoopRun<'a, 'r, T, X> {
    transport: &'a mut T,
    clients: &'a mut [Client<X>],
    ended_normally: &'a mut Vec<usize>,
    to_cancel: &'a mut PendingCancels,
    reconnector: &'a mut Option<Reconnector>,
    /// Number of clients that wait for a new connection.
    reconnecting: usize,
    recorder: &'a mut Recorder<'r>,
    start: &'a Start<'a>,
    pace: Pace<'a>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    idle: VecDeque<usize>,
    job_queues: Vec<JobQueue>,
    /// Number of clients that have not ended.
    alive: usize,
    /// Number of clients inside a transaction.
    busy: usize,
    check_at: u64,
    turn: Turn,
    /// End of the slice of the current turn. `NEVER` in a trial without turns.
    slice_end: u64,
    /// Number of unfinished transactions that started in the slice. These transactions are counted when the slice has
    /// ended.
    slice_transactions: usize,
    /// Whether every transaction that this thread measures in the turn has ended.
    settled: bool,
    /// Time at which the trial stops waiting for unfinished transactions. `NEVER` while the window is open.
    drain_until: u64,
    /// End of the window. Transactions due at or after this instant do not start. `NEVER` while the window is open.
    due_until: u64,
    /// Number of transactions of the schedule that this thread has started.
    scheduled: u64,
    log: Option<Lines<'a>>,
    unfinished: UnfinishedWork,
}

impl<T: Transport, X: Transaction> EventLoopRun<'_, '_, T, X> {
    fn run(mut self) -> UnfinishedWork {
        clock::sleep_until(self.start.origin);
        let mut now = clock::now();
        self.check_window(now);
        self.rest_all(now);
        let (mut round_began, mut replies) = (now, 0);
        while (self.alive > 0 || self.takes_part_in_turns()) && now < self.drain_until {
            if now >= self.slice_end
                && self.busy + self.reconnecting == 0
                && self.drain_until == NEVER
                && self.may_rest()
            {
                now = self.rest();
            }
            self.fire_timers(now);
            if !self.job_queues.is_empty() {
                self.serve_job_queues(now);
            }
            let until = self.wake_at();
            self.recorder.round(clock::now() - round_began, replies);
            if let Err(error) = self.transport.wait(now, until) {
                self.start.abort.abort(format!("waiting for the engine failed: {error}"));
            }
            now = clock::now();
            (round_began, replies) = (now, 0);
            self.check_if_due(now);
            while let Some(arrival) = self.transport.next() {
                replies += 1;
                if T::SENDS_AT_ONCE {
                    now = clock::now();
                    self.check_if_due(now);
                }
                match arrival {
                    Arrival::Bytes(client) | Arrival::Lost(client, _) if self.clients[client].is_gone() => {}
                    Arrival::Bytes(client) => {
                        let mailbox = self.transport.mailbox(client);
                        let step = self.clients[client].transaction.reply(mailbox, &mut self.recorder.tally);
                        self.run_steps(client, step, now);
                    }
                    Arrival::Sent(client) => {
                        let mailbox = self.transport.mailbox(client);
                        let step = self.clients[client].transaction.message_sent(mailbox, &mut self.recorder.tally);
                        self.run_steps(client, step, now);
                    }
                    Arrival::Lost(client, error) => self.lost(client, &error.to_string(), now),
                }
            }
            if self.reconnecting > 0 {
                self.take_connections();
            }
        }
        self.finish(now)
    }

    fn rest_all(&mut self, now: u64) {
        for client in 0..self.clients.len() {
            if self.clients[client].job_queue.is_some() {
                self.enqueue(client, now);
            } else if self.pace.is_open() {
                self.take_scheduled(client);
            } else if now >= self.slice_end {
                self.rest_until_turn(client);
            } else if self.may_begin(client) {
                let begin = if matches!(self.pace, Pace::ByRole) { now + self.rest_ns(client) } else { now };
                self.start_at(client, begin);
            }
        }
    }

    /// Makes the client start its next transaction at `instant`. If a curve limits the active clients, the client may
    /// start later.
    fn start_at(&mut self, client: usize, instant: u64) {
        self.clients[client].state = State::Thinking;
        let begin = self.pace.earliest_start(self.clients[client].rank, instant);
        self.timers.push(Reverse((begin, client)));
    }

    /// Returns how long a client rests after its last transaction.
    fn rest_ns(&mut self, client: usize) -> u64 {
        match self.pace {
            Pace::ByRole => self.clients[client].transaction.rest_ns(),
            _ => self.pace.think_ns(),
        }
    }

    fn wake_at(&self) -> u64 {
        let mut wake = self.check_at;
        if let Some(&Reverse((due, _))) = self.timers.peek() {
            wake = wake.min(due);
        }
        self.job_queues.iter().filter_map(JobQueue::wake_at).fold(wake, u64::min)
    }

    fn fire_timers(&mut self, now: u64) {
        // A timer that is set again for this instant is handled in the next round. Handling it at once could starve
        // replies.
        for _ in 0..self.timers.len() {
            let Some(&Reverse((due, client))) = self.timers.peek() else { return };
            if due > now {
                return;
            }
            self.timers.pop();
            let state = self.clients[client].state;
            match state {
                State::Sleeping => {
                    self.recorder.record_lateness(due, now);
                    self.clients[client].state = State::Busy;
                    let mailbox = self.transport.mailbox(client);
                    let step = self.clients[client].transaction.resume(mailbox, &mut self.recorder.tally);
                    self.run_steps(client, step, now);
                }
                State::Thinking if now >= self.slice_end && self.may_rest() => self.rest_until_turn(client),
                State::Thinking => {
                    self.recorder.record_lateness(due, now);
                    self.begin(client, now, now);
                }
                State::Scheduled => {
                    self.recorder.record_lateness(due, now);
                    self.begin_scheduled(client, due, now);
                }
                State::Disconnected => self.retry_connect(client),
                State::Idle | State::Busy | State::Waiting | State::Reconnecting | State::Ended => {}
            }
        }
    }

    #[inline]
    fn begin(&mut self, client: usize, intended: u64, now: u64) {
        let step = self.start_transaction(client, intended, now);
        self.run_steps(client, step, now);
    }

    /// Starts a transaction of the client. Returns its first step.
    #[inline]
    fn start_transaction(&mut self, id: usize, intended: u64, now: u64) -> Step {
        let client = &mut self.clients[id];
        client.state = State::Busy;
        client.intended = intended;
        client.begun = now;
        client.transactions_left -= 1;
        if let Some(since) = client.paused.take() {
            self.recorder.add_think_time(now - since);
        }
        self.busy += 1;
        let step = client.transaction.begin(self.transport.mailbox(id), &mut self.recorder.tally);
        match step {
            Step::Ended(ending) => self.ended_without_engine(id, ending),
            step => step,
        }
    }

    /// Handles a transaction that ended without sending a message. The client's next transaction starts only in a later
    /// round of the loop. Otherwise the loop could run such transactions forever and never handle replies.
    #[cold]
    fn ended_without_engine(&mut self, client: usize, ending: Ending) -> Step {
        let now = clock::now();
        self.record(client, ending, now);
        self.clients[client].state = State::Thinking;
        if self.clients[client].job_queue.is_some() {
            self.enqueue(client, now);
        } else if self.pace.is_open() {
            self.take_scheduled(client);
        } else if self.may_begin(client) {
            let begin = now + self.rest_ns(client);
            self.start_at(client, begin);
        }
        Step::Receive
    }

    #[inline]
    fn record(&mut self, client: usize, ending: Ending, now: u64) {
        self.busy -= 1;
        let Client { intended, begun, .. } = self.clients[client];
        self.clients[client].last_duration = now - begun;
        self.clients[client].paused = self.recorder.measures_in_turn(begun).then_some(now);
        if self.slice_transactions > 0 && begun < self.slice_end {
            self.slice_transactions -= 1;
        }
        if self.log.is_some() {
            self.log(client, ending, now);
        }
        if ending.well {
            self.recorder.complete(ending.kind, intended, begun, now);
            self.recorder.count_for(client, begun, now);
        } else {
            self.recorder.fail(ending.kind, begun, now);
            self.failed(now);
        }
    }

    #[inline(never)]
    fn log(&mut self, id: usize, ending: Ending, now: u64) {
        let Client { intended, begun, .. } = self.clients[id];
        let (Some(log), true) = (&mut self.log, self.recorder.measures(begun)) else { return };
        if let Err(error) = log.add(id, ending, intended, begun, now) {
            self.start.abort.abort(error.to_string());
            (self.log, self.check_at) = (None, now);
        }
    }

    #[cold]
    fn failed(&mut self, now: u64) {
        self.start.failed(&self.recorder.tally, now);
        if self.start.abort.is_aborted() {
            self.check_at = now;
        }
    }

    /// Carries out steps of the client until it has to wait.
    #[inline]
    fn run_steps(&mut self, client: usize, mut step: Step, now: u64) {
        if self.transport.is_sending(client) && !matches!(step, Step::Receive | Step::Broken(_)) {
            return self.lost(client, EARLY, now);
        }
        loop {
            match step {
                Step::Send => return self.transport.send(client),
                Step::SendWithoutReply => return self.transport.send_without_reply(client),
                Step::Receive if self.clients[client].state == State::Busy => return self.transport.receive(client),
                Step::Receive => return,
                Step::Ended(_) if self.clients[client].state != State::Busy => {
                    return self.lost(client, UNEXPECTED, now);
                }
                Step::Ended(ending) => {
                    self.record(client, ending, now);
                    if self.clients[client].transaction.wants_reconnect() && self.may_reconnect(client, now) {
                        return self.reconnect(client, now);
                    }
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

    /// Returns the first step of the client's next transaction. Returns None if no transaction starts now, because the
    /// client is in its think time, waits for a scheduled start, or has ended.
    #[inline]
    fn next_transaction(&mut self, client: usize, now: u64) -> Option<Step> {
        let drained = self.drain_until != NEVER && !self.pace.is_open();
        if self.clients[client].transactions_left == 0 || drained || now >= self.slice_end && self.may_rest() {
            return self.next_unscheduled(client, now);
        }
        match &self.pace {
            Pace::Closed { think_ns: 0 } => Some(self.start_transaction(client, now, now)),
            Pace::Closed { think_ns } => {
                self.clients[client].state = State::Thinking;
                self.timers.push(Reverse((now + *think_ns, client)));
                None
            }
            Pace::Open(schedule) => match schedule.take(self.due_until) {
                Some(due) if due <= now => {
                    self.scheduled += 1;
                    Some(self.start_transaction(client, due, now))
                }
                due => {
                    self.schedule(client, due);
                    None
                }
            },
            Pace::Varied { .. } => self.next_of_active(client, now),
            Pace::ByRole => {
                let begin = now + self.rest_ns(client);
                self.start_at(client, begin);
                None
            }
        }
    }

    /// Returns the first step of the client's next transaction. Returns None if no transaction starts now, because the
    /// client is in its think time or inactive according to the curve.
    #[cold]
    fn next_of_active(&mut self, client: usize, now: u64) -> Option<Step> {
        let free = now + self.pace.think_ns();
        if free == now && self.pace.earliest_start(self.clients[client].rank, now) == now {
            return Some(self.start_transaction(client, now, now));
        }
        self.start_at(client, free);
        None
    }

    /// Assigns the next transaction of the schedule to the client. The client starts it at the scheduled time.
    fn take_scheduled(&mut self, client: usize) {
        let Pace::Open(schedule) = &self.pace else { unreachable!("only an open loop has a schedule") };
        if self.clients[client].transactions_left == 0 {
            return self.end(client);
        }
        self.schedule(client, schedule.take(self.due_until));
    }

    fn schedule(&mut self, client: usize, due: Option<u64>) {
        let Some(due) = due else { return self.end(client) };
        let waiting = &mut self.clients[client];
        (waiting.state, waiting.intended) = (State::Scheduled, due);
        self.timers.push(Reverse((due, client)));
    }

    fn begin_scheduled(&mut self, client: usize, due: u64, now: u64) {
        self.scheduled += 1;
        self.begin(client, due, now);
    }

    /// Makes the client rest until the next turn.
    fn rest_until_turn(&mut self, client: usize) {
        if self.may_begin(client) {
            self.clients[client].state = State::Idle;
            self.idle.push_back(client);
        }
    }

    #[inline]
    fn may_begin(&mut self, client: usize) -> bool {
        let open = self.clients[client].transactions_left > 0 && self.drain_until == NEVER;
        if !open {
            self.end(client);
        }
        open
    }

    #[inline]
    fn check_if_due(&mut self, now: u64) {
        if now >= self.check_at {
            self.check_window(now);
        }
    }
}
