//! Addresses of servers, and functions that open a socket to an address.

use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
        sockopt,
    },
};

use super::{connection::RelayAddress, interrupt::Interrupt, pipe::TICK};
use crate::relay::preface::{self, ANSWER_BYTES};
use crate::{Error, Result};

/// Returns the instant `seconds` from now, at most an hour ahead.
pub(super) fn deadline_after(seconds: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of a Unix socket. A path that starts with `@` is the name of an abstract socket (unix(7)).
    Unix(PathBuf),
    Tcp {
        host: String,
        port: u16,
    },
}

impl Address {
    pub fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Resolves the name into socket addresses. A Unix socket has exactly one address.
    pub(super) fn resolve(&self) -> Result<Vec<Endpoint>> {
        match self {
            Self::Unix(path) => {
                let abstract_name = path.as_os_str().as_bytes().strip_prefix(b"@");
                let address = match abstract_name {
                    Some(name) => SocketAddrUnix::new_abstract_name(name),
                    None => SocketAddrUnix::new(path.as_path()),
                };
                let address = address.map_err(|_| {
                    Error::input(
                        format!("socket {}", path.display()),
                        "the path is longer than the system allows for a socket (107 bytes)",
                    )
                    .hint("use a directory with a shorter path")
                })?;
                Ok(vec![Endpoint::Unix(address)])
            }
            Self::Tcp { host, port } => {
                let unknown = |cause: String| {
                    Error::input(format!("host {host}"), cause).hint("check the spelling of the host in the DSN")
                };
                let found = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|error| unknown(format!("the name cannot be resolved: {error}")))?;
                let found: Vec<_> = found.map(Endpoint::Tcp).collect();
                if found.is_empty() { Err(unknown("the name has no address".to_owned())) } else { Ok(found) }
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// A resolved socket address.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
}

impl Endpoint {
    /// Whether the traffic stays on this machine: a Unix socket or loopback.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }

    /// Opens a connected socket in blocking mode. A TCP socket has `TCP_NODELAY`. If `relay` is given, the connection
    /// goes through that relay. Errors are still reported as on a direct connection.
    pub(super) fn open(
        &self,
        relay: Option<&RelayAddress>,
        deadline: Instant,
        mut interrupt: Option<&mut Interrupt>,
    ) -> io::Result<OwnedFd> {
        let Some(relay) = relay else { return self.reach(deadline, interrupt) };
        let gone = |why: String| io::Error::other(format!("the relay that adds latency cannot be used: {why}"));
        let known = preface::endpoint(relay.address.as_bytes()).zip(preface::token(&relay.token));
        let (place, token) = known.ok_or_else(|| gone(format!("{} is no address", relay.address)))?;
        let fd = match place.reach(deadline, interrupt.as_deref_mut()) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(gone("it has ended".into())),
            reached => reached?,
        };
        // The few bytes fit into the buffer of a new socket, so sending does not wait.
        send(&fd, &preface::encode(&token, self), SendFlags::NOSIGNAL)?;
        let (mut answer, mut filled) = ([0; ANSWER_BYTES], 0);
        while filled < ANSWER_BYTES {
            wait(&fd, PollFlags::IN, deadline, interrupt.as_deref_mut())?;
            match recv(&fd, &mut answer[filled..], RecvFlags::DONTWAIT)? {
                (0, _) => return Err(gone("it has closed the connection".into())),
                (count, _) => filled += count,
            }
        }
        match i32::from_le_bytes(answer) {
            0 => Ok(fd),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }

    pub(crate) fn open_through(&self, relay: &RelayAddress, deadline: Instant) -> io::Result<OwnedFd> {
        self.open(Some(relay), deadline, None)
    }

    pub(crate) fn open_direct(&self, deadline: Instant) -> io::Result<OwnedFd> {
        self.open(None, deadline, None)
    }

    fn reach(&self, deadline: Instant, interrupt: Option<&mut Interrupt>) -> io::Result<OwnedFd> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match self {
            Self::Unix(address) => {
                let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
                // If the backlog is full, connect blocks. The send timeout limits the time of blocking (unix(7)).
                sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(left))?;
                match connect(&fd, address) {
                    Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                    result => result?,
                }
                sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, None)?;
                Ok(fd)
            }
            Self::Tcp(_) => {
                let (fd, is_connected) = self.begin()?;
                if !is_connected {
                    wait(&fd, PollFlags::OUT, deadline, interrupt)?;
                    sockopt::socket_error(&fd)??;
                }
                rustix::io::ioctl_fionbio(&fd, false)?;
                Ok(fd)
            }
        }
    }

    /// Opens a socket in nonblocking mode and starts to connect it. A TCP socket has `TCP_NODELAY` and keepalive.
    /// Returns whether the socket is connected already. A Unix socket with a full backlog returns the error `AGAIN`.
    pub(crate) fn begin(&self) -> rustix::io::Result<(OwnedFd, bool)> {
        let family = match self {
            Self::Unix(_) => AddressFamily::UNIX,
            Self::Tcp(address) if address.is_ipv6() => AddressFamily::INET6,
            Self::Tcp(_) => AddressFamily::INET,
        };
        let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        let done = match self {
            Self::Unix(address) => connect(&fd, address),
            Self::Tcp(address) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                sockopt::set_socket_keepalive(&fd, true)?;
                connect(&fd, address)
            }
        };
        match done {
            Err(Errno::INPROGRESS | Errno::INTR) => Ok((fd, false)),
            done => done.map(|()| (fd, true)),
        }
    }
}

/// Waits until a socket is ready.
fn wait(fd: &OwnedFd, ready: PollFlags, deadline: Instant, mut interrupt: Option<&mut Interrupt>) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Some(interrupt) = interrupt.as_deref_mut() {
            interrupt.check()?;
        }
        let timeout = left.min(TICK).try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::from_borrowed_fd(fd.as_fd(), ready)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
