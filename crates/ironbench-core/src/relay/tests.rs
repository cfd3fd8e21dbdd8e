use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::testing::Folder;
use crate::wire::{Endpoint, RelayAddress};

const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// Starts a relay for servers on Unix sockets or TCP.
fn relay(round_trip_s: f64, unix: bool, threads: usize) -> Relay {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let socket = unix.then(|| format!("ironbench-test-{}-{number}", std::process::id()));
    Relay::start(&RelayConfig { round_trip_s, socket, token: TOKEN.to_owned(), threads, cpus: Vec::new() }).unwrap()
}

fn address_of(relay: &Relay) -> RelayAddress {
    RelayAddress { address: relay.address().to_owned(), token: TOKEN.to_owned() }
}

fn through(relay: &Relay, server: &Endpoint) -> std::io::Result<TcpStream> {
    let deadline = Instant::now() + Duration::from_secs(20);
    // A `TcpStream` reads and writes Unix sockets too, because the system calls are the same.
    server.open_through(&address_of(relay), deadline).map(TcpStream::from)
}

/// Starts a server on TCP that handles one connection after the other in threads.
fn tcp_server(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> Endpoint {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    listen(&listener, BACKLOG).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, serve) = (client.unwrap(), serve.clone());
            client.set_nodelay(true).unwrap();
            thread::spawn(move || serve(client));
        }
    });
    Endpoint::Tcp(address)
}

fn echo(mut client: impl Read + Write) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        client.write_all(&bytes[..count]).unwrap();
    }
}

fn unix_server(folder: &Folder, serve: impl Fn(UnixStream) + Clone + Send + 'static) -> Endpoint {
    let path = folder.0.join("s");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, serve) = (client.unwrap(), serve.clone());
            thread::spawn(move || serve(client));
        }
    });
    Endpoint::Unix(SocketAddrUnix::new(path).unwrap())
}

fn exchanged(client: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    client.write_all(bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    client.read_exact(&mut back).unwrap();
    back
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn all_bytes_arrive_in_order_in_both_directions(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..3000), 1..30),
        large in 0usize..400_000,
        unix in any::<bool>(),
    ) {
        let folder = Folder::new();
        let server = if unix { unix_server(&folder, echo) } else { tcp_server(echo) };
        let relay = relay(0.000_2, unix, 2);
        let mut client = through(&relay, &server).unwrap();
        let mut sent: Vec<u8> = chunks.concat();
        sent.extend((0..large).map(|number| (number % 251) as u8));
        let mut writer = client.try_clone().unwrap();
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                for chunk in &chunks {
                    writer.write_all(chunk).unwrap();
                }
                writer.write_all(&sent[sent.len() - large..]).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut received = Vec::new();
            client.read_to_end(&mut received).unwrap();
            received
        });
        prop_assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    }
}

#[test]
fn every_round_trip_takes_at_least_the_declared_time() {
    let folder = Folder::new();
    for (unix, round_trip_s) in [(true, 0.000_05), (true, 0.002), (false, 0.000_2), (false, 0.02)] {
        let server = if unix { unix_server(&folder, echo) } else { tcp_server(echo) };
        let relay = relay(round_trip_s, unix, 1);
        let least = Duration::from_secs_f64(round_trip_s);
        let began = Instant::now();
        let mut client = through(&relay, &server).unwrap();
        assert!(began.elapsed() >= least, "a handshake takes a round trip");
        let mut fastest = Duration::MAX;
        for number in 0..50u8 {
            let began = Instant::now();
            assert_eq!(exchanged(&mut client, &[number; 10]), [number; 10]);
            assert!(began.elapsed() >= least, "{:?} < {least:?}", began.elapsed());
            fastest = fastest.min(began.elapsed());
        }
        assert!(fastest < least + Duration::from_millis(1), "{fastest:?}");
        let counters = relay.counters();
        assert_eq!((counters.chunks, counters.bytes), (101, 50 * 20 + 4));
        assert!(counters.cpu_ns[0] > 0);
        relay.measure().unwrap();
        assert!((0.0..0.05).contains(&relay.counters().overhead_s), "{}", relay.counters().overhead_s);
        let _ = std::fs::remove_file(folder.0.join("s"));
    }
}

/// The client is connected after one round trip. The last packet of the handshake and the greeting take another one.
#[test]
fn a_greeting_arrives_two_round_trips_after_the_start() {
    let server = tcp_server(|mut client| client.write_all(b"hello").unwrap());
    let relay = relay(0.05, false, 1);
    let began = Instant::now();
    let mut client = through(&relay, &server).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(50));
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).unwrap();
    assert!(&greeting == b"hello" && began.elapsed() >= Duration::from_millis(100));
}

