//! The thread that samples.

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use foldhash::{HashMap, HashMapExt as _};
use ironbench_core::Error;
use ironbench_core::measure::completed::completed;

use crate::access::{self, Access};
use crate::collect::{Collector, Source};
use crate::event::{Event, Target, Trigger};
use crate::processes::Processes;
use crate::profile::Profile;
use crate::record::Batch;
use crate::ring::Ring;
use crate::stacks::Stacks;
use crate::timeline::Windows;
use crate::traced::{Change, Duty};
use crate::tracefs::Scheduler;

/// Size of a CPU's ring buffer of clock samples. The buffer has room for 500 ms of samples with stacks at 999 Hz. The
/// first samples of a program take longest to process, because the program's unwind tables must be read first.
const CLOCK_RING: usize = 8 << 20;
/// Size of a CPU's ring buffer of switches. The buffer has room for 300 ms at 10,000 switches per second. The next
/// constant is the maximum size of all these ring buffers together.
const SWITCH_RING: usize = 32 << 20;
const SWITCH_RINGS: usize = 256 << 20;
/// Interval between reads of the ring buffers. The buffers are read earlier if one of them is half full.
const INTERVAL_MS: u64 = 100;
/// Niceness of the sampling thread. With this value, the database has precedence, but the sampling thread still gets
/// CPU time.
const NICE: i32 = 5;
/// Depth at which the kernel cuts stacks by default. sysctl kernel.perf_event_max_stack can change it.
const DEPTH: usize = 127;

/// The kind of activity that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cpu,
    Wait,
}

/// A profiler, which is prepared or running. Dropping it closes all events.
pub struct Profiler {
    kinds: Vec<Kind>,
    hz: u32,
    engine_roots: Vec<i32>,
    running: Option<Running>,
}

struct Running {
    thread: JoinHandle<(Collector, f64)>,
    /// Write end of a pipe. Closing it ends the thread.
    end: PipeWriter,
}

impl Profiler {
    /// Prepares a profiler. `hz` is the number of samples per second of CPU time, 1 to 999. `engine_roots` are
    /// processes that belong to the engine, together with all their descendants.
    pub fn new(kinds: &[Kind], hz: u32, engine_roots: &[i32]) -> Result<Self, Error> {
        if kinds.is_empty() {
            return Err(Error::input("profile", "has no kinds"));
        }
        if !(1..=999).contains(&hz) {
            return Err(Error::input("profile", format!("{hz} samples per second are not between 1 and 999")));
        }
        Ok(Self { kinds: kinds.to_vec(), hz, engine_roots: engine_roots.to_vec(), running: None })
    }

    /// Opens the events and starts sampling.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.running.is_some() {
            return Err(Error::input("profiler", "is started once"));
        }
        let failed = |error: io::Error| Error::failure("profiler", error.to_string());
        let processes = Processes::new(&self.engine_roots, std::process::id().cast_signed());
        let mut sampler = Sampler::open(&self.kinds, self.hz, processes)?;
        let (wake, end) = io::pipe().map_err(failed)?;
        let (started, has_started) = mpsc::channel();
        let thread = thread::Builder::new().name("profiler".to_owned()).spawn(move || {
            // SAFETY: the call has no argument.
            let tid = unsafe { libc::gettid() };
            // SAFETY: the arguments are numbers. Linux applies the priority to this thread only.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, tid.cast_unsigned(), NICE) };
            let collector = sampler.start(tid);
            let _ = started.send(());
            sampler.run(collector, &wake)
        });
        let thread = thread.map_err(failed)?;
        let _ = has_started.recv();
        self.running = Some(Running { thread, end });
        Ok(())
    }

    /// Stops sampling. The result covers only the times in `windows`, or everything if `windows` is empty.
    pub fn stop(&mut self, windows: &Windows) -> Result<Profile, Error> {
        let Some(Running { thread, end }) = self.running.take() else {
            return Err(Error::input("profiler", "is not running"));
        };
        drop(end);
        let (collected, cpu_s) = thread.join().map_err(|_| Error::failure("profiler", "its thread panicked"))?;
        Ok(Profile::new(&collected, windows, cpu_s))
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if let Some(Running { thread, end }) = self.running.take() {
            drop(end);
            drop(thread.join());
        }
    }
}

/// The open events and their ring buffers.
struct Sampler {
    events: Vec<Event>,
    /// Positions of the scheduler's events.
    scheduler_events: Vec<usize>,
    cpus: usize,
    /// Size of a CPU's ring buffer of switches in bytes. The next field is the number of bytes read from these ring
    /// buffers.
    switch_ring: usize,
    switch_bytes: usize,
    /// The ring buffers. The flag says whether a ring buffer contains clock samples.
    rings: Vec<(bool, Ring)>,
    ring_descriptors: Vec<RawFd>,
    sources: HashMap<u64, Source>,
    scheduler: Option<Scheduler>,
    processes: Processes,
    period_ns: u64,
}

