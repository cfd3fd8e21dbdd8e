//! Opens new connections for the clients of a driving thread. Connecting takes several round trips. Helper threads do
//! it, so that the other clients are not delayed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use super::parallel_connect::ClientConnection;
use crate::measure::cpu::{CpuTime, pin_thread};
use crate::{Error, Result};

/// A function that opens a connection. The function fails soon after the flag is set.
pub type Connect = Arc<dyn Fn(Arc<AtomicBool>) -> Result<ClientConnection> + Send + Sync>;

/// Counts how often a client has used its connection.
#[derive(Debug)]
pub struct Lifetime {
    max_uses: u64,
    uses: u64,
}

impl Lifetime {
    /// Creates the count for a client that reconnects after `max_uses` uses. 0 means never.
    pub fn new(max_uses: u64) -> Self {
        Self { max_uses: if max_uses > 0 { max_uses } else { u64::MAX }, uses: 0 }
    }

    #[inline]
    pub fn count_use(&mut self) {
        self.uses += 1;
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.uses >= self.max_uses
    }

    /// Restarts the count for a new connection.
    pub fn restart(&mut self) {
        self.uses = 0;
    }
}

/// Number of helper threads per driving thread.
const HELPERS: usize = 8;

/// A requested connection, or the error that prevented it.
pub struct NewConnection {
    pub client: usize,
    pub connection: Result<ClientConnection>,
    /// CPU time spent on opening the connection.
    pub cpu: CpuTime,
}

pub struct Reconnector {
    /// Channel that passes requests to the helpers. The value is None when there will be no more requests.
    requests: Option<Sender<usize>>,
    ready: Receiver<NewConnection>,
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
        let (requests, wishes) = channel();
        let (ready, taken) = channel();
        let wishes = Arc::new(Mutex::new(wishes));
        let mut reconnector = Self { requests: Some(requests), ready: taken, event, stop, helpers: Vec::new() };
        for number in 0..clients.min(HELPERS) {
            let (connect, wishes, ready, cpus) = (connect.clone(), wishes.clone(), ready.clone(), cpus.to_vec());
            let (event, stop) = (reconnector.event.clone(), reconnector.stop.clone());
            let help = move || {
                pin_thread(&cpus);
                loop {
                    // The lock is released before connecting, so that another helper can wait for the next request.
                    let wish = wishes.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(client) = wish else { return };
                    let before = CpuTime::of_thread();
                    let connection = connect(stop.clone());
                    let cpu = CpuTime::of_thread().since(before);
                    if ready.send(NewConnection { client, connection, cpu }).is_err() {
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

    pub fn request(&self, client: usize) {
        // Sending cannot fail, because the helpers receive requests until the sender is dropped.
        let _ = self.requests.as_ref().map(|requests| requests.send(client));
    }

    /// Takes a connection that is ready. Returns None if there is none.
    pub fn next(&self) -> Option<NewConnection> {
        self.ready.try_recv().ok()
    }
}

impl Drop for Reconnector {
    fn drop(&mut self) {
        self.requests = None;
        self.stop.store(true, Relaxed);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}