#[test]
fn delay_does_not_limit_throughput() {
    let server = tcp_server(|mut client| {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        client.write_all(&(bytes.len() as u64).to_le_bytes()).unwrap();
    });
    let relay = relay(0.2, false, 1);
    let mut client = through(&relay, &server).unwrap();
    let began = Instant::now();
    let block = vec![7; 1 << 20];
    for _ in 0..48 {
        client.write_all(&block).unwrap();
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut count = [0; 8];
    client.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_le_bytes(count), 48 << 20);
    // If only 1 MiB could be in flight, the transfer would take 4.8 s.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_receiver_that_does_not_read_stops_its_sender() {
    let (pass, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let server = tcp_server(move |mut client| {
        gate.lock().unwrap().recv().unwrap();
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        client.write_all(&(bytes.len() as u64).to_le_bytes()).unwrap();
    });
    let relay = relay(0.000_1, false, 1);
    let mut client = through(&relay, &server).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let block = vec![7; 1 << 20];
    let mut sent = 0u64;
    while let Ok(count) = client.write(&block) {
        sent += count as u64;
        assert!(sent < 512 << 20, "the relay accepts any number of bytes");
    }
    pass.send(()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut count = [0; 8];
    client.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_le_bytes(count), sent);
}

#[test]
fn after_the_end_of_one_direction_the_other_continues() {
    let folder = Folder::new();
    let answer = |mut client: UnixStream| {
        let mut request = String::new();
        client.read_to_string(&mut request).unwrap();
        client.write_all(format!("{request}!").as_bytes()).unwrap();
    };
    let server = unix_server(&folder, answer);
    let relay = relay(0.001, true, 1);
    let mut client = through(&relay, &server).unwrap();
    client.write_all(b"request").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    assert_eq!(reply, "request!");
}

#[test]
fn a_reset_follows_the_bytes_before_it() {
    let server = tcp_server(|mut client| {
        client.write_all(b"FATAL").unwrap();
        thread::sleep(Duration::from_millis(20));
        reset_at_close(&client);
    });
    let relay = relay(0.02, false, 1);
    let mut client = through(&relay, &server).unwrap();
    let mut last = [0; 5];
    client.read_exact(&mut last).unwrap();
    assert_eq!(&last, b"FATAL");
    assert_eq!(client.read(&mut last).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Sets a socket so that closing it resets the connection.
fn reset_at_close(client: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(client, Some(Duration::ZERO)).unwrap();
}

#[test]
fn the_reset_of_a_client_reaches_the_server() {
    let (told, heard) = std::sync::mpsc::channel();
    let server = tcp_server(move |mut client| {
        let mut bytes = [0; 9];
        let first = client.read(&mut bytes).unwrap();
        told.send((first, client.read(&mut bytes).map_err(|error| error.kind()))).unwrap();
    });
    let relay = relay(0.02, false, 1);
    let mut client = through(&relay, &server).unwrap();
    client.write_all(b"bye").unwrap();
    thread::sleep(Duration::from_millis(5));
    reset_at_close(&client);
    drop(client);
    assert_eq!(heard.recv().unwrap(), (3, Err(ErrorKind::ConnectionReset)));
}

#[test]
fn a_server_that_cannot_be_reached_is_reported_as_without_a_relay() {
    let unused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let relay_tcp = relay(0.03, false, 1);
    let began = Instant::now();
    let refused = through(&relay_tcp, &Endpoint::Tcp(unused)).unwrap_err();
    assert!(refused.kind() == ErrorKind::ConnectionRefused && began.elapsed() >= Duration::from_millis(30));
    let missing = Endpoint::Unix(SocketAddrUnix::new("/nowhere/s").unwrap());
    assert_eq!(through(&relay(0.001, true, 1), &missing).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn without_the_token_nothing_is_relayed() {
    let server = tcp_server(echo);
    let relay = relay(0.001, false, 1);
    let wrong = RelayAddress { token: TOKEN.replace('f', "e"), ..address_of(&relay) };
    let deadline = Instant::now() + Duration::from_secs(5);
    let error = server.open_through(&wrong, deadline).unwrap_err();
    assert!(error.to_string().contains("closed the connection"), "{error}");
    let mut stranger = TcpStream::connect(relay.address().parse::<SocketAddr>().unwrap()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(matches!(stranger.read(&mut [0; 9]), Ok(0) | Err(_)));
}

#[test]
fn a_relay_that_has_ended_is_named_as_the_cause() {
    let server = tcp_server(echo);
    let relay = relay(0.001, false, 1);
    let address = address_of(&relay);
    drop(relay);
    let error = server.open_through(&address, Instant::now() + Duration::from_secs(5)).unwrap_err();
    assert!(error.to_string().contains("relay that adds latency"), "{error}");
}

#[test]
fn a_thousand_connections_are_relayed_at_once() {
    let raised = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: raised.maximum, ..raised };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, most).unwrap();
    let server = tcp_server(echo);
    let relay = relay(0.01, false, 2);
    let mut clients: Vec<_> = thread::scope(|scope| {
        let openers: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| (0..100).map(|_| through(&relay, &server).unwrap()).collect::<Vec<_>>()))
            .collect();
        openers.into_iter().flat_map(|opener| opener.join().unwrap()).collect()
    });
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&(number as u32).to_le_bytes()).unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let mut back = [0; 4];
        client.read_exact(&mut back).unwrap();
        assert_eq!(u32::from_le_bytes(back), number as u32);
    }
}
