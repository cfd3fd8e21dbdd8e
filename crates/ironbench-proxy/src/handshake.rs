//! The start of a connection: the client's request, the connection to the server, and the server's first answer.
//!
//! Each connection starts in its own thread, because these steps may have to wait. The log-in itself is between client
//! and server. The messages of the log-in pass unchanged, with one exception. Some methods of SCRAM (`…-PLUS`) bind the
//! log-in to the TLS channel. The channel that the client sees is not the one that the server sees, so the proxy
//! removes these methods from the server's offer.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironbench_capture::observed::SessionNames;
use ironbench_core::wire::{Stream, UnauthenticatedConnection};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::{ClientConnection, ServerConnection};

use crate::mysql::{Capabilities, MysqlHandshake, MysqlTracker};
use crate::postgres::PostgresTracker;
use crate::socket::Socket;
use crate::{Tracker, WallClock};

/// Time limit for the client's first message. PostgreSQL allows 60 s for the whole log-in (authentication_timeout).
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of the client's first message (MAX_STARTUP_PACKET_LENGTH in PostgreSQL).
const LONGEST_STARTUP: usize = 10_000;
/// Maximum length of the server's first message.
const LONGEST_ANSWER: usize = 64 << 10;
/// Length of the shortest first message.
const SHORTEST: usize = 8;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;
/// First byte of a TLS handshake. A client that sends it as its first byte starts TLS directly.
const TLS_HANDSHAKE: u8 = 0x16;

/// How connections start in each protocol.
pub enum Handshake {
    Postgres(PostgresHandshake),
    Mysql(MysqlHandshake),
}

impl Handshake {
    /// Starts the connection of a client. Returns None if the connection has already ended, for example after a cancel
    /// request.
    pub fn begin(&self, client: OwnedFd) -> io::Result<Option<StartedConnection>> {
        match self {
            Self::Postgres(handshake) => handshake.begin(client),
            Self::Mysql(handshake) => handshake.begin(client),
        }
    }
}

pub struct PostgresHandshake {
    /// TLS for clients. With None, clients connect without TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether clients connect over a Unix socket. Only ironbench's own user may use the socket.
    pub is_unix: bool,
    pub connect: Box<dyn Fn() -> ironbench_core::Result<UnauthenticatedConnection<()>> + Send + Sync>,
}

/// A connection whose bytes can be passed on.
pub struct StartedConnection {
    pub client: Socket,
    pub server: Socket,
    /// The server's first messages, which the client has not received yet.
    pub answer: Vec<u8>,
    /// Information about the session, or None if the connection has no statements, as for replication.
    pub session: Option<Session>,
}

/// Information about a session at its start.
pub enum Session {
    Postgres(SessionNames),
    Mysql(SessionNames, Capabilities),
}

impl Session {
    pub fn tracker(self, session: u32, clock: WallClock) -> Box<dyn Tracker> {
        match self {
            Self::Postgres(names) => Box::new(PostgresTracker::new(session, names, clock)),
            Self::Mysql(names, capabilities) => Box::new(MysqlTracker::new(session, names, capabilities, clock)),
        }
    }
}

impl PostgresHandshake {
    fn begin(&self, client: OwnedFd) -> io::Result<Option<StartedConnection>> {
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        let mut client = Client { fd: client, tls: None, deadline };
        let startup = loop {
            let first = client.startup(self.tls.as_ref())?;
            match first.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes) {
                Some(SSL_REQUEST) if self.tls.is_some() && client.tls.is_none() => {
                    client.write_all(b"S")?;
                    client.start_tls(self.tls.as_ref())?;
                }
                Some(SSL_REQUEST | GSS_REQUEST) => client.write_all(b"N")?,
                _ => break first,
            }
        };
        let server = match (self.connect)() {
            Ok(server) => server,
            Err(error) => return client.refuse("08001", &format!("the proxy cannot connect: {error}")),
        };
        let UnauthenticatedConnection { stream, carries_passwords, is_unix, .. } = server;
        let mut server = Server { stream, deadline };
        server.write_all(&startup)?;
        if startup[4..8] == CANCEL_REQUEST.to_be_bytes() {
            // The server closes the connection when it has handled the request. Clients wait for this, so the proxy
            // does too.
            let _ = server.read(&mut [0]);
            return Ok(None);
        }
        let (names, has_statements) = names(&startup);
        let is_tls = matches!(server.stream, Stream::Tls { .. });
        let mut answer = Vec::new();
        let method = server.first_answer(&mut answer)?;
        match method {
            Some(0) if is_unix && !self.is_unix => {
                return client.refuse(
                    "28000",
                    "the server accepts the proxy's own user without a password, and every local user can reach the \
                     proxy: let the proxy listen on a Unix socket, or name the server's TCP address in --to",
                );
            }
            Some(3) if !carries_passwords => {
                return client.refuse(
                    "28000",
                    "the server asks for the password itself, which would be sent over a connection that is not \
                     trusted: add sslmode=verify-full to the DSN of --to",
                );
            }
            Some(10) if is_tls => remove_channel_binding(&mut answer),
            _ => {}
        }
        let session = has_statements.then_some(Session::Postgres(names));
        Ok(Some(StartedConnection { client: client.into(), server: server.stream.into(), answer, session }))
    }
}

