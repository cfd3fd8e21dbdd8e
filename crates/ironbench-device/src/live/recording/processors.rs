//! Records the machine's processor usage during a trace, in a thread that reads the kernel's counters periodically.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ironbench_core::Result;
use ironbench_core::measure::crew::{Gate, Post, Resident};

use crate::live::{due, process};

const PERIOD: Duration = Duration::from_millis(10);
/// Reading the counters takes at most 1/100 of a core.
/// The kernel sums over all cores each time, which is slow on large machines.
const SHARE: u32 = 100;
const STAT: &str = "/proc/stat";
/// Unit of the times in `/proc/stat`, in nanoseconds (USER_HZ, proc_stat(5)); 10 ms on all supported Linux systems.
const TICK: u64 = 10_000_000;

/// Nanoseconds since the start of watching, updated by the thread.
#[derive(Debug, Default)]
struct Counts {
    used: AtomicU64,
    runnable: AtomicU64,
    own: AtomicU64,
}

/// Nanoseconds since the start of watching.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// CPU time used on the machine, excluding this process.
    pub used: u64,
    /// Time of threads that ran or waited for a core, excluding this process.
    pub runnable: u64,
    /// CPU time used by this process, excluding spinning, the time that models a driver, and reading the counters.
    pub own: u64,
}

/// A thread that updates the counts until dropped.
#[derive(Debug)]
pub struct Processors {
    counts: Arc<Counts>,
    _thread: Resident,
}

impl Processors {
    /// Starts the thread. If the kernel provides no counters, the counts do not change.
    pub fn watch() -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let theirs = Arc::clone(&counts);
        let watch = move |gate: &Gate| {
            let (mut watched, mut pause) = (Moment::now().map(Watched::from), PERIOD);
            while gate.pause(pause) {
                let began = Instant::now();
                if let (Some(watched), Some(now)) = (&mut watched, Moment::now()) {
                    let counted = watched.until(now);
                    // The counts may seem to decrease briefly:
                    // ticks are coarse, and a wait is counted only when it is over.
                    theirs.used.fetch_max(counted.used, Relaxed);
                    theirs.runnable.fetch_max(counted.runnable, Relaxed);
                    theirs.own.fetch_max(counted.own, Relaxed);
                }
                pause = PERIOD.max(began.elapsed() * SHARE);
            }
            Ok(())
        };
        let thread = Resident::start(Post::new("device-load"), Arc::default(), watch)?;
        Ok(Self { counts, _thread: thread })
    }

    pub fn counted(&self) -> Counted {
        let Counts { used, runnable, own } = &*self.counts;
        Counted { used: used.load(Relaxed), runnable: runnable.load(Relaxed), own: own.load(Relaxed) }
    }
}

/// The kernel's counters at a moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at: Instant,
    told: Told,
    own: u64,
    /// The part of `own` that serves no I/O.
    idly: u64,
}

impl Moment {
    fn now() -> Option<Self> {
        let told = Told::read(&std::fs::read_to_string(STAT).ok()?)?;
        let idly = due::watched_ns() + process::thread_cpu_ns();
        Some(Self { at: Instant::now(), told, own: process::cpu_ns(), idly })
    }
}

/// Accumulates counts since a first moment.
#[derive(Debug)]
struct Watched {
    first: Moment,
    last: Moment,
    /// Nanoseconds of threads that ran or waited for a core, excluding the thread that reads the counters.
    runnable: u64,
}

impl From<Moment> for Watched {
    fn from(first: Moment) -> Self {
        Self { first, last: first, runnable: 0 }
    }
}

impl Watched {
    fn until(&mut self, now: Moment) -> Counted {
        let own = now.own - self.first.own;
        let idly = now.idly - self.first.idly;
        let passed = now.at.duration_since(self.first.at).as_nanos() as u64;
        let idle = now.told.idle.saturating_sub(self.first.told.idle);
        let used = (passed * now.told.cores).saturating_sub(idle).saturating_sub(own);
        // The reading thread itself is running.
        let others = now.told.running.saturating_sub(1);
        self.runnable += now.at.duration_since(self.last.at).as_nanos() as u64 * others;
        self.last = now;
        // Threads of the emulation have priority, so they run whenever they are runnable.
        Counted { used, runnable: self.runnable.saturating_sub(own), own: own.saturating_sub(idly) }
    }
}

/// Values from `/proc/stat`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    cores: u64,
    /// Idle time of all cores in nanoseconds.
    /// The kernel measures it, whereas busy time is sampled by the tick (Linux: `get_idle_time`, fs/proc/stat.c).
    idle: u64,
    /// Number of threads that run or wait for a core.
    running: u64,
}

impl Told {
    fn read(text: &str) -> Option<Self> {
        let number = |word: &str| word.parse::<u64>().ok();
        let mut lines = text.lines();
        let mut whole = lines.next()?.strip_prefix("cpu ")?.split_whitespace();
        // user, nice, system, idle, iowait
        let idle = number(whole.nth(3)?)? + number(whole.next()?)?;
        let cores = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count() as u64;
        let running = number(lines.find_map(|line| line.strip_prefix("procs_running "))?.trim())?;
        Some(Self { cores, idle: idle * TICK, running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_threads_are_found_in_what_the_kernel_tells() {
        let text = "cpu  10 1 5 700 30 0 1 2 0 0\ncpu0 5 0 3 350 20 0 1 1 0 0\ncpu1 5 1 2 350 10 0 0 1 0 0\n\
                    intr 99 0 1\nctxt 1234\nbtime 1700000000\nprocesses 77\nprocs_running 3\nprocs_blocked 1\n";
        let told = Told::read(text).unwrap();
        assert_eq!(told, Told { cores: 2, idle: 7_300_000_000, running: 3 });
        assert_eq!((Told::read(""), Told::read("cpu  1 2 3\n")), (None, None));
    }

    #[test]
    fn what_was_not_idle_was_used_and_our_own_is_left_out() {
        let began = Instant::now();
        let moment = |ms, idle_ms: u64, running, own_ms: u64| Moment {
            at: began + Duration::from_millis(ms),
            told: Told { cores: 2, idle: idle_ms * 1_000_000, running },
            own: own_ms * 1_000_000,
            idly: own_ms * 600_000,
        };
        let mut watched = Watched::from(moment(0, 500, 1, 1));
        let counted = Counted { used: 115_000_000, runnable: 295_000_000, own: 2_000_000 };
        assert_eq!(watched.until(moment(100, 580, 4, 6)), counted);
        assert_eq!(watched.until(moment(200, 780, 1, 6)), counted);
    }

    #[test]
    fn asking_ends_when_nobody_wants_the_counts() {
        let processors = Processors::watch().unwrap();
        let counts = Arc::downgrade(&processors.counts);
        drop(processors);
        assert!(counts.upgrade().is_none());
    }
}
