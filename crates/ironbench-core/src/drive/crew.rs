//! The driving threads: they connect, start together, run, and return what they recorded.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::control::{Abort, Control, Losses, Phase};
use super::edges::Edges;
use super::haul::{Due, Ended, Haul};
use super::jobs::Jobs;
use super::pace::{self, Pace, SharedSchedule};
use super::plan::{OnError, Plan, Stop};
use super::transaction_log::{Lines, TransactionLog};
use crate::Result;
use crate::measure::Tally;
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::crew::{FOREVER, Gate, Post, Timing, led};
use crate::measure::recorder::{Recorder, Window};
use crate::measure::seconds::Seconds;
use crate::measure::seconds::Slice;
use crate::sample::{Prepared, Sampler};

/// Time limit for transactions in progress after the window has closed.
pub const DRAIN_PATIENCE_NS: u64 = if cfg!(test) { 2 * SECOND } else { 5 * SECOND };
/// Time limit for transactions in progress after the trial was stopped.
pub const STOP_PATIENCE_NS: u64 = 300 * MILLISECOND;
/// Time between the last connection and the common start. This time is long enough for every thread to be ready.
const LEAD_NS: u64 = 5 * MILLISECOND;
/// If the plan stops on errors, an error within this time after the start ends the trial.
const FIRST_ERRORS_NS: u64 = SECOND;
/// How often the caller's `poll` is called.
const POLL_NS: u64 = 50 * MILLISECOND;

/// The work of one driving thread after the common start.
pub trait Worker {
    /// Name of the worker's I/O interface, for the record of the trial.
    fn io(&self) -> &'static str;

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> Ended;

    /// Whether clients wait for jobs. If so, the response time includes the wait and is longer than the service time.
    fn waits(&self) -> bool {
        false
    }

    /// Whether long calls prevent the worker from reading its CPU clock at the edges of the window. If so, another
    /// thread reads the clock.
    fn blocks(&self) -> bool {
        false
    }

    /// Ends the sessions, after the last samples were taken. This order is necessary because the CPU time of a server
    /// process moves to its parent when the process ends. A sample that has already read the parent would miss that
    /// time.
    fn leave(self)
    where
        Self: Sized,
    {
    }
}

/// Information that a worker gets at the common start.
pub struct Start<'a> {
    pub plan: &'a Plan,
    pub origin: u64,
    pub pace: Pace<'a>,
    /// Maximum number of transactions per client; `u64::MAX` means no limit.
    pub transactions_per_client: u64,
    pub control: &'a Control,
    pub abort: &'a Abort,
    pub losses: &'a Losses,
    log: Option<&'a TransactionLog>,
    at_work: &'a AtomicUsize,
    thread: usize,
    shares: &'a [Range<usize>],
}

impl Start<'_> {
    /// Returns the rank of a client among all clients of the trial. `place` is the client's number within this thread.
    /// If a curve limits the number of active clients, clients become active in the order of their ranks. Ranks
    /// alternate between threads, so that all threads have equally many active clients.
    pub fn rank(&self, place: usize) -> usize {
        rank(self.shares, self.thread, place)
    }

    /// Returns the log for the transactions of the calling thread. Returns None if the trial has no log.
    pub(super) fn log_lines(&self) -> Option<Lines<'_>> {
        let share = &self.shares[self.thread];
        self.log.map(|log| log.lines(self.thread, share.start, share.len()))
    }

    /// Called when a client that follows the schedule has ended.
    pub fn gone(&self) {
        self.at_work.fetch_sub(1, Relaxed);
    }

    /// Called when a client that follows the schedule has ended because it lost its connection. Aborts the trial if all
    /// such clients have ended in this way.
    #[cold]
    pub fn client_lost(&self) {
        if self.losses.end_client() == self.plan.clients {
            self.abort.abort(self.losses.cause());
        }
    }

    /// Whether any client that follows the schedule is left, in any thread. If none is left, the trial is over, and
    /// clients that wait for jobs end too.
    pub fn goes_on(&self) -> bool {
        self.at_work.load(Relaxed) > 0
    }

    pub fn must_end(&self) -> bool {
        self.control.is_stopped() || self.control.is_finished() || self.abort.happened()
    }

    /// Called when a transaction failed at `now`. If the plan stops on errors, a permanent error in the first second
    /// ends the trial.
    #[cold]
    pub fn failed(&self, tally: &Tally, now: u64) {
        let began = || self.control.turns.first_ns().unwrap_or(self.origin);
        let first = self.plan.on_error == OnError::Stop && now < began() + FIRST_ERRORS_NS;
        if let (true, Some(words)) = (first, &tally.lasting) {
            self.abort.fail(words);
        }
    }

    pub fn drain_patience_ns(&self) -> u64 {
        if self.must_end() { STOP_PATIENCE_NS } else { DRAIN_PATIENCE_NS }
    }
}

