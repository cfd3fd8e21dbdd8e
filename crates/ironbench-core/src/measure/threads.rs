//! Groups of threads. Each thread is named and pinned when it is started. The threads of a group start their work
//! together at a gate. A flag of the gate ends the threads. Joining the threads returns their errors.
//!
//! A thread that fails or panics ends all threads that share its gate. The first error is the result of the group.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use super::{clock, cpu};
use crate::{Error, Result};

/// No time limit.
pub const NO_LIMIT: Duration = Duration::MAX;
/// Stack size of a thread: enough for each of ironbench's threads, and small enough for thousands of them.
const STACK_BYTES: usize = 1 << 20;

/// How the kernel wakes a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    Ordinary,
    /// The kernel wakes the thread without the default timer slack of 50 µs.
    Sharp,
    /// The kernel wakes the thread as for `Sharp`, and before ordinary threads if that is permitted (sched(7),
    /// SCHED_FIFO).
    RealTime,
}

/// The name, CPUs and timing of a thread.
#[derive(Debug, Clone)]
pub struct ThreadSettings {
    name: String,
    cpus: Vec<usize>,
    timing: Timing,
}

impl ThreadSettings {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), cpus: Vec::new(), timing: Timing::Ordinary }
    }

    /// Sets the CPUs to which the thread is pinned; an empty list means any CPU.
    pub fn pin_to(self, cpus: &[usize]) -> Self {
        Self { cpus: cpus.to_vec(), ..self }
    }

    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    fn builder(&self) -> Builder {
        Builder::new().name(self.name.clone()).stack_size(STACK_BYTES)
    }

    fn spawn_error(&self, error: &std::io::Error) -> Error {
        Error::failure(format!("thread {}", self.name), format!("cannot be started: {error}"))
    }

    /// Runs the thread's work, and reports its error or panic to the gate.
    fn run<S, T>(&self, gate: &Gate<S>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let worked = self.apply().and_then(|()| {
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
                let cause = format!("panicked: {}", words.unwrap_or_default());
                Err(Error::failure(format!("thread {}", self.name), cause))
            })
        });
        if let Err(error) = &worked {
            gate.fail(error.clone());
        }
        gate.lock().ended += 1;
        gate.changed.notify_all();
        worked
    }

    fn apply(&self) -> Result<()> {
        match self.timing {
            Timing::Ordinary => {}
            Timing::Sharp => clock::remove_timer_slack(),
            Timing::RealTime => {
                cpu::raise_thread_priority();
            }
        }
        if cpu::pin_thread(&self.cpus) {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(Error::failure(format!("CPUs {:?}", self.cpus), format!("cannot pin threads to them: {error}")))
    }
}

/// A gate at which threads wait for a common start. The value `S` is passed to all threads. The gate also has the flag
/// that ends them.
#[derive(Debug)]
pub struct Gate<S = ()> {
    state: Mutex<State<S>>,
    changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug)]
struct State<S> {
    ready: usize,
    ended: usize,
    start: Option<S>,
    error: Option<Error>,
}

impl<S> Default for Gate<S> {
    fn default() -> Self {
        let state = State { ready: 0, ended: 0, start: None, error: None };
        Self { state: Mutex::new(state), changed: Condvar::new(), stopped: AtomicBool::new(false) }
    }
}

impl<S> Gate<S> {
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    pub fn stop(&self) {
        // Without the lock, a thread that has checked the flag and is about to wait would miss the change.
        let state = self.lock();
        self.stopped.store(true, Relaxed);
        drop(state);
        self.changed.notify_all();
    }

