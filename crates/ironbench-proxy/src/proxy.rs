//! Starts and ends a proxy.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ironbench_capture::observed::{Collector, Dialect, RecordBatch};
use ironbench_core::wire::mysql::Mysql;
use ironbench_core::wire::postgres::Postgres;
use ironbench_core::wire::{Connector, MysqlConnection, PostgresConnection};
use ironbench_core::{Error, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, listen, sockopt};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde::{Deserialize, Serialize};

use crate::WallClock;
use crate::forwarder::{Forwarder, Inbox};
use crate::handshake::{Handshake, PostgresHandshake};
use crate::mysql::MysqlHandshake;
use crate::queue::Queue;

/// Maximum number of connections that wait to be accepted. The kernel limits the number further (listen(2)).
const BACKLOG: i32 = 4096;
/// Maximum number of connections that start at the same time.
const MAX_OPENING: usize = 256;
/// Memory for statements that are not stored yet.
const QUEUE_BYTES: usize = 128 << 20;
/// Interval at which the accepting thread checks whether it must end.
const TICK: Duration = Duration::from_millis(100);
/// Time to wait if a connection could not be accepted because no descriptor was free.
const PAUSE: Duration = Duration::from_millis(10);
const STACK_BYTES: usize = 256 << 10;

/// The settings of a proxy to start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub listen: Listen,
    pub server: Target,
    /// PEM files of the certificate and the key for clients. With None, clients connect without TLS.
    #[serde(default)]
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Number of threads. The connections are divided among them.
    pub threads: usize,
    pub mask: bool,
}

/// The server to which the proxy connects its clients. Each protocol has its own settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Postgres(PostgresConnection),
    Mysql(MysqlConnection),
}

/// Where the proxy listens.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listen {
    /// Address and port. With port 0, the kernel chooses a free port.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// State of all threads.
pub(crate) struct Shared {
    pub clock: WallClock,
    pub queue: Queue,
    pub inboxes: Vec<Inbox>,
    /// Number of open connections.
    pub open: AtomicUsize,
    /// Number of connections that use messages that the proxy does not know. The statements of these connections are
    /// not captured.
    pub unfollowed: AtomicU64,
    handshake: Handshake,
    sessions: AtomicU32,
    starting: AtomicUsize,
    stopped: AtomicBool,
}

impl Shared {
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
}

/// Counters of the proxy.
#[derive(Debug, Serialize)]
pub struct Counters {
    /// Number of open connections.
    pub open: usize,
    /// Number of connections so far. Cancel requests and refused connections do not count.
    pub sessions: u32,
    /// Number of statements that were dropped, because they could not be stored in time.
    pub lost: u64,
    pub unfollowed: u64,
}