/// The client's side of a connection that starts.
pub struct Client {
    pub fd: OwnedFd,
    pub tls: Option<Box<ServerConnection>>,
    pub deadline: Instant,
}

impl From<Client> for Socket {
    fn from(client: Client) -> Self {
        match client.tls {
            None => Self::plain(client.fd),
            Some(tls) => Self::of_client(client.fd, *tls),
        }
    }
}

impl Client {
    /// Reads the first message, which begins with its length.
    fn startup(&mut self, tls: Option<&Arc<rustls::ServerConfig>>) -> io::Result<Vec<u8>> {
        if self.tls.is_none() && tls.is_some() && self.peek()? == TLS_HANDSHAKE {
            self.start_tls(tls)?;
        }
        let mut head = [0; 4];
        self.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head) as usize;
        if !(SHORTEST..=LONGEST_STARTUP).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut message = vec![0; length];
        message[..4].copy_from_slice(&head);
        self.read_exact(&mut message[4..])?;
        Ok(message)
    }

    fn peek(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        loop {
            match recv(&self.fd, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(byte[0]),
                Err(Errno::AGAIN) => wait(&self.fd, PollFlags::IN, self.deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn start_tls(&mut self, config: Option<&Arc<rustls::ServerConfig>>) -> io::Result<()> {
        let config = config.ok_or(io::ErrorKind::InvalidData)?;
        let mut tls = Box::new(ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?);
        let mut plain = Plain { fd: &self.fd, deadline: self.deadline };
        while tls.is_handshaking() {
            tls.complete_io(&mut plain)?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// Sends an error as PostgreSQL's server does, and ends the connection.
    fn refuse<T>(mut self, code: &str, message: &str) -> io::Result<Option<T>> {
        let mut body = Vec::new();
        for (field, text) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', message)] {
            body.push(field);
            body.extend(text.bytes().filter(|byte| *byte != 0));
            body.push(0);
        }
        body.push(0);
        let mut error = vec![b'E'];
        error.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        error.extend_from_slice(&body);
        self.write_all(&error)?;
        Ok(None)
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut plain = Plain { fd: &self.fd, deadline: self.deadline };
        match &mut self.tls {
            None => plain.read(buffer),
            Some(tls) => rustls::Stream::new(&mut **tls, &mut plain).read(buffer),
        }
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = Plain { fd: &self.fd, deadline: self.deadline };
        match &mut self.tls {
            None => plain.write(bytes),
            Some(tls) => {
                let mut stream = rustls::Stream::new(&mut **tls, &mut plain);
                let count = stream.write(bytes)?;
                stream.flush()?;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The server's side of a connection that starts.
pub struct Server {
    pub stream: Stream,
    pub deadline: Instant,
}

impl Server {
    /// Starts TLS on a connection that has none.
    pub fn start_tls(self, tls: ClientConnection) -> io::Result<Self> {
        let Stream::Plain(fd) = self.stream else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut tls = Box::new(tls);
        let mut plain = Plain { fd: &fd, deadline: self.deadline };
        while tls.is_handshaking() {
            tls.complete_io(&mut plain)?;
        }
        Ok(Self { stream: Stream::Tls { fd, tls }, ..self })
    }

    /// Reads messages up to the first one that decides about the log-in. Returns the method of authentication. Returns
    /// None if the message is an error.
    fn first_answer(&mut self, answer: &mut Vec<u8>) -> io::Result<Option<u32>> {
        loop {
            let start = answer.len();
            answer.resize(start + 5, 0);
            self.read_exact(&mut answer[start..])?;
            let head: [u8; 5] = answer[start..].try_into().map_err(io::Error::other)?;
            let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let body = usize::try_from(i64::from(length) - 4).unwrap_or(usize::MAX);
            if body > LONGEST_ANSWER || start > LONGEST_ANSWER {
                return Err(io::ErrorKind::InvalidData.into());
            }
            answer.resize(start + 5 + body, 0);
            self.read_exact(&mut answer[start + 5..])?;
            match head[0] {
                b'R' => return Ok(answer[start + 5..].first_chunk().map(|method| u32::from_be_bytes(*method))),
                b'E' => return Ok(None),
                _ => {}
            }
        }
    }
}

impl Read for Server {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(fd) => Plain { fd, deadline: self.deadline }.read(buffer),
            Stream::Tls { fd, tls } => {
                rustls::Stream::new(&mut **tls, &mut Plain { fd, deadline: self.deadline }).read(buffer)
            }
        }
    }
}

impl Write for Server {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(fd) => Plain { fd, deadline: self.deadline }.write(bytes),
            Stream::Tls { fd, tls } => {
                let mut plain = Plain { fd, deadline: self.deadline };
                let mut stream = rustls::Stream::new(&mut **tls, &mut plain);
                let count = stream.write(bytes)?;
                stream.flush()?;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket whose reads and writes wait until a deadline.
struct Plain<'a> {
    fd: &'a OwnedFd,
    deadline: Instant,
}

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(count),
                Err(Errno::AGAIN) => wait(self.fd, PollFlags::IN, self.deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => wait(self.fd, PollFlags::OUT, self.deadline)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn wait(fd: &OwnedFd, events: PollFlags, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let timeout = left.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::from_borrowed_fd(fd.as_fd(), events)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the names in the startup message, and whether the connection has statements.
fn names(startup: &[u8]) -> (SessionNames, bool) {
    let (mut names, mut has_statements) = (SessionNames::default(), true);
    let mut words = startup[8..].split(|byte| *byte == 0);
    while let (Some(name), Some(value)) = (words.next().filter(|name| !name.is_empty()), words.next()) {
        match name {
            b"user" => names.user = value.to_vec(),
            b"database" => names.database = value.to_vec(),
            b"application_name" => names.application = value.to_vec(),
            b"replication" => has_statements = matches!(value, b"false" | b"off" | b"no" | b"0" | b"f" | b"n"),
            _ => {}
        }
    }
    if names.database.is_empty() {
        names.database = names.user.clone();
    }
    (names, has_statements)
}

/// Removes the methods with channel binding from the AuthenticationSASL at the end of `answer`.
fn remove_channel_binding(answer: &mut Vec<u8>) {
    let mut start = 0;
    while answer[start] != b'R' {
        start += 1 + u32::from_be_bytes([answer[start + 1], answer[start + 2], answer[start + 3], answer[start + 4]])
            as usize;
    }
    let methods: Vec<&[u8]> = answer[start + 9..]
        .split(|byte| *byte == 0)
        .filter(|method| !method.is_empty() && !method.ends_with(b"-PLUS"))
        .collect();
    let mut body = 10_u32.to_be_bytes().to_vec();
    for method in methods {
        body.extend_from_slice(method);
        body.push(0);
    }
    body.push(0);
    answer.truncate(start + 1);
    answer.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    answer.extend_from_slice(&body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_startup_names_user_database_and_application() {
        let startup = |pairs: &[u8]| [b"\0\0\0\0\0\x03\0\0", pairs].concat();
        let (known, has_statements) = names(&startup(b"user\0ann\0application_name\0shop\0\0"));
        assert_eq!(
            (&known.user[..], &known.database[..], &known.application[..]),
            (&b"ann"[..], &b"ann"[..], &b"shop"[..])
        );
        assert!(has_statements);
        assert!(!names(&startup(b"user\0ann\0replication\0database\0\0")).1);
        names(&startup(b""));
        names(&startup(b"user"));
    }

    #[test]
    fn only_methods_with_channel_binding_are_removed() {
        let before = b"v\0\0\0\x0c\0\0\0\0\0\0\0\0";
        let offered = b"R\0\0\0\x2a\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let mut answer = [&before[..], offered].concat();
        remove_channel_binding(&mut answer);
        assert_eq!(answer, [&before[..], b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"].concat());
    }
}