/// Distributes the clients evenly over the threads.
pub fn shares(clients: usize, threads: usize) -> Vec<Range<usize>> {
    let threads = threads.clamp(1, clients.max(1));
    (0..threads).map(|t| clients * t / threads..clients * (t + 1) / threads).collect()
}

fn rank(shares: &[Range<usize>], thread: usize, place: usize) -> usize {
    let before = |of: usize| shares[of].len().min(place + usize::from(of < thread));
    (0..shares.len()).map(before).sum()
}

/// The information about a trial that driving threads need, whatever the engine.
pub struct Orders<'a> {
    pub plan: &'a Plan,
    /// The source of jobs, or None if weights choose the scripts.
    pub jobs: Option<&'a dyn Jobs>,
    pub kinds: usize,
    /// The client numbers of each thread. Clients of the plan come first, then those that wait for jobs.
    pub shares: Vec<Range<usize>>,
    pub control: &'a Control,
    /// Number of the plan's clients that have not ended.
    pub at_work: AtomicUsize,
}

type Begin = (u64, Window);

struct Crew<'a> {
    gate: &'a Gate<Begin>,
    orders: &'a Orders<'a>,
    abort: &'a Abort,
    losses: &'a Losses,
    edges: &'a Edges,
    log: &'a OnceLock<TransactionLog>,
}

