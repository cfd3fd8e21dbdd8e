//! A relay between clients and a server, which delays everything in both directions, like a network with that latency.
//!
//! Bytes leave the relay in order, half a round trip after they arrived and never earlier. The relay does not limit the
//! bandwidth: any number of bytes may be in flight, up to a memory limit. Opening a connection takes a round trip, as
//! TCP's handshake does. When one side closes or resets its connection, the other side learns of it after the bytes
//! that were sent before.
//!
//! The relay listens on the kind of socket that the server's address has: on loopback or on an abstract Unix socket. A
//! connection through the relay thus differs from a direct one only by the delay and by the relay's CPU time. `preface`
//! describes how a client names the server.

mod delay;
mod forwarder;
mod overhead;
pub(crate) mod preface;
mod wakeup_latency;

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use serde::{Deserialize, Serialize};

use crate::measure::clock;
use crate::measure::cpu::ThreadClock;
use crate::measure::threads::{BackgroundThread, Gate, ThreadSettings, Timing};
use crate::wire::RelayAddress;
use crate::{Error, Result};
use forwarder::Forwarder;
use preface::Token;

/// Maximum number of connections that wait to be accepted. The kernel limits the number further (listen(2)).
const BACKLOG: i32 = 4096;

/// The settings of a relay to start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// Added round-trip time in seconds, half of it in each direction.
    pub round_trip_s: f64,
    /// Name of an abstract Unix socket to listen on. If None, the relay listens on a free port on loopback.
    #[serde(default)]
    pub socket: Option<String>,
    /// Secret that clients must send: 32 hexadecimal digits.
    pub token: String,
    /// Number of threads. Connections are divided among the threads.
    pub threads: usize,
    /// CPUs to which the threads are pinned. An empty list means any CPU.
    #[serde(default)]
    pub cpus: Vec<usize>,
}

/// A running relay. Dropping it closes all connections.
#[derive(Debug)]
pub struct Relay {
    address: String,
    token: String,
    overhead_ns: AtomicU64,
    shared: Arc<Shared>,
    _threads: Vec<BackgroundThread>,
}

/// State of all threads.
#[derive(Debug)]
struct Shared {
    delay_ns: u64,
    is_unix: bool,
    token: Token,
    counters: Vec<ThreadCounters>,
    new_clients: Vec<NewClients>,
    accepted: AtomicUsize,
}

/// New connections for a thread.
#[derive(Debug)]
struct NewClients {
    event: OwnedFd,
    clients: Mutex<Vec<OwnedFd>>,
}

/// Counters of one thread.
#[derive(Debug, Default)]
struct ThreadCounters {
    cpu: OnceLock<ThreadClock>,
    chunks: AtomicU64,
    late_ns: AtomicU64,
    bytes: AtomicU64,
}

/// Counters of the relay.
#[derive(Debug, Serialize)]
pub struct Counters {
    /// Declared round-trip time in seconds.
    pub round_trip_s: f64,
    /// Time in seconds by which a round trip through the relay is longer than declared. See [`Relay::measure`].
    #[serde(rename = "passing_s")]
    pub overhead_s: f64,
    /// Chunks of bytes that were delayed, in both directions.
    #[serde(rename = "pieces")]
    pub chunks: u64,
    /// Total lateness of all chunks, in nanoseconds. A chunk is late if it left after it was due.
    pub late_ns: u64,
    pub bytes: u64,
    /// CPU time of each thread.
    pub cpu_ns: Vec<u64>,
}

impl Shared {
    /// Returns the thread that handles the next connection.
    fn next_thread(&self) -> usize {
        self.accepted.fetch_add(1, Relaxed) % self.counters.len()
    }
}

