//! Opens new connections for the clients of a driving thread. Connecting takes several round trips. Helper threads do
//! it, so that the other clients are not delayed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use super::opening::Carried;
use crate::measure::cpu::{Cpu, bind_thread};
use crate::{Error, Result};

/// A function that opens a connection. The function fails soon after the flag is set.
pub type Connect = Arc<dyn Fn(Arc<AtomicBool>) -> Result<Carried> + Send + Sync>;

/// Counts how often a client has used its connection.
#[derive(Debug)]
pub struct Lifetime {
    most: u64,
    used: u64,
}

impl Lifetime {
    /// Creates the count for a client that reconnects after `most` uses. 0 means never.
    pub fn new(most: u64) -> Self {
        Self { most: if most > 0 { most } else { u64::MAX }, used: 0 }
    }

    #[inline]
    pub fn used(&mut self) {
        self.used += 1;
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.used >= self.most
    }

    /// Restarts the count for a new connection.
    pub fn begins(&mut self) {
        self.used = 0;
    }
}

/// Number of helper threads per driving thread.
const AT_ONCE: usize = 8;

/// A requested connection, or the error that prevented it.
pub struct Made {
    pub client: usize,
    pub connection: Result<Carried>,
    /// CPU time spent on opening the connection.
    pub cpu: Cpu,
}

pub struct Reconnector {
    /// Channel that passes requests to the helpers. The value is None when there will be no more requests.
    asked: Option<Sender<usize>>,
    made: Receiver<Made>,
    /// An eventfd that is written to whenever a connection is ready.
    event: Arc<OwnedFd>,
    stop: Arc<AtomicBool>,
    helpers: Vec<JoinHandle<()>>,
}

impl Reconnector {
    /// Starts the helpers and pins them to `cpus`. An empty list means any CPU.
    pub fn new(connect: Connect, clients: usize, cpus: &[usize]) -> Result<Self> {
        let failed = |error: rustix::io::Errno| Error::failure("eventfd", error.to_string());
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed)?);
        let stop = Arc::<AtomicBool>::default();
        let (asked, wishes) = channel();
        let (made, taken) = channel();
        let wishes = Arc::new(Mutex::new(wishes));
        let mut reconnector = Self { asked: Some(asked), made: taken, event, stop, helpers: Vec::new() };
        for number in 0..clients.min(AT_ONCE) {
            let (connect, wishes, made, cpus) = (connect.clone(), wishes.clone(), made.clone(), cpus.to_vec());
            let (event, stop) = (reconnector.event.clone(), reconnector.stop.clone());
            let help = move || {
                bind_thread(&cpus);
                loop {
                    // The lock is released before connecting, so that another helper can wait for the next request.
                    let wish = wishes.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(client) = wish else { return };
                    let before = Cpu::of_thread();
                    let connection = connect(stop.clone());
                    let cpu = Cpu::of_thread().since(before);
                    if made.send(Made { client, connection, cpu }).is_err() {
                        return;
                    }
                    // Writing cannot fail, because the eventfd counter overflows only after 2^64 connections.
                    let _ = rustix::io::write(&*event, &1u64.to_ne_bytes());
                }
            };
            let helper = std::thread::Builder::new().name(format!("connect-{number}")).spawn(help);
            reconnector.helpers.push(helper.map_err(|error| Error::failure("thread", error.to_string()))?);
        }
        Ok(reconnector)
    }

    /// Returns the eventfd, which becomes readable when a connection is ready.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    pub fn ask(&self, client: usize) {
        // Sending cannot fail, because the helpers receive requests until the sender is dropped.
        let _ = self.asked.as_ref().map(|asked| asked.send(client));
    }

    /// Takes a connection that is ready. Returns None if there is none.
    pub fn next(&self) -> Option<Made> {
        self.made.try_recv().ok()
    }
}

impl Drop for Reconnector {
    fn drop(&mut self) {
        self.asked = None;
        self.stop.store(true, Relaxed);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}
