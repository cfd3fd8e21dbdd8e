//! Measures how much longer than declared a round trip through the relay takes on an idle machine.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::preface;
use crate::wire::{Endpoint, RelayAddress};
use crate::{Error, Result};

/// Number of round trips over the direct connection. Through the relay, there are at most as many.
const ROUND_TRIPS: u32 = 200;
/// Approximate duration of the measurement.
const DURATION: Duration = Duration::from_millis(60);
const TIMEOUT: Duration = Duration::from_secs(20);
const PING: [u8; 64] = [7; 64];

/// Returns the median round-trip time through `relay` minus the median round-trip time of a direct connection.
pub fn added_round_trip(relay: &RelayAddress, declared: Duration) -> Result<Duration> {
    measured(relay, declared).map_err(|error| Error::failure("latency relay", format!("cannot be measured: {error}")))
}

fn measured(relay: &RelayAddress, declared: Duration) -> std::io::Result<Duration> {
    let (server, accept) = echo_server(relay.address.starts_with('@'))?;
    thread::scope(|scope| {
        scope.spawn(|| (0..2).try_for_each(|_| echo(accept()?)));
        let direct = server.open_direct(Instant::now() + TIMEOUT)?;
        let direct = median_round_trip(direct, ROUND_TRIPS)?;
        let pings = (DURATION.as_nanos() / declared.as_nanos().max(1)).clamp(5, ROUND_TRIPS.into()) as u32;
        let through = median_round_trip(server.open_through(relay, Instant::now() + TIMEOUT)?, pings)?;
        Ok(through.saturating_sub(direct))
    })
}

/// A function that accepts a connection.
type Accept = Box<dyn Fn() -> std::io::Result<OwnedFd> + Sync>;

/// Opens a server on the same kind of socket as the relay. Returns its address, and a function that accepts a
/// connection.
fn echo_server(unix: bool) -> std::io::Result<(Endpoint, Accept)> {
    if !unix {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        set_accept_timeout(&listener)?;
        let address = Endpoint::Tcp(listener.local_addr()?);
        return Ok((
            address,
            Box::new(move || {
                let client = listener.accept()?.0;
                client.set_nodelay(true)?;
                Ok(client.into())
            }),
        ));
    }
    let name = format!("ironbench-relay-echo-{}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    set_accept_timeout(&listener)?;
    let address = preface::endpoint(format!("@{name}").as_bytes()).ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok((address, Box::new(move || Ok(listener.accept()?.0.into()))))
}

/// Limits the wait for a client (socket(7), SO_RCVTIMEO). The client may have failed to connect.
fn set_accept_timeout(listener: impl AsFd) -> std::io::Result<()> {
    Ok(sockopt::set_socket_timeout(listener, sockopt::Timeout::Recv, Some(TIMEOUT))?)
}

fn echo(client: OwnedFd) -> std::io::Result<()> {
    // A `TcpStream` reads and writes Unix sockets too, because the system calls are the same.
    let mut client = TcpStream::from(client);
    let mut bytes = PING;
    while client.read_exact(&mut bytes).is_ok() {
        client.write_all(&bytes)?;
    }
    Ok(())
}

fn median_round_trip(server: OwnedFd, pings: u32) -> std::io::Result<Duration> {
    let mut server = TcpStream::from(server);
    let mut times = Vec::with_capacity(pings as usize);
    for _ in 0..pings {
        let began = Instant::now();
        server.write_all(&PING)?;
        server.read_exact(&mut PING.clone())?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