impl Relay {
    /// Starts a relay, which listens at once.
    pub fn start(config: &RelayConfig) -> Result<Self> {
        let wrong = |cause: &str| Error::input("latency relay", cause);
        let token = preface::token(&config.token).ok_or_else(|| wrong("the token is not 32 hexadecimal digits"))?;
        if !(config.round_trip_s > 0.0 && config.round_trip_s <= 60.0) || config.threads == 0 {
            return Err(wrong("needs a round-trip time above 0, at most 60 s, and at least one thread"));
        }
        let refused = |error: std::io::Error| Error::failure("latency relay", format!("cannot listen: {error}"));
        let (listener, address) = listener(config.socket.as_deref()).map_err(refused)?;
        let shared = Arc::new(Shared {
            // The delay is rounded up, so that no round trip is shorter than declared.
            delay_ns: clock::from_seconds(config.round_trip_s).div_ceil(2),
            is_unix: config.socket.is_some(),
            token,
            counters: (0..config.threads).map(|_| ThreadCounters::default()).collect(),
            new_clients: (0..config.threads).map(|_| NewClients::new()).collect::<Result<_>>()?,
            accepted: AtomicUsize::new(0),
        });
        let (gate, mut listener) = (Arc::new(Gate::default()), Some(listener));
        let threads = (0..config.threads).map(|number| {
            let forwarder = Forwarder::new(Arc::clone(&shared), number, listener.take())?;
            let settings =
                ThreadSettings::new(format!("relay-{number}")).pin_to(&config.cpus).with_timing(Timing::RealTime);
            let shared = Arc::clone(&shared);
            BackgroundThread::start(settings, Arc::clone(&gate), move |gate| {
                if let Some(clock) = ThreadClock::of_thread() {
                    let _ = shared.counters[number].cpu.set(clock);
                }
                forwarder.run(gate)
            })
        });
        let threads = threads.collect::<Result<_>>()?;
        let (token, overhead_ns) = (config.token.clone(), AtomicU64::new(0));
        Ok(Self { address, token, overhead_ns, shared, _threads: threads })
    }

    /// Returns the address at which the relay listens. The address is `127.0.0.1:PORT`, or `@` and the name of the
    /// socket.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Measures by how much a round trip through the idle relay is longer than declared. The lateness of pieces is
    /// subtracted, because it is counted separately. Takes about 60 ms, or five round trips if they take longer.
    pub fn measure(&self) -> Result<()> {
        let address = RelayAddress { address: self.address.clone(), token: self.token.clone() };
        let declared = Duration::from_nanos(2 * self.shared.delay_ns);
        let before = self.counters();
        let excess = overhead::added_round_trip(&address, declared)?.saturating_sub(declared);
        let after = self.counters();
        let late_ns = 2 * (after.late_ns - before.late_ns) / (after.chunks - before.chunks).max(1);
        let overhead_ns = (excess.as_nanos() as u64).saturating_sub(late_ns);
        self.overhead_ns.store(overhead_ns, Relaxed);
        Ok(())
    }

    pub fn counters(&self) -> Counters {
        let sum = |one: fn(&ThreadCounters) -> &AtomicU64| {
            self.shared.counters.iter().map(|tally| one(tally).load(Relaxed)).sum()
        };
        let cpu_ns = |tally: &ThreadCounters| tally.cpu.get().and_then(|clock| clock.read()).unwrap_or_default();
        Counters {
            overhead_s: clock::to_seconds(self.overhead_ns.load(Relaxed)),
            round_trip_s: clock::to_seconds(2 * self.shared.delay_ns),
            chunks: sum(|tally| &tally.chunks),
            late_ns: sum(|tally| &tally.late_ns),
            bytes: sum(|tally| &tally.bytes),
            cpu_ns: self.shared.counters.iter().map(cpu_ns).map(|cpu| cpu.user_ns + cpu.system_ns).collect(),
        }
    }
}

fn listener(socket: Option<&str>) -> std::io::Result<(OwnedFd, String)> {
    if let Some(name) = socket {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&listener, BACKLOG)?;
        return Ok((listener, format!("@{name}")));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?.to_string();
    let listener = OwnedFd::from(listener);
    listen(&listener, BACKLOG)?; // the standard library would use a backlog of 128
    Ok((listener, address))
}

#[cfg(test)]
mod tests;
