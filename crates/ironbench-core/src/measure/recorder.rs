//! Records the measurements of one driving thread. The cost of a transaction is three histogram records and a few
//! additions.
//!
//! Counts, throughput and service times cover transactions that end inside the window, whenever they started.
//! Transactions in progress when the window closes count as unfinished. Transactions may cross an edge of the window.
//! For those that started before it, the recorder keeps the time before the window. For those in progress at its end,
//! it keeps the time inside the window. With these times, the sum of service times can be compared with clients ×
//! window.
//!
//! Response times cover transactions that were due inside the window. In a closed loop, a transaction is due when it
//! starts. Transactions that end while the trial drains are included, because otherwise the slowest transactions would
//! be missing. If a transaction is unfinished even after that, the time that it had waited is recorded. This time is
//! right-censored: it is a lower bound of the response time.
//!
//! There are two exceptions. If a number of transactions ends the window, response times cover transactions that ended
//! inside it. In turns, all measurements cover transactions that start inside a slice: see `turns`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use super::buckets::Buckets;
use super::clients::ClientWork;
use super::clock::{NEVER, SECOND};
use super::completed::Completed;
use super::cpu::CpuTime;
use super::seconds::{BUCKET_NS, Bucket, Slice};
use super::tally::Counts;
use super::{Histogram, Tally};
use edges::{WindowEdges, merge_each};
use rounds::LoopRounds;
use turns::TurnState;

mod edges;
mod rounds;
mod turns;

const BUCKETS_PER_SECOND: usize = (SECOND / BUCKET_NS) as usize;

/// The measured window, which starts at `start` and ends before `end`. The field `end` is `NEVER` if a number of
/// transactions ends the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: u64,
    pub end: u64,
}

/// Counts that other threads read while the trial runs. The counts are updated every 100 ms.
#[derive(Debug, Default)]
pub struct Live {
    pub transactions: AtomicU64,
    pub failed: AtomicU64,
}

/// An empty window, which contains no instant.
const EMPTY_WINDOW: Window = Window { start: NEVER, end: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Open,
    /// The recorder waits between two turns. In the next turn, the window continues as if no time had passed.
    Resting,
    Closed,
}

pub struct Recorder<'a> {
    /// Counts since the clients connected.
    pub tally: Tally,
    window: Window,
    phase: Phase,
    /// The next instant at which `pass_time` must be called.
    boundary: u64,
    /// Whether the loop is open. In a closed loop, response time equals service time, so one histogram contains both.
    open_loop: bool,
    response: Vec<Buckets>,
    service: Vec<Buckets>,
    /// Response times cover transactions that are due at or after this instant. If it is 0, they cover transactions
    /// that end inside the window.
    due_from: u64,
    edges: WindowEdges,
    second: Buckets,
    second_failed: u64,
    /// Committed transactions of the first kind when the last second ended, as in `first_committed`.
    first_counted: u64,
    lateness: Buckets,
    lag: Buckets,
    rounds: LoopRounds,
    answers: Vec<Histogram>,
    timeline: Vec<Bucket>,
    sent: usize,
    counted: Counts,
    at_start: Tally,
    carried_ns: u64,
    /// A transaction is measured when it ends if it started in this period.
    begins: Window,
    cpu_at_start: CpuTime,
    cpu: CpuTime,
    turns: TurnState,
    thread: usize,
    slices: Sender<Slice>,
    live: &'a Live,
    completed: Completed,
    clients: Vec<ClientWork>,
}

