//! State that the caller, the driving threads and progress displays share while a trial runs.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use super::turns::Turns;
use crate::measure::clock;
use crate::measure::recorder::Live;
use crate::measure::seconds::Second;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    Connect,
    /// This part of a distributed load is ready, and waits for the common start of all parts.
    Ready,
    WarmUp,
    Run,
    Drain,
    Done,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Ready => "ready",
            Phase::WarmUp => "warmup",
            Phase::Run => "run",
            Phase::Drain => "drain",
            Phase::Done => "done",
        }
    }
}

/// Shows the progress of a trial and stops it, from any thread.
#[derive(Debug, Default)]
pub struct Control {
    pub live: Live,
    pub turns: Turns,
    stop: Arc<AtomicBool>,
    finish: AtomicBool,
    phase: AtomicU8,
    /// The common start of all parts of a distributed load, on CLOCK_REALTIME. 0 while it is unknown.
    begin_unix_ns: AtomicU64,
    /// The finished seconds of the window.
    seconds: Mutex<Vec<Second>>,
    /// Start of the window on the monotonic clock. 0 while unknown.
    window_start: AtomicU64,
    window_end: AtomicU64,
}

impl Control {
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the trial within a second; its result is then marked `cut_short`.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Closes the window normally, for a trial that only observes other work and ends together with that work.
    pub fn finish(&self) {
        self.finish.store(true, Relaxed);
    }

    pub fn is_finished(&self) -> bool {
        self.finish.load(Relaxed)
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Sets the common start of all parts, for a trial that is one part.
    pub fn begin_at(&self, unix_ns: u64) {
        self.begin_unix_ns.store(unix_ns, Relaxed);
    }

    pub fn begins_at(&self) -> Option<u64> {
        Some(self.begin_unix_ns.load(Relaxed)).filter(|&instant| instant > 0)
    }

    /// Returns the flag that is set when the trial is stopped. A thread may keep this flag even if it cannot borrow
    /// `Control` for so long.
    pub fn stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the complete one-second intervals of the window from number `after` on.
    pub fn seconds(&self, after: usize) -> Vec<Second> {
        let seconds = self.seconds.lock().expect("no thread panics while it holds the seconds");
        seconds.get(after..).unwrap_or_default().to_vec()
    }

    /// Publishes the finished seconds. `all` contains every finished second, including those already published.
    pub fn show_seconds(&self, all: &[Second]) {
        let mut seconds = self.seconds.lock().expect("no thread panics while it holds the seconds");
        let known = seconds.len();
        seconds.extend_from_slice(all.get(known..).unwrap_or_default());
    }

    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        if phase == Phase::Drain {
            let _ = self.window_end.compare_exchange(0, clock::now(), Relaxed, Relaxed);
        }
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Connect,
            1 => Phase::Ready,
            2 => Phase::WarmUp,
            3 => Phase::Run,
            4 => Phase::Drain,
            _ => Phase::Done,
        }
    }

    pub fn set_window_start(&self, instant: u64) {
        self.window_start.store(instant, Relaxed);
    }

    /// Returns the seconds since the start of the window. The seconds are negative during the warm-up and stop growing
    /// at the end of the window. Returns 0 while the start is unknown.
    pub fn elapsed_s(&self) -> f64 {
        let (start, end) = (self.window_start.load(Relaxed), self.window_end.load(Relaxed));
        if start == 0 {
            return 0.0;
        }
        let now = if end == 0 { clock::now() } else { end };
        (now as f64 - start as f64) / clock::SECOND as f64
    }
}

/// A cause for ending the trial early. Only the first cause is kept.
#[derive(Debug, Default)]
pub struct Abort {
    is_aborted: AtomicBool,
    /// Whether the trial ended because a transaction failed. The connections are intact in this case.
    by_error: AtomicBool,
    cause: Mutex<String>,
}

impl Abort {
    pub fn abort(&self, cause: impl Into<String>) {
        let mut first = self.cause.lock().expect("no thread panics while it holds the cause");
        if !self.is_aborted.swap(true, Relaxed) {
            *first = cause.into();
        }
    }

    /// Aborts the trial for a failed transaction.
    pub fn fail(&self, words: &str) {
        if !self.is_aborted() {
            self.by_error.store(true, Relaxed);
        }
        self.abort(words);
    }

    pub fn is_aborted(&self) -> bool {
        self.is_aborted.load(Relaxed)
    }

    pub fn by_error(&self) -> bool {
        self.by_error.load(Relaxed)
    }

    /// Returns the cause of the abort. Returns an empty string if the trial was not aborted.
    pub fn cause(&self) -> String {
        self.cause.lock().expect("no thread panics while it holds the cause").clone()
    }
}

/// Counts the clients that ended because they lost their connection, and keeps the first cause. Used in trials that
/// continue after a loss.
#[derive(Debug, Default)]
pub struct Losses {
    clients: AtomicUsize,
    cause: OnceLock<String>,
}

impl Losses {
    /// Records that a client has lost its connection, and keeps the first cause.
    pub fn note(&self, cause: &str) {
        self.cause.get_or_init(|| cause.to_owned());
    }

    /// Counts a client that ended because it lost its connection. Returns the count so far.
    pub fn end_client(&self) -> usize {
        self.clients.fetch_add(1, Relaxed) + 1
    }

    pub fn clients(&self) -> usize {
        self.clients.load(Relaxed)
    }

    /// Returns why the first connection was lost. Returns an empty string if none was lost.
    pub fn cause(&self) -> String {
        self.cause.get().cloned().unwrap_or_default()
    }
}