/// A running proxy. Dropping it closes all connections.
pub struct Proxy {
    address: String,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<Result<()>>>>,
    collector: Mutex<Collector>,
    socket: Option<PathBuf>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Proxy {
    /// Starts a proxy, which listens immediately.
    ///
    /// # Errors
    /// Input: the address, a certificate or the settings of the server cannot be used.
    pub fn start(order: Order) -> Result<Self> {
        let alpn = match order.server {
            Target::Postgres(_) => vec![b"postgresql".to_vec()],
            Target::Mysql(_) => Vec::new(),
        };
        let tls = order.tls.map(|(certificate, key)| server_config(&certificate, &key, alpn)).transpose()?;
        let is_unix = matches!(order.listen, Listen::Unix(_));
        let (handshake, dialect) = match order.server {
            Target::Postgres(server) => {
                let connector = Connector::<Postgres>::new(server)?;
                let connect = Box::new(move || connector.open_only());
                (Handshake::Postgres(PostgresHandshake { tls, is_unix, connect }), Dialect::Postgres)
            }
            Target::Mysql(server) => {
                if server.socket.is_some() && !is_unix {
                    let cause = "names a Unix socket, whose server may accept the proxy's own user without a password";
                    let hint = "let the proxy listen on a Unix socket, or name the server's TCP address in --to";
                    return Err(Error::input("--to", cause).hint(hint));
                }
                let connector = Connector::<Mysql>::new(server)?;
                (Handshake::Mysql(MysqlHandshake { tls, connector }), Dialect::Mysql)
            }
        };
        let collector = Collector::new(order.mask, dialect)?;
        let (listener, address, socket) = listener(&order.listen)?;
        let shared = Arc::new(Shared {
            clock: WallClock::new(),
            queue: Queue::new(QUEUE_BYTES),
            inboxes: (0..order.threads.max(1)).map(|_| Inbox::new()).collect::<Result<_>>()?,
            open: AtomicUsize::new(0),
            unfollowed: AtomicU64::new(0),
            handshake,
            sessions: AtomicU32::new(0),
            starting: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let proxy = Self { address, shared, threads: Mutex::default(), collector: Mutex::new(collector), socket };
        let mut threads = proxy.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for number in 0..proxy.shared.inboxes.len() {
            let forwarder = Forwarder::new(Arc::clone(&proxy.shared), number)?;
            threads.push(started(format!("proxy-{number}"), move || forwarder.run())?);
        }
        let shared = Arc::clone(&proxy.shared);
        threads.push(started("proxy-accept".to_owned(), move || accept(&shared, &listener))?);
        drop(threads);
        Ok(proxy)
    }

    /// Returns the address at which the proxy listens: `127.0.0.1:PORT`, or the path of its socket.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn counters(&self) -> Counters {
        let Shared { open, sessions, queue, unfollowed, .. } = &*self.shared;
        Counters {
            open: open.load(Relaxed),
            sessions: sessions.load(Relaxed),
            lost: queue.lost.load(Relaxed),
            unfollowed: unfollowed.load(Relaxed),
        }
    }

    /// Waits at most `most` for statements. Returns a batch of them, or None if there are none yet. Also returns
    /// whether more may follow.
    pub fn take(&self, most: Duration) -> (Option<RecordBatch>, bool) {
        let mut collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + most;
        loop {
            let (events, more) = self.shared.queue.take();
            for event in events {
                collector.add(event);
            }
            if !more || collector.is_full() || Instant::now() >= until {
                return (collector.batch(), more);
            }
        }
    }

    /// Notes that a batch of `take` could not be stored. Returns the transactions that are incomplete, because an
    /// earlier batch contains some of their statements.
    pub fn lose(&self, batch: &RecordBatch) -> Vec<u64> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).lose(batch)
    }