/// The measurements of a thread in its window, and its tally since the start.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Time from the start of the window to its end in this thread, in nanoseconds. 0 if the window never opened.
    pub elapsed_ns: u64,
    pub measured: Tally,
    pub total: Tally,
    pub response: Vec<Histogram>,
    pub service: Vec<Histogram>,
    /// Waiting times of transactions that were due inside the window but unfinished when the thread stopped waiting.
    /// The response times of these transactions are longer than the waiting times.
    pub censored: Histogram,
    /// Time that each transaction in progress at the end of the window had spent inside the window.
    pub in_flight: Histogram,
    /// Time from the due time of the earliest unfinished transaction to the end of the window, in nanoseconds.
    pub longest_wait_ns: u64,
    /// Reply times of each command of the program. Empty unless each statement is timed.
    pub answers: Vec<Histogram>,
    /// Time of measured transactions that lies before the window.
    pub carried_ns: u64,
    /// Time that the thread's clients spent on measured transactions, including failed ones, and on the think time
    /// after them, or None without turns.
    pub busy_ns: Option<u64>,
    pub lateness: Histogram,
    /// Times that jobs waited for a client. Transactions of the schedule are not included.
    pub lag: Histogram,
    /// Time that the loop worked between two waits for the engine.
    pub loop_delay: Histogram,
    /// Number of replies per wait (counts, not times).
    pub replies_per_wait: Histogram,
    /// Total time that replies waited while the loop handled other replies.
    pub loop_wait_ns: u64,
    pub timeline: Vec<Bucket>,
    pub cpu: CpuTime,
    /// The measured transactions of each client of the thread. Empty unless `count_clients` was called.
    pub clients: Vec<ClientWork>,
}

impl<'a> Recorder<'a> {
    pub fn new(
        thread: usize,
        kinds: usize,
        window: Window,
        open_loop: bool,
        slices: Sender<Slice>,
        live: &'a Live,
    ) -> Self {
        let buckets = |n| (0..n).map(|_| Buckets::default()).collect::<Vec<_>>();
        Self {
            tally: Tally::new(kinds),
            window,
            phase: Phase::WarmUp,
            boundary: 0,
            open_loop,
            response: buckets(kinds),
            service: buckets(if open_loop { kinds } else { 0 }),
            due_from: 0,
            edges: WindowEdges::new(if open_loop { 0 } else { kinds }),
            rounds: LoopRounds::default(),
            second: Buckets::default(),
            second_failed: 0,
            first_counted: 0,
            lateness: Buckets::default(),
            lag: Buckets::default(),
            answers: Vec::new(),
            timeline: Vec::new(),
            sent: 0,
            counted: Counts::default(),
            at_start: Tally::new(kinds),
            carried_ns: 0,
            begins: EMPTY_WINDOW,
            cpu_at_start: CpuTime::default(),
            cpu: CpuTime::default(),
            turns: TurnState::none(kinds),
            thread,
            slices,
            live,
            completed: Completed::default(),
            clients: Vec::new(),
        }
    }

    /// Prepares `count_for` for this number of clients.
    pub fn count_clients(&mut self, clients: usize) {
        self.clients = vec![ClientWork::default(); clients];
    }

    /// Returns the instant at which `pass_time` must be called next. Later events may be recorded only after that call.
    #[inline]
    pub fn boundary(&self) -> u64 {
        self.boundary
    }

    /// Whether a transaction that started at `begun` and ends now is measured.
    #[inline]
    pub fn measures(&self, begun: u64) -> bool {
        begun >= self.begins.start && begun < self.begins.end
    }

    /// Records a transaction of `kind` that succeeded at `now`. The transaction was due at `intended` and started at
    /// `begun`.
    #[inline]
    pub fn complete(&mut self, kind: usize, intended: u64, begun: u64, now: u64) {
        self.tally.kinds[kind].transactions += 1;
        self.completed.add();
        if self.measures(begun) {
            self.turns.busy_ns += now - begun;
            self.carried_ns += self.turns.opened.saturating_sub(begun);
            let response = now - intended;
            self.second.record(response);
            if self.open_loop {
                self.service[kind].record(now - begun);
            }
            if intended >= self.due_from {
                self.response[kind].record(response);
            } else if !self.open_loop {
                self.edges.carried[kind].record(response);
            }
        } else if self.turns.counting {
            self.exclude(kind, true);
        } else if self.is_drained(intended) {
            let of_kind = if self.open_loop { &mut self.response[kind] } else { &mut self.edges.drained[kind] };
            of_kind.record(now - intended);
        }
    }

