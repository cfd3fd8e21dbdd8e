//! The sampling threads, which read files and run SQL at fixed times during a trial and keep the raw bytes. Samples are
//! parsed after the run (`src/ironbench/trial/observe`). Errors of sampling never end a trial, but become notes.
//!
//! Files and SQL have one thread each, so that the machine is still observed while a server does not answer. Requests
//! are SQL with an effect, such as CHECKPOINT. Requests have separate threads and connections, so that they do not
//! delay samples.

mod files;
mod sampling_clock;
mod sampling_loop;
mod series;
mod sql;
mod ticks;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::drive::plan::ObserverSource;
use crate::measure::threads::{BackgroundThread, Gate, ThreadSettings};
use crate::wire::Server;
use crate::{Error, Result};
use files::Files;
use sampling_clock::{Command, SystemClock};
use sampling_loop::{Collected, Reader, SampledSource};

/// Memory limit per source in bytes. When it is reached, every second sample is dropped and the period doubles.
const KEEP_BYTES: usize = 16 << 20;
/// Time that `stop` waits for a reading in progress. The thread is then abandoned.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which a wait for the server checks whether to stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum period. At this period (1 kHz), a source costs about 1% of a core.
const SHORTEST_PERIOD_S: f64 = 0.001;

/// A running sampler. Dropping it also ends its threads.
#[derive(Debug)]
pub struct Sampler {
    workers: Vec<Worker>,
    notes: Vec<String>,
    backend_pids: Vec<i32>,
    marked: AtomicBool,
}

/// The name of a source and its samples. A sample consists of its time and the raw bytes. The time is the middle of the
/// reading, in seconds from the start of the window.
pub type SourceSamples = (String, Vec<(f64, Vec<u8>)>);

/// The samples of a trial.
#[derive(Debug, Default)]
pub struct Samples {
    /// Samples in the order of the plan. A source that could never be read has no samples or is missing.
    pub by_source: Vec<SourceSamples>,
    /// Number of samples dropped to stay within the memory limit.
    pub dropped: u64,
    /// Number of ticks missed because reading took longer than the period.
    pub missed: u64,
    /// CPU time of the sampling threads. This covers the time from the start of the window to the last samples.
    pub cpu_s: f64,
    /// Sources that could not be read, with the reason.
    pub notes: Vec<String>,
    /// PIDs of the server processes that ran the observers' SQL. The CPU time of these processes does not belong to the
    /// workload. The list is empty if the server uses threads.
    pub backend_pids: Vec<i32>,
    pub own: ObserverLoad,
}

/// The work that the observers caused on the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObserverLoad {
    pub connections: u64,
    /// Transactions that the server committed for the observers, if the protocol shows commits.
    pub commits: u64,
    /// Statements that were not answered. The server may have committed them, or may still commit them.
    pub unanswered: u64,
}

#[derive(Debug)]
struct Worker {
    commands: Sender<Command>,
    thread: BackgroundThread,
    collected: Arc<Mutex<Collected>>,
    /// Index in the plan of each of this worker's sources.
    source_indexes: Vec<usize>,
    /// A flag that ends a reading that hangs. The flag is set when the result is no longer needed.
    give_up: Arc<AtomicBool>,
    /// Number of commits on the worker's connection, or None without a connection.
    commits: Option<Arc<AtomicU64>>,
    /// Whether the worker runs a request instead of taking samples. Such a worker ignores `mark`, and `stop` does not
    /// wait for a request in progress.
    requests: bool,
}

/// Sources that have been checked, and the observers' open connection. Checking and connecting take time, so they are
/// done before the clock starts.
pub struct Prepared {
    /// Sources, grouped by thread.
    groups: Vec<Group>,
    notes: Vec<String>,
    backend_pids: Vec<i32>,
}

struct Group {
    thread: &'static str,
    source_indexes: Vec<usize>,
    sources: Vec<SampledSource>,
    give_up: Arc<AtomicBool>,
    commits: Option<Arc<AtomicU64>>,
    requests: bool,
}

impl Prepared {
    /// Checks the sources and connects the observers. Fails if a source is invalid. If the server refuses the
    /// connection, the result contains a note.
    pub fn new(sources: &[ObserverSource], connection: Option<&Server>) -> Result<Self> {
        Self::new_below(Path::new("/"), sources, connection)
    }