    /// Keeps the first error and stops all threads of the gate.
    pub fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.stop();
    }

    /// Takes the first error of a thread.
    pub fn error(&self) -> Option<Error> {
        self.lock().error.take()
    }

    /// Waits until this many threads are waiting for the start. Also ends the wait if the gate is stopped, for example
    /// because a thread has failed. Returns false if the time limit `most` passed first.
    pub fn ready(&self, threads: usize, most: Duration) -> bool {
        self.wait(most, |state| state.ready >= threads || self.is_stopped())
    }

    /// Waits until this many threads have ended. Returns false if the time limit `most` passed first.
    pub fn ended(&self, threads: usize, most: Duration) -> bool {
        self.wait(most, |state| state.ended >= threads)
    }

    /// Sleeps for `most`, or until the gate is stopped. Returns false if the gate is stopped.
    pub fn pause(&self, most: Duration) -> bool {
        !self.wait(most, |_| self.is_stopped())
    }

    pub fn open(&self, start: S) {
        self.lock().start = Some(start);
        self.changed.notify_all();
    }

    /// Returns the value that was passed to the threads at their start. Returns None if they have not started.
    pub fn start(&self) -> Option<S>
    where
        S: Copy,
    {
        self.lock().start
    }

    fn wait(&self, most: Duration, over: impl Fn(&State<S>) -> bool) -> bool {
        let state = self.lock();
        if most == NO_LIMIT {
            drop(self.changed.wait_while(state, |state| !over(state)));
            return true;
        }
        let waited = self.changed.wait_timeout_while(state, most, |state| !over(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Copy> Gate<S> {
    /// Reports that this thread is ready, and waits for the common start. Returns None if the gate was stopped before
    /// the start.
    pub fn wait_for_start(&self) -> Option<S> {
        self.lock().ready += 1;
        self.changed.notify_all();
        self.wait(NO_LIMIT, |state| state.start.is_some() || self.is_stopped());
        self.start()
    }
}

/// Runs each of `members` in its own thread, and `lead` in this thread. The gate stops when `lead` ends. Returns all
/// results in order. If `lead` and a member fail, returns the first error of a member.
pub fn run_with_leader<S: Send, T: Send, R>(
    gate: &Gate<S>,
    members: impl IntoIterator<Item = (ThreadSettings, impl FnOnce() -> Result<T> + Send)>,
    lead: impl FnOnce() -> Result<R>,
) -> Result<(R, Vec<T>)> {
    thread::scope(|scope| {
        let stopping = StopOnDrop(gate);
        let mut threads = Vec::new();
        for (settings, work) in members {
            let thread = settings.builder();
            let thread = thread.spawn_scoped(scope, {
                let settings = settings.clone();
                move || settings.run(gate, work)
            });
            threads.push(thread.map_err(|error| settings.spawn_error(&error))?);
        }
        let led = lead();
        drop(stopping);
        let each: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("its panic was caught")).collect();
        match gate.error() {
            Some(error) => Err(error),
            None => Ok((led?, each.into_iter().collect::<Result<_>>()?)),
        }
    })
}

/// Does the same work in several threads. `work` gets the number of its thread.
pub fn run_parallel<T: Send>(
    name: &str,
    threads: usize,
    work: impl Fn(usize, &Gate) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (gate, work) = (Gate::default(), &work);
    let members = (0..threads).map(|number| {
        let gate = &gate;
        (ThreadSettings::new(format!("{name}-{number}")), move || work(number, gate))
    });
    let lead = || {
        gate.ended(threads, NO_LIMIT);
        Ok(())
    };
    run_with_leader(&gate, members, lead).map(|(_, each)| each)
}

struct StopOnDrop<'a, S>(&'a Gate<S>);

impl<S> Drop for StopOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A thread that lives as long as this value. Dropping the value stops the gate and joins the thread.
#[derive(Debug)]
pub struct BackgroundThread<S = (), T = ()> {
    gate: Arc<Gate<S>>,
    thread: Option<JoinHandle<Result<T>>>,
}

impl<S: Send + 'static, T: Send + 'static> BackgroundThread<S, T> {
    /// Starts the thread. Threads that share a gate start and end together.
    pub fn start(
        settings: ThreadSettings,
        gate: Arc<Gate<S>>,
        work: impl FnOnce(&Gate<S>) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let theirs = Arc::clone(&gate);
        let thread = settings.builder().spawn({
            let settings = settings.clone();
            move || settings.run(&theirs, || work(&theirs))
        });
        Ok(Self { gate, thread: Some(thread.map_err(|error| settings.spawn_error(&error))?) })
    }

    /// Waits until the thread has ended. Returns false if the time limit `most` passed first. Only valid if no other
    /// thread shares the gate.
    pub fn ended(&self, most: Duration) -> bool {
        self.gate.ended(1, most)
    }

    /// Detaches the thread without waiting for it, because it may hang.
    pub fn detach(mut self) {
        self.thread = None;
    }

    /// Waits until the thread ends on its own.
    pub fn join(mut self) -> Result<T> {
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("its panic was caught")
    }
}

impl<S, T> Drop for BackgroundThread<S, T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.gate.stop();
            // The result is ignored, because the gate keeps the thread's error and `drop` cannot return it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_start_together_and_their_results_are_in_order() {
        let gate = Gate::<u32>::default();
        let members = (0..5).map(|number| {
            let gate = &gate;
            (ThreadSettings::new(format!("member-{number}")), move || Ok((number, gate.wait_for_start())))
        });
        let lead = || {
            assert!(gate.ready(5, NO_LIMIT) && !gate.ended(1, Duration::ZERO));
            gate.open(7);
            Ok("led")
        };
        let (led, each) = run_with_leader(&gate, members, lead).unwrap();
        assert_eq!((led, each), ("led", (0..5).map(|number| (number, Some(7))).collect()));
    }

    #[test]
    fn an_error_or_a_panic_of_one_ends_all_and_is_the_result() {
        let waits = |gate: &Gate| {
            while gate.pause(NO_LIMIT) {}
            Ok(())
        };
        let failed = run_parallel("hand", 3, |number, gate| match number {
            1 => Err(Error::failure("disk", "is full")),
            _ => waits(gate),
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk: is full");
        let panicked = run_parallel("hand", 3, |number, gate| match number {
            2 => panic!("number {number}"),
            _ => waits(gate),
        });
        assert_eq!(panicked.unwrap_err().to_string(), "thread hand-2: panicked: number 2");
    }

    #[test]
    fn nobody_waits_for_a_start_that_never_comes() {
        let gate = Gate::<u32>::default();
        let members = (0..3).map(|_| (ThreadSettings::new("member"), || Ok(gate.wait_for_start())));
        let failed = run_with_leader(&gate, members, || Err::<(), _>(Error::failure("server", "is gone")));
        assert_eq!(failed.unwrap_err().subject, "server");
    }

    #[test]
    fn a_thread_runs_where_it_was_put_and_what_cannot_be_is_an_error() {
        let there = |cpus: &[usize]| {
            let members = [(ThreadSettings::new("placed").pin_to(cpus), || {
                // SAFETY: the function takes no arguments.
                Ok(unsafe { libc::sched_getcpu() })
            })];
            let gate = Gate::<()>::default();
            run_with_leader(&gate, members, || Ok(gate.ended(1, NO_LIMIT))).map(|(_, each)| each[0])
        };
        // SAFETY: the function takes no arguments.
        let here = unsafe { libc::sched_getcpu() };
        assert_eq!(there(&[here as usize]).unwrap(), here);
        assert!(there(&[1023]).unwrap_err().cause.starts_with("cannot pin threads to them"));
    }

    #[test]
    fn a_resident_ends_with_its_value() {
        let gate = Arc::new(Gate::<()>::default());
        let rounds = BackgroundThread::start(ThreadSettings::new("resident"), Arc::clone(&gate), |gate| {
            while gate.pause(Duration::from_secs(600)) {}
            Ok(())
        });
        drop(rounds.unwrap());
        assert!(gate.ended(1, Duration::ZERO));
    }
}
