//! The sampling loop, which waits for the next tick or order, reads the sources, and stores the bytes.

use std::sync::Mutex;

use super::sampling_clock::{Command, SamplingClock, Wake};
use super::series::Series;
use super::ticks::Ticks;
use crate::drive::plan::ObserverSource;

/// A reason why a reading failed.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadError {
    /// A temporary failure. The source is read again at the next tick.
    Temporary(String),
    /// A permanent failure. The source cannot be read any more.
    Permanent(String),
}

/// A source that can be read repeatedly.
pub trait Reader: Send {
    /// Appends the current content to `out`.
    fn read(&mut self, out: &mut Vec<u8>) -> Result<(), ReadError>;
}

/// A source with its reader and its limits.
pub struct SampledSource {
    name: String,
    period_ns: i64,
    keep_bytes: usize,
    reader: Box<dyn Reader>,
    ended: bool,
    is_failing: bool,
}

impl SampledSource {
    pub fn new(source: &ObserverSource, reader: Box<dyn Reader>, keep_bytes: usize) -> Self {
        let period_ns = (source.period_s * 1e9).round() as i64;
        Self { name: source.name.clone(), period_ns, keep_bytes, reader, ended: false, is_failing: false }
    }
}

/// The samples collected so far, in the order of the sources.
#[derive(Debug, Default)]
pub struct Collected {
    pub series: Vec<Series>,
    pub notes: Vec<String>,
    cpu_at_window_ns: i64,
    cpu_last_ns: i64,
}

impl Collected {
    pub fn of(sources: &[SampledSource]) -> Self {
        let series = sources.iter().map(|source| Series::new(&source.name, source.keep_bytes)).collect();
        Self { series, ..Self::default() }
    }

    /// Returns the CPU time of the loop in seconds since the start of the window.
    pub fn cpu_s(&self) -> f64 {
        (self.cpu_last_ns - self.cpu_at_window_ns) as f64 / 1e9
    }
}

/// Samples the sources until it receives the order to stop, or until no readable source is left. Late ticks are served
/// too, but no ticks before `began_ns`.
pub fn run(sources: &mut [SampledSource], began_ns: i64, clock: &mut impl SamplingClock, collected: &Mutex<Collected>) {
    let mut ticks: Vec<Ticks> = sources.iter().map(|source| Ticks::starting(source.period_ns, began_ns)).collect();
    let mut raw = Vec::with_capacity(64 << 10);
    loop {
        let open = || sources.iter().zip(&ticks).filter(|(source, _)| !source.ended);
        let Some(due_ns) = open().map(|(_, ticks)| ticks.due_ns()).min() else { return };
        let wake = clock.wait_until(due_ns);
        if wake == Wake::Command(Command::Stop) {
            return;
        }
        for (place, source) in sources.iter_mut().enumerate().filter(|(_, source)| !source.ended) {
            let ticks = &mut ticks[place];
            if wake == Wake::Command(Command::Mark) {
                sample(place, source, ticks, None, clock, &mut raw, collected);
            } else if ticks.due_ns() <= clock.now_ns() {
                let (tick, missed) = ticks.serve(clock.now_ns());
                if let Some(series) = locked(collected).series.get_mut(place) {
                    series.missed += missed;
                }
                sample(place, source, ticks, Some(tick), clock, &mut raw, collected);
            }
        }
        let mut collected = locked(collected);
        collected.cpu_last_ns = clock.cpu_ns();
        if due_ns <= 0 {
            collected.cpu_at_window_ns = collected.cpu_last_ns;
        }
    }
}

/// Reads one source and stores its bytes. The time of the sample is the middle of the reading.
fn sample(
    place: usize,
    source: &mut SampledSource,
    ticks: &mut Ticks,
    tick: Option<i64>,
    clock: &mut impl SamplingClock,
    raw: &mut Vec<u8>,
    collected: &Mutex<Collected>,
) {
    raw.clear();
    let before_ns = clock.now_ns();
    let outcome = source.reader.read(raw);
    let t_ns = before_ns + (clock.now_ns() - before_ns) / 2;
    let mut collected = locked(collected);
    // The series is missing if the sampler stopped waiting for this reading and has already taken the results.
    let Some(series) = collected.series.get_mut(place) else { return };
    match outcome {
        Ok(()) => {
            source.is_failing = false;
            if series.push(t_ns, tick, raw) {
                ticks.double();
            }
        }
        Err(trouble) => {
            let (cause, lasting) = match trouble {
                ReadError::Temporary(cause) => (cause, false),
                ReadError::Permanent(cause) => (cause, true),
            };
            // Consecutive failures get a single note, even if there are many.
            if !source.is_failing && !cause.is_empty() {
                let note = format!("{} at {:.1} s: {cause}", source.name, t_ns as f64 / 1e9);
                collected.notes.push(note);
            }
            source.is_failing = true;
            source.ended = lasting;
        }
    }
}

/// Locks the collected samples, even if a thread has panicked.
fn locked(collected: &Mutex<Collected>) -> std::sync::MutexGuard<'_, Collected> {
    collected.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