    /// Does the same as `new`, but can be stopped: `may_continue` is called several times per second. When it returns false,
    /// this function returns None and abandons the thread that waits for the server.
    pub fn new_unless_stopped(
        sources: &[ObserverSource],
        connection: Option<Server>,
        may_continue: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>> {
        if sources.iter().all(|source| source.kind == "file") {
            return Self::new(sources, connection.as_ref()).map(Some);
        }
        let sources = sources.to_vec();
        let prepare = move |_: &Gate| Self::new(&sources, connection.as_ref());
        let preparing = BackgroundThread::start(ThreadSettings::new("observers"), Arc::default(), prepare)?;
        while !preparing.ended(CHECK_INTERVAL) {
            if !may_continue() {
                preparing.detach();
                return Ok(None);
            }
        }
        preparing.join().map(Some)
    }

    /// Does the same as `new`, but resolves file paths below `root`.
    pub fn new_below(root: &Path, sources: &[ObserverSource], connection: Option<&Server>) -> Result<Self> {
        for source in sources {
            check(source, connection)?;
        }
        let mut prepared = Self { groups: vec![files(root, sources)], notes: Vec::new(), backend_pids: Vec::new() };
        if let Some(connection) = connection {
            prepared.add_sql("sample-sql", numbered(sources, "sql").collect(), connection, false);
            for request in numbered(sources, "request") {
                prepared.add_sql("request-sql", vec![request], connection, true);
            }
        }
        Ok(prepared)
    }

    /// Starts sampling. Ticks are at `window_start` + k × period. The number k is negative during the warm-up.
    pub fn start(self, window_start: Instant) -> Result<Sampler> {
        let mut sampler = Sampler {
            workers: Vec::new(),
            notes: self.notes,
            backend_pids: self.backend_pids,
            marked: AtomicBool::new(false),
        };
        for group in self.groups.into_iter().filter(|group| !group.sources.is_empty()) {
            sampler.spawn(group, window_start)?;
        }
        Ok(sampler)
    }

    fn add_sql(
        &mut self,
        thread: &'static str,
        wanted: Vec<(usize, &ObserverSource)>,
        connection: &Server,
        requests: bool,
    ) {
        if wanted.is_empty() {
            return;
        }
        let texts: Vec<&str> = wanted.iter().map(|(_, source)| source.target.as_str()).collect();
        match sql::connect(connection, &texts) {
            Ok(opened) => {
                self.backend_pids.extend(opened.backend_pid);
                let (source_indexes, sources) = wanted
                    .into_iter()
                    .zip(opened.readers)
                    .map(|((place, source), reader)| (place, SampledSource::new(source, reader, KEEP_BYTES)))
                    .unzip();
                let commits = Some(opened.commits);
                self.groups.push(Group { thread, source_indexes, sources, give_up: opened.give_up, commits, requests });
            }
            Err(error) => self.notes.push(format!("connection of the observers: {error}")),
        }
    }
}

fn files(root: &Path, sources: &[ObserverSource]) -> Group {
    let (source_indexes, sources) = numbered(sources, "file")
        .map(|(place, source)| {
            let reader: Box<dyn Reader> = Box::new(Files::new(root, &source.target, source.period_s));
            (place, SampledSource::new(source, reader, KEEP_BYTES))
        })
        .unzip();
    Group { thread: "sample-files", source_indexes, sources, give_up: Arc::default(), commits: None, requests: false }
}

impl Sampler {
    /// Samples every source now, in addition to the ticks. The drive loop calls this at the end of the measured window.
    /// Another sample was taken at tick 0, the start of the window, so differences of counters cover exactly the
    /// window.
    ///
    /// This function never blocks. The threads take the samples soon after, at the latest when `stop` is called.
    pub fn mark(&self) {
        self.marked.store(true, Ordering::Relaxed);
        for worker in self.workers.iter().filter(|worker| !worker.requests) {
            // Sending fails if the worker has ended. `stop` then takes the worker's note about the reason.
            let _ = worker.commands.send(Command::Mark);
        }
    }