    /// Closes all connections, and ends the queue.
    ///
    /// # Errors
    /// Failure: a thread has failed.
    pub fn stop(&self) -> Result<()> {
        self.shared.stopped.store(true, Relaxed);
        self.shared.inboxes.iter().for_each(Inbox::wake);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut ended = Ok(());
        for thread in threads {
            let panicked = |_| Err(Error::failure("proxy", "a thread panicked"));
            ended = ended.and(thread.join().unwrap_or_else(panicked));
        }
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path); // somebody may have removed it already
        }
        self.shared.queue.end();
        ended
    }

    /// Returns whether all threads are running.
    pub fn is_running(&self) -> bool {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().all(|thread| !thread.is_finished())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn started(name: String, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<JoinHandle<Result<()>>> {
    let refused = |error: std::io::Error| Error::failure("proxy", format!("a thread cannot be started: {error}"));
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(work).map_err(refused)
}

fn listener(listen_on: &Listen) -> Result<(Listener, String, Option<PathBuf>)> {
    match listen_on {
        Listen::Tcp(address) => {
            let refused = |error: std::io::Error| {
                Error::input(format!("--listen {address}"), format!("cannot listen: {error}"))
                    .hint("use a free port, for example --listen 127.0.0.1:6432")
            };
            if !is_loopback(address.ip()) {
                let cause = "is not an address of loopback, so other machines could connect";
                return Err(Error::input(format!("--listen {address}"), cause)
                    .hint("use --listen 127.0.0.1:6432, and run the proxy on the machine of the application"));
            }
            let listener = TcpListener::bind(address).map_err(refused)?;
            listener.set_nonblocking(true).map_err(refused)?;
            let _ = listen(&listener, BACKLOG); // the standard library asks for 128
            let bound = listener.local_addr().map_err(refused)?;
            Ok((Listener::Tcp(listener), bound.to_string(), None))
        }
        Listen::Unix(path) => {
            let shown = path.display().to_string();
            let refused = |error: std::io::Error| {
                Error::input(format!("--listen {shown}"), format!("cannot listen: {error}"))
                    .hint("use a path that does not exist, in a directory that does, of at most 107 bytes")
            };
            remove_stale(path);
            let listener = UnixListener::bind(path).map_err(refused)?;
            // A server may identify the clients of its Unix socket by their user. Behind the proxy, this is ironbench's
            // user, so no other user may connect to the proxy.
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(refused)?;
            listener.set_nonblocking(true).map_err(refused)?;
            let _ = listen(&listener, BACKLOG);
            Ok((Listener::Unix(listener), shown, Some(path.clone())))
        }
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Removes a socket on which no process listens. A proxy that was killed leaves such a socket.
fn remove_stale(path: &Path) {
    if let Err(error) = UnixStream::connect(path)
        && error.kind() == std::io::ErrorKind::ConnectionRefused
        && std::fs::metadata(path).is_ok_and(|known| std::os::unix::fs::FileTypeExt::is_socket(&known.file_type()))
    {
        let _ = std::fs::remove_file(path);
    }
}

/// `alpn`: names of the protocol in TLS.
fn server_config(certificate: &Path, key: &Path, alpn: Vec<Vec<u8>>) -> Result<Arc<rustls::ServerConfig>> {
    let unusable = |option: &str, path: &Path, cause: String| {
        Error::input(format!("{option} {}", path.display()), cause).hint("use PEM files, with an unencrypted key")
    };
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unusable("--tls-cert", certificate, format!("cannot be read: {error}")))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| unusable("--tls-key", key, format!("cannot be read: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::failure("TLS", error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| unusable("--tls-cert", certificate, format!("cannot be used: {error}")))?;
    config.alpn_protocols = alpn;
    Ok(Arc::new(config))
}

/// Accepts connections until the proxy is stopped.
fn accept(shared: &Arc<Shared>, listener: &Listener) -> Result<()> {
    let fd = match listener {
        Listener::Tcp(listener) => listener.as_fd(),
        Listener::Unix(listener) => listener.as_fd(),
    };
    let tick = TICK.try_into().expect("a tick is a valid time");
    while !shared.is_stopped() {
        if shared.starting.load(Relaxed) >= MAX_OPENING {
            thread::sleep(PAUSE);
            continue;
        }
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&tick));
        match accept_with(fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(client) => open(shared, client, matches!(listener, Listener::Tcp(_))),
            Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => {}
            // No descriptor is free until another connection ends.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => thread::sleep(PAUSE),
            Err(error) => return Err(Error::failure("proxy", format!("accept: {error}"))),
        }
    }
    Ok(())
}

/// Starts a connection in a new thread. The thread ends when bytes can be passed on.
fn open(shared: &Arc<Shared>, client: OwnedFd, is_tcp: bool) {
    if is_tcp && sockopt::set_tcp_nodelay(&client, true).is_err() {
        return;
    }
    shared.starting.fetch_add(1, Relaxed);
    let sharing = Arc::clone(shared);
    let begin = move || {
        let shared = sharing;
        // An error means that the client or the server has disconnected, or has sent an invalid message.
        if let Ok(Some(begun)) = shared.handshake.begin(client) {
            let session = shared.sessions.fetch_add(1, Relaxed) + 1;
            shared.open.fetch_add(1, Relaxed);
            shared.inboxes[session as usize % shared.inboxes.len()].push(session, begun);
        }
        shared.starting.fetch_sub(1, Relaxed);
        Ok(())
    };
    if started("proxy-handshake".to_owned(), begin).is_err() {
        shared.starting.fetch_sub(1, Relaxed);
    }
}
