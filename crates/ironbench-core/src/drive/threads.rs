//! The driving threads: they connect, start together, run, and return what they recorded.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::control::{Abort, Control, Losses, Phase};
use super::jobs::Jobs;
use super::pace::{self, Pace, SharedSchedule};
use super::plan::{OnError, Plan, Stop};
use super::thread_results::{DemandedLoad, ThreadResults, UnfinishedWork};
use super::transaction_log::{Lines, TransactionLog};
use super::window_cpu::WindowCpu;
use crate::Result;
use crate::measure::Tally;
use crate::measure::clock::{self, MILLISECOND, NEVER, SECOND};
use crate::measure::recorder::{Recorder, Window};
use crate::measure::seconds::Seconds;
use crate::measure::seconds::Slice;
use crate::measure::threads::{Gate, NO_LIMIT, ThreadSettings, Timing, run_with_leader};
use crate::sample::{Prepared, Sampler};

/// Time limit for transactions in progress after the window has closed.
pub const DRAIN_TIMEOUT_NS: u64 = if cfg!(test) { 2 * SECOND } else { 5 * SECOND };
/// Time limit for transactions in progress after the trial was stopped.
pub const STOP_TIMEOUT_NS: u64 = 300 * MILLISECOND;
/// Time between the last connection and the common start. This time is long enough for every thread to be ready.
const START_DELAY_NS: u64 = 5 * MILLISECOND;
/// If the plan stops on errors, an error within this time after the start ends the trial.
const EARLY_ERROR_NS: u64 = SECOND;
/// How often the caller's `poll` is called.
const POLL_NS: u64 = 50 * MILLISECOND;

/// The work of one driving thread after the common start.
pub trait Worker {
    /// Name of the worker's I/O interface, for the record of the trial.
    fn io(&self) -> &'static str;

    fn run(&mut self, start: &Start, recorder: &mut Recorder) -> UnfinishedWork;

    /// Whether clients wait for jobs. If so, the response time includes the wait and is longer than the service time.
    fn waits_for_jobs(&self) -> bool {
        false
    }

    /// Whether long calls prevent the worker from reading its CPU clock at the edges of the window. If so, another
    /// thread reads the clock.
    fn blocks_in_calls(&self) -> bool {
        false
    }

    /// Ends the sessions, after the last samples were taken. This order is necessary because the CPU time of a server
    /// process moves to its parent when the process ends. A sample that has already read the parent would miss that
    /// time.
    fn end_sessions(self)
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
    active_clients: &'a AtomicUsize,
    thread: usize,
    client_ranges: &'a [Range<usize>],
}

impl Start<'_> {
    /// Returns the rank of a client among all clients of the trial. `index` is the client's number within this thread.
    /// If a curve limits the number of active clients, clients become active in the order of their ranks. Ranks
    /// alternate between threads, so that all threads have equally many active clients.
    pub fn rank(&self, index: usize) -> usize {
        rank(self.client_ranges, self.thread, index)
    }

    /// Returns the log for the transactions of the calling thread. Returns None if the trial has no log.
    pub(super) fn log_lines(&self) -> Option<Lines<'_>> {
        let share = &self.client_ranges[self.thread];
        self.log.map(|log| log.lines(self.thread, share.start, share.len()))
    }

    /// Called when a client that follows the schedule has ended.
    pub fn client_ended(&self) {
        self.active_clients.fetch_sub(1, Relaxed);
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
    pub fn has_active_clients(&self) -> bool {
        self.active_clients.load(Relaxed) > 0
    }

    pub fn must_end(&self) -> bool {
        self.control.is_stopped() || self.control.is_finished() || self.abort.is_aborted()
    }

    /// Called when a transaction failed at `now`. If the plan stops on errors, a permanent error in the first second
    /// ends the trial.
    #[cold]
    pub fn failed(&self, tally: &Tally, now: u64) {
        let began = || self.control.turns.first_ns().unwrap_or(self.origin);
        let first = self.plan.on_error == OnError::Stop && now < began() + EARLY_ERROR_NS;
        if let (true, Some(words)) = (first, &tally.lasting) {
            self.abort.fail(words);
        }
    }

    pub fn drain_timeout_ns(&self) -> u64 {
        if self.must_end() { STOP_TIMEOUT_NS } else { DRAIN_TIMEOUT_NS }
    }
}