    /// Counts a transaction that succeeded at `now` for the client that ran it, if it is measured. The clients of a
    /// thread are counted from 0.
    #[inline]
    pub fn count_for(&mut self, client: usize, begun: u64, now: u64) {
        if self.measures(begun) {
            let one = &mut self.clients[client];
            one.transactions += 1;
            one.busy_ns += now - begun.max(self.turns.opened);
        }
    }

    /// Records a transaction of `kind` that started at `begun` and failed at `now`. The failure is already counted in
    /// the tally.
    #[cold]
    pub fn fail(&mut self, kind: usize, begun: u64, now: u64) {
        if self.measures(begun) {
            self.turns.busy_ns += now - begun;
        } else if self.turns.counting {
            self.exclude(kind, false);
        }
    }

    /// Records that a timer set for `due` was served at `now`.
    #[inline]
    pub fn record_lateness(&mut self, due: u64, now: u64) {
        if self.phase == Phase::Open {
            self.lateness.record(now.saturating_sub(due));
        }
    }

    /// Records how long a job waited for a client. The job was due at `due` and starts at `now`.
    #[inline]
    pub fn record_wait(&mut self, due: u64, now: u64) {
        if self.phase == Phase::Open {
            self.lag.record(now.saturating_sub(due));
        }
    }

    /// Handles everything that has become due by `now`: ends buckets and seconds, and opens or closes the window.
    #[cold]
    pub fn pass_time(&mut self, now: u64) {
        while now >= self.boundary && self.phase != Phase::Closed {
            match self.phase {
                Phase::WarmUp if now >= self.window.start => self.open(),
                Phase::WarmUp => {
                    self.publish_counts();
                    self.boundary = self.window.start.min(now + BUCKET_NS);
                }
                Phase::Open if self.boundary >= self.window.end => {
                    self.close(self.window.end);
                }
                Phase::Open if self.boundary >= self.turns.rest => self.end_slice(),
                Phase::Resting if now >= self.turns.next.start => self.resume_window(),
                Phase::Resting => self.boundary = self.turns.next.start,
                _ => {
                    self.end_bucket();
                    self.boundary = self.next_boundary();
                }
            }
        }
    }

    /// Closes the window now, because the last transaction has ended or the trial was stopped. Returns false if the
    /// window was already closed.
    pub fn close(&mut self, now: u64) -> bool {
        match self.phase {
            Phase::Closed => return false,
            Phase::WarmUp => self.window.end = self.window.start,
            Phase::Open => {
                self.window.end = now.clamp(self.turns.opened, self.window.end);
                self.subtract_excluded();
                self.cpu = self.cpu.plus(CpuTime::of_thread().since(self.cpu_at_start));
                self.end_bucket();
                self.end_second();
            }
            Phase::Resting => {
                self.window.end = self.turns.rest;
                self.stop_counting();
                self.subtract_rest();
                self.tally.resume_reply_times(self.turns.answers.take());
                self.end_bucket();
                self.end_second();
            }
        }
        if self.phase == Phase::WarmUp {
            self.at_start = self.tally.clone();
        }
        self.at_end();
        self.send_seconds();
        true
    }

    /// Returns how much of the time since `begun` lies inside the window. In turns, only its last slice counts. The
    /// window must be closed.
    pub fn inside_window(&self, begun: u64) -> u64 {
        self.window.end.min(self.turns.rest).saturating_sub(begun.max(self.turns.opened))
    }

    /// Returns the end of the window. If the window ends early, its end is known only after it has closed.
    pub fn window_end(&self) -> u64 {
        self.window.end
    }

    /// Whether the window is suspended between two turns.
    pub fn is_resting(&self) -> bool {
        self.phase == Phase::Resting
    }