impl Sampler {
    fn open(kinds: &[Kind], hz: u32, mut processes: Processes) -> Result<Self, Error> {
        let access = access::access(kinds).map_err(|missing| {
            let missing = missing.iter().map(|(code, detail)| format!("{code} ({detail})"));
            Error::failure("profile", missing.collect::<Vec<_>>().join(", "))
        })?;
        let scheduler = if kinds.contains(&Kind::Wait) { Scheduler::find().ok() } else { None };
        let mut triggers = Vec::new();
        if kinds.contains(&Kind::Cpu) {
            triggers.push((Trigger::CpuClock { hz: u64::from(hz) }, Source::Clock));
        }
        if let Some(Scheduler { switch, waking, .. }) = scheduler {
            if triggers.is_empty() {
                triggers.push((Trigger::Nothing, Source::Clock));
            }
            triggers.push((Trigger::Switch { id: switch }, Source::Switch));
            triggers.push((Trigger::Tracepoint { id: waking }, Source::Waking));
        }
        let (threads, kernel) = match access {
            Access::Everything => (vec![-1], true),
            Access::Own { kernel } => {
                processes.read_existing();
                (processes.threads_with_role(), kernel)
            }
        };
        let period_ns = 1_000_000_000 / u64::from(hz);
        let (events, rings, ring_descriptors, sources) = (Vec::new(), Vec::new(), Vec::new(), HashMap::new());
        let cpus = access::online_cpus();
        let switch_ring = SWITCH_RING.min(SWITCH_RINGS / cpus.len().max(1).next_power_of_two());
        let mut sampler = Self {
            events,
            scheduler_events: Vec::new(),
            cpus: cpus.len(),
            switch_ring,
            switch_bytes: 0,
            rings,
            ring_descriptors,
            sources,
            scheduler,
            processes,
            period_ns,
        };
        for cpu in cpus {
            sampler.open_on(cpu, &threads, kernel, &triggers, switch_ring).map_err(|error| {
                let failure = Error::failure("profile", format!("CPU {cpu}: {error}"));
                match error.raw_os_error() {
                    Some(libc::EMFILE) => failure.hint("increase the limit of open files, see 'ulimit -n'"),
                    Some(libc::EPERM | libc::ENOMEM) => failure.hint("increase kernel.perf_event_mlock_kb"),
                    _ => failure,
                }
            })?;
        }
        if sampler.events.is_empty() {
            return Err(Error::failure("profile", "none of the processes may be sampled"));
        }
        Ok(sampler)
    }

    /// Opens the events of one CPU. Clock samples have a separate ring buffer, so that they are not lost when there are
    /// many switches.
    fn open_on(
        &mut self,
        cpu: i32,
        threads: &[i32],
        kernel: bool,
        triggers: &[(Trigger, Source)],
        switch_ring: usize,
    ) -> io::Result<()> {
        let mut ring_owners = HashMap::new();
        for &thread in threads {
            for (place, &(trigger, source)) in triggers.iter().enumerate() {
                let event = match Event::open(trigger, Target { thread, cpu, kernel }, place == 0) {
                    Ok(event) => event,
                    Err(error) if thread > 0 && is_of_thread(&error) => continue,
                    Err(error) => return Err(error),
                };
                self.sources.insert(event.id, source);
                let is_clock = source == Source::Clock;
                match ring_owners.get(&is_clock) {
                    Some(&owner) => event.share_ring_of(&self.events[owner])?,
                    None => {
                        let ring = Ring::map(&event, if is_clock { CLOCK_RING } else { switch_ring })?;
                        self.rings.push((is_clock, ring));
                        self.ring_descriptors.push(event.descriptor.as_raw_fd());
                        ring_owners.insert(is_clock, self.events.len());
                    }
                }
                if !is_clock {
                    self.scheduler_events.push(self.events.len());
                }
                self.events.push(event);
            }
        }
        Ok(())
    }

    /// Enables the events, and then reads the existing processes. A process that starts in between is found twice,
    /// which does no harm.
    fn start(&mut self, tid: i32) -> Collector {
        for event in &self.events {
            drop(event.enable());
        }
        let mut processes = std::mem::replace(&mut self.processes, Processes::new(&[], 0));
        processes.read_existing();
        let stacks = Stacks::new(depth_limit());
        let sources = std::mem::take(&mut self.sources);
        Collector::new(sources, self.scheduler, processes, stacks, tid, self.period_ns)
    }