/// Distributes the clients evenly over the threads.
pub fn client_ranges(clients: usize, threads: usize) -> Vec<Range<usize>> {
    let threads = threads.clamp(1, clients.max(1));
    (0..threads).map(|t| clients * t / threads..clients * (t + 1) / threads).collect()
}

fn rank(client_ranges: &[Range<usize>], thread: usize, index: usize) -> usize {
    let before = |of: usize| client_ranges[of].len().min(index + usize::from(of < thread));
    (0..client_ranges.len()).map(before).sum()
}

/// The information about a trial that driving threads need, whatever the engine.
pub struct DriveContext<'a> {
    pub plan: &'a Plan,
    /// The source of jobs, or None if weights choose the scripts.
    pub jobs: Option<&'a dyn Jobs>,
    pub kinds: usize,
    /// The client numbers of each thread. Clients of the plan come first, then those that wait for jobs.
    pub client_ranges: Vec<Range<usize>>,
    pub control: &'a Control,
    /// Number of the plan's clients that have not ended.
    pub active_clients: AtomicUsize,
}

/// The common start and the window, passed to all driving threads.
type StartMessage = (u64, Window);

/// The data with which the calling thread starts the driving threads and waits for them.
struct Coordinator<'a> {
    gate: &'a Gate<StartMessage>,
    context: &'a DriveContext<'a>,
    abort: &'a Abort,
    losses: &'a Losses,
    window_cpu: &'a WindowCpu,
    log: &'a OnceLock<TransactionLog>,
}

/// Runs a worker for each share of clients, in a thread for each worker. `poll` is called at least every 50 ms and
/// returns whether to continue.
pub fn run<W: Worker>(
    context: &DriveContext,
    make: impl Fn(usize, Range<usize>) -> Result<W> + Sync,
    poll: &mut dyn FnMut() -> bool,
) -> Result<ThreadResults> {
    context.control.turns.expect(context.client_ranges.len(), context.clients());
    let (abort, gate, io, window_cpu) =
        (Abort::default(), Gate::<StartMessage>::default(), OnceLock::new(), WindowCpu::default());
    let losses = Losses::default();
    let (schedule, log) = (OnceLock::new(), OnceLock::new());
    let (slice_sender, slices) = channel();
    let members: Vec<_> = context
        .client_ranges
        .iter()
        .enumerate()
        .map(|(thread, share)| {
            let (gate, abort, io, window_cpu, make, slices) =
                (&gate, &abort, &io, &window_cpu, &make, slice_sender.clone());
            let (schedule, losses, log) = (&schedule, &losses, &log);
            let work = move || {
                let mut worker = make(thread, share.clone())?;
                io.get_or_init(|| worker.io());
                if worker.blocks_in_calls() {
                    window_cpu.watch(thread);
                }
                let Some((origin, window)) = gate.wait_for_start() else { return Ok(None) };
                let shared = || pace::schedule(context.plan, origin).map(SharedSchedule::new);
                let schedule = schedule.get_or_init(shared).as_ref();
                let start = context.start(thread, origin, schedule, abort, losses, log.get());
                let waiting = context.clients() > context.plan.clients;
                let open = context.plan.schedule.is_open() || waiting || worker.waits_for_jobs();
                let mut recorder = Recorder::new(thread, context.kinds, window, open, slices, &context.control.live);
                recorder.count_clients(share.len());
                let ended = worker.run(&start, &mut recorder);
                let mut recording = recorder.finish();
                recording.cpu = window_cpu.in_window(thread).unwrap_or(recording.cpu);
                // The sessions end only after the last samples were taken: see `Worker::end_sessions`.
                while gate.pause(NO_LIMIT) {}
                worker.end_sessions();
                Ok(Some((recording, ended)))
            };
            (
                ThreadSettings::new(format!("drive-{thread}"))
                    .pin_to(&context.plan.client_cpus)
                    .with_timing(Timing::Sharp),
                work,
            )
        })
        .collect();
    drop(slice_sender);
    let coordinator =
        Coordinator { gate: &gate, context, abort: &abort, losses: &losses, window_cpu: &window_cpu, log: &log };
    let lead = || {
        if coordinator.all_ready(poll) {
            coordinator.run_trial(&slices, poll)
        } else {
            Ok(ThreadResults::not_started())
        }
    };
    let (mut results, each) = match run_with_leader(&gate, members, lead) {
        // The trial was stopped before it started. A thread may notice the stop before this loop does. The thread's
        // error is then a consequence of the stop.
        Err(_) if context.control.is_stopped() && gate.start().is_none() => (ThreadResults::not_started(), Vec::new()),
        outcome => outcome?,
    };
    if gate.start().is_some() {
        results.io = io.get().copied().unwrap_or_default().to_owned();
    }
    let gave_up = clock::now();
    for (recording, ended) in each.into_iter().flatten() {
        results.recordings.push(recording);
        results.unfinished = results.unfinished.plus(ended);
    }
    if let Some((origin, window)) = gate.start() {
        results.count_demanded(context.plan, origin, window.start, gave_up);
    }
    if let Some(Err(error)) = log.into_inner().map(TransactionLog::finish)
        && results.cause.is_empty()
    {
        results.cause = error.to_string();
    }
    context.control.set_phase(Phase::Done);
    Ok(results)
}