    pub fn is_warming_up(&self) -> bool {
        self.phase == Phase::WarmUp
    }

    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub fn finish(mut self) -> Recording {
        self.close(self.window.end);
        let measured = std::mem::take(&mut self.at_start);
        let mut response: Vec<_> = self.response.iter_mut().map(Buckets::take).collect();
        let mut service: Vec<_> = self.service.iter_mut().map(Buckets::take).collect();
        if !self.open_loop {
            service.clone_from(&response);
            merge_each(&mut service, &mut self.edges.carried);
            merge_each(&mut response, &mut self.edges.drained);
        }
        Recording {
            elapsed_ns: self.window.end - self.window.start,
            measured,
            total: self.tally,
            response,
            service,
            censored: self.edges.censored.take(),
            in_flight: self.edges.in_flight.take(),
            longest_wait_ns: self.edges.longest_wait_ns,
            loop_delay: self.rounds.delay.take(),
            replies_per_wait: self.rounds.replies.take(),
            loop_wait_ns: self.rounds.waited_ns,
            answers: self.answers,
            carried_ns: self.carried_ns,
            busy_ns: self.turns.took_place.then_some(self.turns.busy_ns),
            lateness: self.lateness.take(),
            lag: self.lag.take(),
            timeline: self.timeline,
            cpu: self.cpu,
            clients: self.clients,
        }
    }

    fn open(&mut self) {
        self.phase = Phase::Open;
        self.publish_counts();
        self.first_counted = self.first_committed();
        self.at_start = self.tally.clone();
        self.tally.start_reply_times();
        self.cpu_at_start = CpuTime::of_thread();
        self.turns.opened = self.window.start;
        self.due_from = if self.window.end == NEVER { 0 } else { self.window.start };
        self.begins = Window { start: 0, end: NEVER };
        self.turns.mark_tally(&self.tally, self.counted);
        if self.turns.rest != NEVER {
            self.start_slice();
        }
        self.boundary = self.next_boundary();
    }

    fn next_boundary(&self) -> u64 {
        self.window.end.min(self.bucket_end()).min(self.turns.rest)
    }

    /// Closes the window. `at_start` then contains the measured counts instead of the counts at the start.
    fn at_end(&mut self) {
        self.phase = Phase::Closed;
        self.begins = EMPTY_WINDOW;
        self.turns.counting = false;
        self.boundary = NEVER;
        self.answers = self.tally.take_reply_times();
        self.at_start = self.tally.since(&self.at_start);
    }

    fn bucket_end(&self) -> u64 {
        self.window.start + BUCKET_NS * (self.timeline.len() as u64 + 1)
    }

    fn end_bucket(&mut self) {
        let new = self.publish_counts();
        self.second_failed += new.failed;
        self.timeline.push(Bucket {
            transactions: new.transactions as u32,
            failed: new.failed as u32,
            retries: new.retries as u32,
            unscheduled: new.unscheduled as u32,
        });
        if self.timeline.len().is_multiple_of(BUCKETS_PER_SECOND) {
            self.end_second();
        }
    }

    fn end_second(&mut self) {
        let second = (self.timeline.len().max(1) - 1) / BUCKETS_PER_SECOND;
        if self.sent > second {
            return;
        }
        self.sent = second + 1;
        let response = self.second.take();
        let failed = std::mem::take(&mut self.second_failed);
        let committed = self.first_committed();
        let counted = std::mem::replace(&mut self.first_counted, committed);
        let first_committed = if self.turns.took_place { 0 } else { committed - counted };
        let width_ns = SECOND.min(self.window.end - self.window.start - second as u64 * SECOND);
        self.turns.pending.push(Slice { thread: self.thread, second, response, failed, first_committed, width_ns });
        if self.turns.rest == NEVER {
            self.send_seconds();
        }
    }

    /// Returns the number of transactions of the first kind that succeeded and were not rolled back on purpose, since
    /// the clients connected.
    fn first_committed(&self) -> u64 {
        self.tally.kinds.first().map_or(0, |counts| counts.transactions - counts.rolled_back)
    }

    fn send_seconds(&mut self) {
        for slice in self.turns.pending.drain(..) {
            // The receiver is gone only if the trial has been abandoned. The error is therefore ignored.
            let _ = self.slices.send(slice);
        }
    }

    /// Returns the counts since the last call, and adds them to the live counts.
    fn publish_counts(&mut self) -> Counts {
        let total = self.tally.total();
        let new = total.since(self.counted);
        self.counted = total;
        self.live.transactions.fetch_add(new.transactions, Relaxed);
        self.live.failed.fetch_add(new.failed, Relaxed);
        new
    }
}

#[cfg(test)]
mod tests;