    /// Ends the sampler. First waits until the samples requested by `mark` have been taken. If `mark` was not called,
    /// takes a last sample of every source.
    pub fn stop(mut self) -> Samples {
        if !*self.marked.get_mut() {
            self.mark();
        }
        let mut samples = Samples {
            notes: std::mem::take(&mut self.notes),
            backend_pids: std::mem::take(&mut self.backend_pids),
            ..Samples::default()
        };
        let deadline = Instant::now() + STOP_PATIENCE;
        let workers = std::mem::take(&mut self.workers);
        for worker in &workers {
            let _ = worker.commands.send(Command::Stop);
            if worker.requests {
                worker.give_up.store(true, Ordering::Relaxed);
            }
        }
        let mut by_index = Vec::new();
        for worker in workers {
            by_index.extend(worker.finish(deadline, &mut samples));
        }
        by_index.sort_by_key(|(index, _)| *index);
        samples.by_source = by_index.into_iter().map(|(_, source)| source).collect();
        samples
    }

    fn spawn(&mut self, group: Group, window_start: Instant) -> Result<()> {
        let Group { thread, source_indexes, mut sources, give_up, commits, requests } = group;
        let (commands, received_commands) = mpsc::channel();
        // Time of this call relative to the start of the window. The time is measured here, because the thread may run
        // only after the window has started. The thread must still take the sample of tick 0.
        let began_ns = -(window_start.saturating_duration_since(Instant::now()).as_nanos() as i64);
        let collected = Arc::new(Mutex::new(Collected::of(&sources)));
        let shared = Arc::clone(&collected);
        let thread = BackgroundThread::start(ThreadSettings::new(thread), Arc::default(), move |_: &Gate| {
            sampling_loop::run(&mut sources, began_ns, &mut SystemClock::new(window_start, received_commands), &shared);
            Ok(())
        })?;
        self.workers.push(Worker { commands, thread, collected, source_indexes, give_up, commits, requests });
        Ok(())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        for worker in self.workers.drain(..) {
            let _ = worker.commands.send(Command::Stop);
            worker.thread.detach();
        }
    }
}

impl Worker {
    /// Waits for the thread until `deadline` and takes what the thread collected. A thread that hangs is abandoned.
    fn finish(self, deadline: Instant, samples: &mut Samples) -> Vec<(usize, SourceSamples)> {
        let patience = deadline.saturating_duration_since(Instant::now());
        let ended = self.thread.ended(patience);
        if !ended {
            self.give_up.store(true, Ordering::Relaxed);
            samples.notes.push("the last samples were still waiting for the server's answer".to_owned());
            self.thread.detach();
        } else if self.thread.join().is_err() {
            samples.notes.push("a sampling thread crashed".to_owned());
        }
        if let Some(commits) = &self.commits {
            samples.own.connections += 1;
            samples.own.commits += commits.load(Ordering::Relaxed);
            samples.own.unanswered += u64::from(!ended);
        }
        let mut collected = self.collected.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let collected = std::mem::take(&mut *collected);
        samples.cpu_s += collected.cpu_s();
        samples.notes.extend(collected.notes);
        let mut taken = Vec::new();
        for (place, series) in self.source_indexes.into_iter().zip(collected.series) {
            samples.dropped += series.dropped;
            samples.missed += series.missed;
            if series.missed > 0 {
                samples.notes.push(format!("{}: {} samples were late and were skipped", series.name, series.missed));
            }
            taken.push((place, series.into_samples()));
        }
        taken
    }
}

fn numbered<'a>(
    sources: &'a [ObserverSource],
    kind: &'static str,
) -> impl Iterator<Item = (usize, &'a ObserverSource)> {
    sources.iter().enumerate().filter(move |(_, source)| source.kind == kind)
}

fn check(source: &ObserverSource, connection: Option<&Server>) -> Result<()> {
    let subject = || format!("observer source {}", source.name);
    if !matches!(source.kind.as_str(), "file" | "sql" | "request") {
        return Err(
            Error::input(subject(), format!("unknown kind {:?}", source.kind)).hint("known: file, sql, request")
        );
    }
    if !(source.period_s.is_finite() && source.period_s >= SHORTEST_PERIOD_S) {
        return Err(Error::input(subject(), format!("a period of {} s is too short", source.period_s))
            .hint(format!("use at least {SHORTEST_PERIOD_S} s")));
    }
    if source.kind != "file" && connection.is_none() {
        return Err(Error::input(subject(), "SQL can be sampled only on a server"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
