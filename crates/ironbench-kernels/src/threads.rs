//! Threads that execute units of work from a common start to a common end. Each thread has its own counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ironbench_core::Result;
use ironbench_core::measure::Histogram;
use ironbench_core::measure::threads::{BackgroundThread, Gate, ThreadSettings};
use serde_json::{Value, json};

use crate::fractal::Fractal;
use crate::game::Game;
use crate::mandelbrot::View;
use crate::plan::{Kernel, KernelPlan};

/// A function that returns whether the work must end. A long unit calls it often.
pub type StopCheck<'a> = &'a dyn Fn() -> bool;
const BUCKET: Duration = Duration::from_millis(100);

/// The work of one thread.
pub trait Work: Send {
    /// Does everything that must not be measured.
    fn prepare(&mut self, over: StopCheck<'_>) -> Result<()>;
    /// Executes one unit. Returns None if the unit was abandoned because the work is over.
    fn unit(&mut self, over: StopCheck<'_>) -> Result<Option<CompletedUnit>>;
    /// Checks the results, and returns the work's own measurements.
    fn report(&mut self) -> Value;
}

/// A unit that succeeded.
#[derive(Debug, Default)]
pub struct CompletedUnit {
    /// Response time of the unit in nanoseconds. With None, it is the whole time of the unit.
    pub took_ns: Option<u64>,
    /// Name and duration in nanoseconds of each part of the response time.
    pub parts: Vec<(&'static str, u64)>,
}

/// Counters of one thread. The counters of different threads are in different pairs of cache lines, because processors
/// fetch cache lines in pairs. Therefore the threads do not slow each other down.
#[repr(align(128))]
#[derive(Default)]
struct Counts {
    all: Histogram,
    parts: Vec<(&'static str, Histogram)>,
    /// Number of units that ended in each interval of 100 ms.
    ended: Vec<u32>,
    units: u64,
    last: Duration,
    report: Value,
}

/// The start of the window, and its end.
type Window = (Instant, Instant);

/// Waits for the threads of a trial without polling. Polling would take time from a thread on the same core.
pub struct Watch {
    gate: Arc<Gate<Window>>,
    worked: Arc<Gate>,
    threads: usize,
}

impl Watch {
    /// Waits until all threads wait for the start or have given up. Returns false if this takes longer than `most`.
    pub fn ready(&self, most: Duration) -> bool {
        self.gate.ready(self.threads, most)
    }

    /// Waits until all threads have done their work or have given up. The threads check their results only after that.
    /// Returns false if this takes longer than `most`.
    pub fn done(&self, most: Duration) -> bool {
        self.worked.ready(self.threads, most) || self.ended(Duration::ZERO)
    }

    /// Waits until all threads have ended. Returns false if this takes longer than `most`.
    pub fn ended(&self, most: Duration) -> bool {
        self.gate.ended(self.threads, most)
    }
}

/// The threads of a trial.
pub struct KernelThreads {
    gate: Arc<Gate<Window>>,
    /// Counts the threads whose work is done. This gate is always open.
    worked: Arc<Gate>,
    threads: Vec<BackgroundThread<Window, Counts>>,
}

/// The result of a trial.
pub struct Outcome {
    pub all: Histogram,
    pub parts: Vec<(&'static str, Histogram)>,
    /// Summary as JSON: `ended`, and `threads` with each thread's units, the end of its last unit in seconds, CPU time
    /// and report.
    pub summary: Value,
}

impl KernelThreads {
    /// Starts the threads, which prepare, warm up, and wait for `start`.
    pub fn new(plan: &KernelPlan) -> Result<Self> {
        let gate = Arc::new(Gate::default());
        let worked = Arc::new(Gate::default());
        worked.open(());
        let warmup = Duration::from_secs_f64(plan.warmup_s);
        let mut threads = Vec::with_capacity(plan.threads);
        for number in 0..plan.threads {
            let mut work = work(plan, number);
            let cpu = plan.pin.get(number % plan.pin.len().max(1));
            let settings = ThreadSettings::new(format!("kernel-{number}"))
                .pin_to(cpu.map(std::slice::from_ref).unwrap_or_default());
            let finished = Arc::clone(&worked);
            let works = move |gate: &Gate<Window>| run(work.as_mut(), warmup, gate, &finished);
            threads.push(BackgroundThread::start(settings, Arc::clone(&gate), works)?);
        }
        Ok(Self { gate, worked, threads })
    }

    pub fn watch(&self) -> Watch {
        Watch { gate: Arc::clone(&self.gate), worked: Arc::clone(&self.worked), threads: self.threads.len() }
    }

    /// Starts the window, which lasts for `duration`.
    pub fn start(&self, duration: Duration) {
        let now = Instant::now();
        self.gate.open((now, now + duration));
    }

    /// Ends the work early. The units that were done until then count.
    pub fn stop(&self) {
        self.gate.stop();
    }

    /// Waits for all threads. Returns the first error of a thread, if there is any.
    pub fn join(self) -> Result<Outcome> {
        let each: Vec<_> = self.threads.into_iter().map(BackgroundThread::join).collect();
        if let Some(error) = self.gate.error() {
            return Err(error);
        }
        let (mut all, mut parts, mut ended) = (Histogram::new(), Vec::<(&'static str, Histogram)>::new(), Vec::new());
        let mut threads = Vec::new();
        for counts in each {
            let counts = counts?;
            all.merge(&counts.all);
            for (name, times) in &counts.parts {
                merge(&mut parts, name, times);
            }
            ended.resize(counts.ended.len().max(ended.len()), 0_u64);
            for (sum, one) in ended.iter_mut().zip(&counts.ended) {
                *sum += u64::from(*one);
            }
            threads.push(json!({
                "units": counts.units,
                "last_s": counts.last.as_secs_f64(),
                "report": counts.report,
            }));
        }
        Ok(Outcome { all, parts, summary: json!({ "ended": ended, "threads": threads }) })
    }
}

fn work(plan: &KernelPlan, number: usize) -> Box<dyn Work> {
    match plan.kernel {
        Kernel::Mandelbrot { width, height, limit, variant } => {
            Box::new(Fractal::new(View { width, height, limit }, variant))
        }
        Kernel::Lottery { bytes, huge, draws, probe_s } => {
            let seed = plan.seed.wrapping_add(number as u64);
            Box::new(Game::new(bytes, huge, draws, Duration::from_secs_f64(probe_s), seed))
        }
    }
}

fn run(work: &mut dyn Work, warmup: Duration, gate: &Gate<Window>, worked: &Gate) -> Result<Counts> {
    let mut counts = Counts::default();
    let stopped = || gate.is_stopped();
    work.prepare(&stopped)?;
    let until = Instant::now() + warmup;
    let over = || stopped() || Instant::now() >= until;
    while !over() {
        work.unit(&over)?;
    }
    if let Some((start, deadline)) = gate.wait_for_start() {
        let over = || stopped() || Instant::now() >= deadline;
        while !over() {
            let began = Instant::now();
            let Some(done) = work.unit(&over)? else { break };
            counts.count(&done, began, start);
        }
    }
    // The checks after this point do not count as time of the trial.
    worked.wait_for_start();
    counts.report = work.report();
    Ok(counts)
}

impl Counts {
    fn count(&mut self, done: &CompletedUnit, began: Instant, start: Instant) {
        let now = Instant::now();
        self.last = now - start;
        self.all.record(done.took_ns.unwrap_or_else(|| (now - began).as_nanos() as u64));
        for (name, ns) in &done.parts {
            let times = match self.parts.iter().position(|(known, _)| known == name) {
                Some(place) => &mut self.parts[place].1,
                None => {
                    self.parts.push((name, Histogram::new()));
                    &mut self.parts.last_mut().expect("just pushed").1
                }
            };
            times.record(*ns);
        }
        let bucket = (self.last.as_nanos() / BUCKET.as_nanos()) as usize;
        if self.ended.len() <= bucket {
            self.ended.resize(bucket + 1, 0);
        }
        self.ended[bucket] += 1;
        self.units += 1;
    }
}

fn merge(parts: &mut Vec<(&'static str, Histogram)>, name: &'static str, times: &Histogram) {
    match parts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => sum.merge(times),
        None => parts.push((name, times.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kernel: &str, threads: usize) -> KernelPlan {
        let text = format!(r#"{{"threads": {threads}, "pin": [], "warmup_s": 0, "seed": 1, "kernel": {kernel}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    const SMALL: &str = r#"{"kind": "mandelbrot", "width": 64, "height": 32, "limit": 64, "variant": "vector"}"#;
    const LOTTERY: &str = r#"{"kind": "lottery", "bytes": 1000000, "huge": "default", "draws": 1000, "probe_s": 0.0}"#;

    fn driven(kernel: &str, threads: usize) -> Outcome {
        let threads = KernelThreads::new(&plan(kernel, threads)).unwrap();
        assert!(threads.watch().ready(Duration::from_secs(60)));
        threads.start(Duration::from_millis(50));
        threads.join().unwrap()
    }

    #[test]
    fn counts_of_threads_share_no_cache_line() {
        assert!(align_of::<Counts>() >= 128 && size_of::<Counts>().is_multiple_of(128));
    }

    #[test]
    fn every_unit_of_every_thread_is_counted_and_right() {
        for (kernel, threads) in [(SMALL, 3), (LOTTERY, 2)] {
            let found = driven(kernel, threads);
            let reports = found.summary["threads"].as_array().unwrap();
            assert_eq!(reports.len(), threads);
            let units: u64 = reports.iter().map(|one| one["units"].as_u64().unwrap()).sum();
            let ended: u64 = found.summary["ended"].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).sum();
            assert!(units > 0);
            assert_eq!((found.all.count(), ended), (units, units));
            assert!(reports.iter().all(|one| one["report"]["wrong"] == 0), "{reports:?}");
        }
    }

    #[test]
    fn a_lottery_tells_allocation_and_search_apart() {
        let found = driven(LOTTERY, 1);
        let names: Vec<_> = found.parts.iter().map(|(name, times)| (*name, times.count())).collect();
        assert_eq!(names, [("allocate", found.all.count()), ("search", found.all.count())]);
    }

    /// Work whose `report` waits until the gate is opened.
    struct Checked<'a>(&'a Gate);

    impl Work for Checked<'_> {
        fn prepare(&mut self, _over: StopCheck<'_>) -> Result<()> {
            Ok(())
        }

        fn unit(&mut self, _over: StopCheck<'_>) -> Result<Option<CompletedUnit>> {
            Ok(Some(CompletedUnit::default()))
        }

        fn report(&mut self) -> Value {
            self.0.wait_for_start();
            Value::Null
        }
    }

    #[test]
    fn work_is_done_before_it_is_checked() {
        let (gate, worked, checks) = (Gate::<Window>::default(), Gate::<()>::default(), Gate::<()>::default());
        worked.open(());
        let now = Instant::now();
        gate.open((now, now + Duration::from_millis(5)));
        let mut work = Checked(&checks);
        let done = std::thread::scope(|scope| {
            let ran = scope.spawn(|| run(&mut work, Duration::ZERO, &gate, &worked));
            let done = worked.ready(1, Duration::from_secs(60));
            checks.open(());
            assert!(ran.join().unwrap().is_ok());
            done
        });
        assert!(done);
    }

    #[test]
    fn done_returns_when_all_threads_have_failed() {
        let kernel = r#"{"kind": "lottery", "bytes": 4611686018427387904, "huge": "no", "draws": 1, "probe_s": 0.0}"#;
        let threads = KernelThreads::new(&plan(kernel, 2)).unwrap();
        let began = Instant::now();
        while !threads.watch().done(Duration::from_millis(10)) {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        assert!(threads.join().is_err());
    }

    #[test]
    fn stopped_threads_end_before_the_deadline() {
        let threads = KernelThreads::new(&plan(SMALL, 2)).unwrap();
        threads.start(Duration::from_secs(60));
        threads.stop();
        let began = Instant::now();
        threads.join().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_picture_that_would_take_hours_ends_when_it_is_stopped() {
        let huge = r#"{"kind": "mandelbrot", "width": 4000, "height": 4000, "limit": 1000000, "variant": "scalar"}"#;
        let began = Instant::now();
        let threads = KernelThreads::new(&plan(huge, 1)).unwrap();
        assert!(!threads.watch().ready(Duration::from_millis(20)), "it prepares");
        drop(threads);
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_crew_that_is_dropped_leaves_no_thread() {
        drop(KernelThreads::new(&plan(SMALL, 2)).unwrap());
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let kernel = r#"{"kind": "lottery", "bytes": 4611686018427387904, "huge": "no", "draws": 1, "probe_s": 0.0}"#;
        let threads = KernelThreads::new(&plan(kernel, 1)).unwrap();
        threads.start(Duration::from_millis(10));
        let error = threads.join().err().unwrap();
        assert_eq!(error.subject, "memory");
    }
}
