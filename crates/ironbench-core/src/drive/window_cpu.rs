//! CPU time of driving threads at the edges of the window, read by another thread.
//!
//! A client of a library or driver notices the edge of the window only when its call returns, maybe seconds later. If
//! it read its CPU time then, the time would cover more or less than the window. A separate thread therefore reads the
//! CPU clocks of all driving threads exactly at the edges.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::measure::clock;
use crate::measure::cpu::{CpuTime, ThreadClock};
use crate::measure::recorder::Window;

#[derive(Debug, Default)]
struct State {
    /// CPU clock of each thread, by the thread's number. The value is None for a thread that reads its own clock.
    clocks: Vec<Option<ThreadClock>>,
    start: Vec<Option<CpuTime>>,
    end: Vec<Option<CpuTime>>,
    over: bool,
}

/// CPU time of the driving threads inside the window.
#[derive(Debug, Default)]
pub(super) struct WindowCpu {
    state: Mutex<State>,
    changed: Condvar,
}

impl WindowCpu {
    /// Registers the calling thread. Another thread then reads its CPU clock at the edges of the window, because the
    /// calling thread may be busy at that time.
    pub fn watch(&self, thread: usize) {
        let mut state = self.state();
        let clocks = &mut state.clocks;
        clocks.resize(clocks.len().max(thread + 1), None);
        clocks[thread] = ThreadClock::of_thread();
    }

    /// Returns the CPU time that the calling thread used inside the window. If the window is still open, this is the
    /// time used until now. Returns None if the clocks were not read at the start of the window.
    pub fn in_window(&self, thread: usize) -> Option<CpuTime> {
        let state = self.state();
        let read = |all: &[Option<CpuTime>]| all.get(thread).copied().flatten();
        let start = read(&state.start)?;
        Some(read(&state.end).unwrap_or_else(CpuTime::of_thread).since(start))
    }

    /// Reads all clocks at both edges of the window. Returns after the second edge, or when the trial is over.
    pub fn read(&self, window: Window) {
        if self.state().clocks.is_empty() {
            return;
        }
        if let Some(mut state) = self.sleep_until(window.start) {
            state.start = read_all(&state.clocks);
            drop(state);
            if let Some(mut state) = self.sleep_until(window.end) {
                state.end = read_all(&state.clocks);
            }
        }
    }

    /// Ends the reading thread, when the trial is over.
    pub fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Sleeps until `instant`. Returns None if the trial is over.
    fn sleep_until(&self, instant: u64) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        loop {
            let now = clock::now();
            if state.over {
                return None;
            }
            if now >= instant {
                return Some(state);
            }
            let left = Duration::from_nanos(instant - now);
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_all(clocks: &[Option<ThreadClock>]) -> Vec<Option<CpuTime>> {
    clocks.iter().map(|clock| clock.and_then(ThreadClock::read)).collect()
}