/// Runs a worker for each share of clients, in a thread for each worker. `poll` is called at least every 50 ms and
/// returns whether to continue.
pub fn run<W: Worker>(
    orders: &Orders,
    make: impl Fn(usize, Range<usize>) -> Result<W> + Sync,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Haul> {
    orders.control.turns.expect(orders.shares.len(), orders.clients());
    let (abort, gate, io, edges) = (Abort::default(), Gate::<Begin>::default(), OnceLock::new(), Edges::default());
    let losses = Losses::default();
    let (schedule, log) = (OnceLock::new(), OnceLock::new());
    let (slice_sender, slices) = channel();
    let members: Vec<_> = orders
        .shares
        .iter()
        .enumerate()
        .map(|(thread, share)| {
            let (gate, abort, io, edges, make, slices) = (&gate, &abort, &io, &edges, &make, slice_sender.clone());
            let (schedule, losses, log) = (&schedule, &losses, &log);
            let work = move || {
                let mut worker = make(thread, share.clone())?;
                io.get_or_init(|| worker.io());
                if worker.blocks() {
                    edges.watch(thread);
                }
                let Some((origin, window)) = gate.pass() else { return Ok(None) };
                let shared = || pace::schedule(orders.plan, origin).map(SharedSchedule::new);
                let schedule = schedule.get_or_init(shared).as_ref();
                let start = orders.start(thread, origin, schedule, abort, losses, log.get());
                let waiting = orders.clients() > orders.plan.clients;
                let open = orders.plan.schedule.is_open() || waiting || worker.waits();
                let mut recorder = Recorder::new(thread, orders.kinds, window, open, slices, &orders.control.live);
                let ended = worker.run(&start, &mut recorder);
                let mut recording = recorder.finish();
                recording.cpu = edges.inside(thread).unwrap_or(recording.cpu);
                // The sessions end only after the last samples were taken: see `Worker::leave`.
                while gate.pause(FOREVER) {}
                worker.leave();
                Ok(Some((recording, ended)))
            };
            (Post::new(format!("drive-{thread}")).on(&orders.plan.client_cpus).timed(Timing::Sharp), work)
        })
        .collect();
    drop(slice_sender);
    let crew = Crew { gate: &gate, orders, abort: &abort, losses: &losses, edges: &edges, log: &log };
    let lead = || if crew.all_ready(poll) { crew.work(&slices, poll) } else { Ok(Haul::dismissed()) };
    let (mut haul, each) = match led(&gate, members, lead) {
        // The trial was stopped before it started. A thread may notice the stop before this loop does. The thread's
        // error is then a consequence of the stop.
        Err(_) if orders.control.is_stopped() && gate.start().is_none() => (Haul::dismissed(), Vec::new()),
        outcome => outcome?,
    };
    if gate.start().is_some() {
        haul.io = io.get().copied().unwrap_or_default().to_owned();
    }
    let gave_up = clock::now();
    for (recording, ended) in each.into_iter().flatten() {
        haul.recordings.push(recording);
        haul.ended = haul.ended.plus(ended);
    }
    if let Some((origin, window)) = gate.start() {
        haul.count_due(orders.plan, origin, window.start, gave_up);
    }
    if let Some(Err(error)) = log.into_inner().map(TransactionLog::finish)
        && haul.cause.is_empty()
    {
        haul.cause = error.to_string();
    }
    orders.control.set_phase(Phase::Done);
    Ok(haul)
}

impl Crew<'_> {
    /// Waits until all clients are connected. Returns false if the trial was stopped before that.
    fn all_ready(&self, poll: &mut dyn FnMut() -> bool) -> bool {
        loop {
            if !poll() {
                self.orders.control.stop();
            }
            if self.orders.control.is_stopped() {
                return false;
            }
            if self.gate.ready(self.orders.shares.len(), Duration::from_nanos(POLL_NS)) {
                return !self.gate.is_stopped();
            }
        }
    }

    /// Chooses the common start on the monotonic clock. A part waits until the coordinator announces the start. Returns
    /// None if the trial was stopped before that.
    fn origin(&self, poll: &mut dyn FnMut() -> bool) -> Option<u64> {
        let Orders { plan, control, .. } = *self.orders;
        let mut wait = 0;
        if plan.part.is_some() {
            control.set_phase(Phase::Ready);
            let begin = loop {
                if let Some(instant) = control.begins_at() {
                    break instant;
                }
                if !poll() {
                    control.stop();
                }
                if control.is_stopped() || self.gate.is_stopped() {
                    return None;
                }
                std::thread::sleep(Duration::from_nanos(MILLISECOND));
            };
            wait = begin.saturating_sub(clock::unix_now());
        }
        Some(clock::now() + wait.max(LEAD_NS))
    }

    fn work(&self, slices: &Receiver<Slice>, poll: &mut dyn FnMut() -> bool) -> Result<Haul> {
        let Orders { plan, control, .. } = *self.orders;
        let mut go_on = || {
            if !poll() {
                control.stop();
            }
            !control.is_stopped() && !self.gate.is_stopped()
        };
        // The observers connect before the clock starts, because connecting takes milliseconds.
        let observers = Prepared::unless(&plan.observers, plan.engine.server(), &mut go_on)?;
        let Some(observers) = observers else { return Ok(Haul::dismissed()) };
        if let Some(asked) = &plan.log {
            let created = TransactionLog::create(asked, plan)?;
            self.log.get_or_init(|| created);
        }
        let Some(origin) = self.origin(poll) else { return Ok(Haul::dismissed()) };
        let by_turns = control.turns.asked();
        let window = if by_turns { Window { start: NEVER, end: NEVER } } else { window(plan, origin) };
        // In a trial with turns, the window opens only with the first turn. See `Turns::open`.
        let begins = if by_turns { origin } else { window.start };
        let started_unix_ns = clock::unix_now() + begins - clock::now().min(begins);
        let ahead = Duration::from_nanos(begins.saturating_sub(clock::now()));
        let sampler = observers.start(Instant::now() + ahead)?;
        control.set_window_start(begins);
        control.set_phase(Phase::WarmUp);
        std::thread::scope(|scope| {
            scope.spawn(|| self.edges.read(window));
            let haul = self.worked(origin, window, started_unix_ns, sampler, slices, poll);
            self.edges.end();
            Ok(haul)
        })
    }

    /// Starts the driving threads and waits until all have ended.
    fn worked(
        &self,
        origin: u64,
        window: Window,
        started_unix_ns: u64,
        sampler: Sampler,
        slices: &Receiver<Slice>,
        poll: &mut dyn FnMut() -> bool,
    ) -> Haul {
        let Orders { plan, control, .. } = *self.orders;
        self.gate.open((origin, window));
        let mut seconds = Seconds::new(self.orders.shares.len(), plan.part.is_some());
        let mut marked = false;
        let mut stopped = false;
        loop {
            let now = clock::now();
            let ends = if marked { NEVER } else { window.end };
            let wait = POLL_NS.min(ends.saturating_sub(now)).max(1);
            match slices.recv_timeout(Duration::from_nanos(wait)) {
                Ok(slice) => control.show_seconds(seconds.add(slice)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = clock::now();
            if control.phase() == Phase::WarmUp && now >= window.start {
                control.set_phase(Phase::Run);
            }
            // The gate is also stopped if a thread has panicked. The trial then ends.
            if !poll() || self.gate.is_stopped() {
                control.stop();
            }
            stopped |= now < window.end && control.is_stopped();
            let over = now >= window.end || stopped || control.is_finished() || self.abort.happened();
            if !marked && over {
                sampler.mark();
                control.set_phase(Phase::Drain);
                marked = true;
            }
        }
        if !marked {
            sampler.mark();
        }
        let (rows, mergeable) = seconds.finish();
        Haul {
            recordings: Vec::new(),
            ended: Ended::default(),
            due: Due::default(),
            seconds: rows,
            mergeable,
            samples: sampler.stop(),
            io: String::new(),
            started_unix_ns: control.turns.first_unix_ns().unwrap_or(started_unix_ns),
            cut_short: stopped,
            cause: self.abort.cause(),
            by_error: self.abort.by_error(),
            clients_lost: self.losses.clients(),
            loss_cause: self.losses.cause(),
        }
    }
}

impl Orders<'_> {
    pub fn clients(&self) -> usize {
        self.shares.last().map_or(0, |share| share.end)
    }

    fn start<'s>(
        &'s self,
        thread: usize,
        origin: u64,
        schedule: Option<&'s SharedSchedule>,
        abort: &'s Abort,
        losses: &'s Losses,
        log: Option<&'s TransactionLog>,
    ) -> Start<'s> {
        Start {
            plan: self.plan,
            origin,
            pace: Pace::new(&self.plan.schedule, origin, schedule, self.jobs.is_some_and(Jobs::paces)),
            transactions_per_client: match self.plan.stop {
                Stop::DurationS(_) => u64::MAX,
                Stop::Transactions(n) => n,
            },
            control: self.control,
            abort,
            losses,
            log,
            at_work: &self.at_work,
            thread,
            shares: &self.shares,
        }
    }
}

fn window(plan: &Plan, origin: u64) -> Window {
    let start = origin + clock::from_seconds(plan.warmup_s);
    let end = match plan.stop {
        Stop::DurationS(seconds) => start + clock::from_seconds(seconds),
        Stop::Transactions(_) => NEVER,
    };
    Window { start, end }
}

#[cfg(test)]
mod tests;