    /// Samples until the write end of the pipe is closed. Also returns the CPU time of this thread in seconds.
    fn run(mut self, mut collector: Collector, wake: &PipeReader) -> (Collector, f64) {
        let (mut pending, mut later) = (Batch::default(), Batch::default());
        // The ring buffers of the CPUs are read one after the other, and a CPU may write a record late. To keep the
        // records in order of time, only those are processed that are older than the previous read.
        let mut previous = now_ns();
        let mut duty =
            self.scheduler.map(|_| Duty::new(self.cpus, self.switch_ring, previous, self.unread_switch_bytes()));
        collector.traced.start(previous, 0);
        while !self.sleep(wake, duty.as_ref().map_or(u64::MAX, Duty::until)) {
            let now = now_ns();
            collector.progress.note(now, completed());
            let bytes = self.switch_bytes + self.unread_switch_bytes();
            let change = duty.as_mut().and_then(|duty| duty.next(bytes, now));
            // The records of a window are read after its end. Otherwise, the ring buffers could become full while this
            // thread processes the first part of the window.
            if change.is_none() && duty.as_ref().is_some_and(Duty::is_in_window) {
                continue;
            }
            if change == Some(Change::Pause) {
                self.scheduler_events().for_each(|event| drop(event.disable()));
            }
            let full = self.drain(&mut pending);
            if full.is_some() || change == Some(Change::Pause) {
                collector.end_window(full.map_or(now, |full| full.min(now)), &pending);
                pending.clear();
            } else {
                pending.split_off(previous, &mut later);
                feed(&mut collector, &pending);
                std::mem::swap(&mut pending, &mut later);
            }
            previous = now;
            let learning = duty.as_ref().map_or(0, Duty::learning);
            if change == Some(Change::Record) {
                self.scheduler_events().for_each(|event| drop(event.enable()));
                let start = now_ns();
                collector.progress.note(start, completed());
                collector.traced.start(start, learning);
            } else if full.is_some() && change.is_none() {
                collector.traced.start(now_ns(), learning);
            }
        }
        let end = now_ns();
        collector.progress.note(end, completed());
        for event in &self.events {
            drop(event.disable());
        }
        let full = self.drain(&mut pending);
        collector.end_window(full.map_or(end, |full| full.min(end)), &pending);
        (collector, cpu_s())
    }

    fn scheduler_events(&self) -> impl Iterator<Item = &Event> {
        self.scheduler_events.iter().map(|&place| &self.events[place])
    }

    /// Sleeps until the next read, at most until a time. Returns whether sampling must end.
    fn sleep(&self, wake: &PipeReader, until: u64) -> bool {
        let descriptors = std::iter::once(wake.as_raw_fd()).chain(self.ring_descriptors.iter().copied());
        let mut polled: Vec<_> = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        let timeout = (until.saturating_sub(now_ns()) / 1_000_000 + 1).min(INTERVAL_MS) as i32;
        // SAFETY: pointer and length belong to the same vector.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
        polled[0].revents != 0
    }

    /// Moves all records to the batch, and sorts them by time. Returns the time from which on switches may be missing,
    /// because the ring buffer of a CPU was full. Returns None if no ring buffer of switches was full.
    fn drain(&mut self, batch: &mut Batch) -> Option<u64> {
        let mut complete_until = None;
        for (is_clock, ring) in &mut self.rings {
            let (from, first) = (batch.words.len(), batch.index.len());
            let was_full = ring.drain(&mut batch.words);
            batch.index_from(from);
            if !*is_clock {
                self.switch_bytes += 8 * (batch.words.len() - from);
                let last = batch.index[first..].last().filter(|_| was_full).map(|&(time, _)| time);
                complete_until = complete_until.into_iter().chain(last).min();
            }
        }
        batch.index.sort_by_key(|&(time, _)| time);
        complete_until
    }

    fn unread_switch_bytes(&self) -> usize {
        self.rings.iter().filter(|(is_clock, _)| !is_clock).map(|(_, ring)| ring.used()).sum()
    }
}

fn feed(collector: &mut Collector, batch: &Batch) {
    for &(_, at) in &batch.index {
        collector.add(&batch.record(at));
    }
}

/// Whether the error concerns only this thread. Such errors mean that it has ended or belongs to another user.
fn is_of_thread(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EACCES | libc::EPERM))
}

fn depth_limit() -> usize {
    let set = fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").unwrap_or_default();
    set.trim().parse().unwrap_or(DEPTH)
}

fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn cpu_s() -> f64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) as f64 / 1e9
}

/// Returns the time of a clock in ns.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