impl Coordinator<'_> {
    /// Waits until all clients are connected. Returns false if the trial was stopped before that.
    fn all_ready(&self, poll: &mut dyn FnMut() -> bool) -> bool {
        loop {
            if !poll() {
                self.context.control.stop();
            }
            if self.context.control.is_stopped() {
                return false;
            }
            if self.gate.ready(self.context.client_ranges.len(), Duration::from_nanos(POLL_NS)) {
                return !self.gate.is_stopped();
            }
        }
    }

    /// Chooses the common start on the monotonic clock. A part waits until the coordinator announces the start. Returns
    /// None if the trial was stopped before that.
    fn origin(&self, poll: &mut dyn FnMut() -> bool) -> Option<u64> {
        let DriveContext { plan, control, .. } = *self.context;
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
        Some(clock::now() + wait.max(START_DELAY_NS))
    }

    fn run_trial(&self, slices: &Receiver<Slice>, poll: &mut dyn FnMut() -> bool) -> Result<ThreadResults> {
        let DriveContext { plan, control, .. } = *self.context;
        let mut may_continue = || {
            if !poll() {
                control.stop();
            }
            !control.is_stopped() && !self.gate.is_stopped()
        };
        // The observers connect before the clock starts, because connecting takes milliseconds.
        let observers = Prepared::new_unless_stopped(&plan.observers, plan.engine.server(), &mut may_continue)?;
        let Some(observers) = observers else { return Ok(ThreadResults::not_started()) };
        if let Some(asked) = &plan.log {
            let created = TransactionLog::create(asked, plan)?;
            self.log.get_or_init(|| created);
        }
        let Some(origin) = self.origin(poll) else { return Ok(ThreadResults::not_started()) };
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
            scope.spawn(|| self.window_cpu.read(window));
            let results = self.run_threads(origin, window, started_unix_ns, sampler, slices, poll);
            self.window_cpu.end();
            Ok(results)
        })
    }

    /// Starts the driving threads and waits until all have ended.
    fn run_threads(
        &self,
        origin: u64,
        window: Window,
        started_unix_ns: u64,
        sampler: Sampler,
        slices: &Receiver<Slice>,
        poll: &mut dyn FnMut() -> bool,
    ) -> ThreadResults {
        let DriveContext { plan, control, .. } = *self.context;
        self.gate.open((origin, window));
        let mut seconds = Seconds::new(self.context.client_ranges.len(), plan.part.is_some());
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
            let over = now >= window.end || stopped || control.is_finished() || self.abort.is_aborted();
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
        ThreadResults {
            recordings: Vec::new(),
            unfinished: UnfinishedWork::default(),
            due: DemandedLoad::default(),
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

impl DriveContext<'_> {
    pub fn clients(&self) -> usize {
        self.client_ranges.last().map_or(0, |share| share.end)
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
            active_clients: &self.active_clients,
            thread,
            client_ranges: &self.client_ranges,
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
