//! The clock and waits of the sampling loop, as a trait, so that tests of the loop need not wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// Orders from the sampler's owner to the sampling loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Mark,
    Stop,
}

/// The reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    Due,
    Command(Command),
}

/// A clock in nanoseconds since the start of the window, with waiting.
pub trait SamplingClock {
    fn now_ns(&self) -> i64;
    /// Waits until `due_ns` or until an order arrives, whichever is first. A pending order takes precedence over a tick
    /// that has passed.
    fn wait_until(&mut self, due_ns: i64) -> Wake;
    /// Returns the CPU time that this thread has used.
    fn cpu_ns(&self) -> i64;
}

/// The real clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
    commands: Receiver<Command>,
}

impl SystemClock {
    pub fn new(origin: Instant, commands: Receiver<Command>) -> Self {
        Self { origin, commands }
    }
}

impl SamplingClock for SystemClock {
    fn now_ns(&self) -> i64 {
        let now = Instant::now();
        match now.checked_duration_since(self.origin) {
            Some(after) => after.as_nanos() as i64,
            None => -(self.origin.duration_since(now).as_nanos() as i64),
        }
    }

    fn wait_until(&mut self, due_ns: i64) -> Wake {
        loop {
            let left_ns = due_ns - self.now_ns();
            if left_ns <= 0 {
                return match self.commands.try_recv() {
                    Ok(command) => Wake::Command(command),
                    Err(TryRecvError::Empty) => Wake::Due,
                    Err(TryRecvError::Disconnected) => Wake::Command(Command::Stop),
                };
            }
            match self.commands.recv_timeout(Duration::from_nanos(left_ns as u64)) {
                Ok(command) => return Wake::Command(command),
                Err(RecvTimeoutError::Disconnected) => return Wake::Command(Command::Stop),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn cpu_ns(&self) -> i64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
