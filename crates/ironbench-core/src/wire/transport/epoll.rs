//! The epoll transport, with non-blocking sockets in one epoll instance. This transport works on every Linux and
//! supports TLS.
//!
//! Sockets are registered once, edge-triggered (epoll(7), "Level-triggered and edge-triggered"). A transaction thus
//! costs the calls write, epoll_wait and read, and needs no epoll_ctl.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustls::ClientConnection;

use super::{Arrival, Inbox, Mailbox, Transport};
use crate::measure::clock::SECOND;
use crate::wire::Stream;

enum Socket {
    Plain(OwnedFd),
    Tls(OwnedFd, Box<ClientConnection>),
}

impl From<Stream> for Socket {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Plain(fd) => Self::Plain(fd),
            Stream::Tls { fd, tls } => Self::Tls(fd, tls),
        }
    }
}

/// Marks the event that only ends the wait.
const WAKE: u64 = u64::MAX;

struct Client {
    socket: Socket,
    mailbox: Mailbox,
    /// Number of bytes of the message that have been passed to the socket (or to TLS).
    sent: usize,
    /// Whether the client waits for room in the socket.
    blocked: bool,
    /// The message that is being sent while the client is blocked. The message was moved out of the outbox.
    in_flight: Vec<u8>,
    /// Whether the caller wants `Arrival::Sent` when the whole outbox has been sent.
    shipping: bool,
}

pub struct Epoll {
    epoll: OwnedFd,
    clients: Vec<Client>,
    events: Vec<epoll::Event>,
    next: usize,
    failed: Vec<(usize, io::Error)>,
    message_sent: Vec<usize>,
    /// Clients whose sockets may have more bytes to read. No further event will report these bytes.
    unfinished: Vec<usize>,
    /// The unfinished clients to be read in this round.
    resumed: Vec<usize>,
}

/// Maximum number of bytes read from one client before the others get their turn. The limit is necessary because a
/// server may send faster than the client reads.
const MAX_AT_ONCE: usize = 1 << 20;
/// Maximum number of replies handled between two checks of timers and schedule.
const MAX_EVENTS: usize = 256;
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// Events that mean that the peer has closed the socket, or that the socket failed.
const ENDED: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

impl Epoll {
    /// Takes over each client's socket, with the bytes already read from it.
    pub fn new(streams: Vec<(Stream, Vec<u8>)>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut clients = Vec::with_capacity(streams.len());
        for (id, (stream, unread)) in streams.into_iter().enumerate() {
            clients.push(Client::watched(&epoll, id, stream, &unread)?);
        }
        let events = Vec::with_capacity(MAX_EVENTS.min(clients.len()));
        Ok(Self {
            epoll,
            clients,
            events,
            next: 0,
            failed: Vec::new(),
            message_sent: Vec::new(),
            unfinished: Vec::new(),
            resumed: Vec::new(),
        })
    }

    #[cold]
    fn watch(&mut self, id: usize, flags: EventFlags) {
        let fd = self.clients[id].socket.fd();
        if let Err(error) = epoll::modify(&self.epoll, fd, EventData::new_u64(id as u64), flags) {
            self.failed.push((id, error.into()));
        }
    }

    /// Reads the bytes that have arrived for a client. [`Client::pull`] explains `ended`.
    #[inline]
    fn pull(&mut self, id: usize, ended: bool) -> Option<Arrival> {
        match self.clients[id].pull(ended) {
            Pulled { bytes: 0, error: None } => None,
            Pulled { bytes: 0, error: Some(error) } => Some(Arrival::Lost(id, error)),
            Pulled { bytes, error } => {
                if bytes >= MAX_AT_ONCE && error.is_none() {
                    self.unfinished.push(id);
                }
                // The error is reported later, because the bytes that arrived before it must be read first.
                self.failed.extend(error.map(|error| (id, error)));
                Some(Arrival::Bytes(id))
            }
        }
    }

    /// Sends as much as the socket accepts.
    fn push(&mut self, id: usize) {
        let client = &mut self.clients[id];
        let pushed = client.push();
        if pushed.is_err() {
            client.unblock();
        }
        if matches!(pushed, Ok(true)) && std::mem::take(&mut client.shipping) {
            self.message_sent.push(id);
        }
        match pushed {
            Ok(true) if client.blocked => {
                client.unblock();
                self.watch(id, READABLE);
            }
            Ok(false) if !client.blocked => {
                client.blocked = true;
                client.in_flight = std::mem::take(&mut client.mailbox.outbox);
                self.watch(id, READABLE | EventFlags::OUT);
            }
            Ok(_) => {}
            // The error is not reported here, because the server's last message must still be read. Reading also finds
            // the error.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            Err(error) => self.failed.push((id, error)),
        }
    }
}

impl Transport for Epoll {
    const SENDS_AT_ONCE: bool = true;
    const NAME: &'static str = "epoll";

    #[inline]
    fn mailbox(&mut self, client: usize) -> &mut Mailbox {
        &mut self.clients[client].mailbox
    }

    #[inline]
    fn send(&mut self, client: usize) {
        self.clients[client].sent = 0;
        self.push(client);
    }

    fn send_without_reply(&mut self, client: usize) {
        self.clients[client].sent = 0;
        self.clients[client].shipping = true;
        self.push(client);
    }

    #[inline]
    fn is_sending(&self, client: usize) -> bool {
        self.clients[client].blocked
    }

    fn receive(&mut self, _client: usize) {
        // Nothing has to be done. Every event is handled by reading all bytes, and later events are reported without a
        // request.
    }

    fn farewell(&mut self, client: usize) {
        let client = &mut self.clients[client];
        if client.blocked {
            return;
        }
        client.sent = 0;
        // Errors are ignored, because the session ends anyway.
        let _ = client.push();
    }

    fn replace(&mut self, client: usize, stream: Stream, unread: &[u8]) -> io::Result<()> {
        // Closing the old socket removes it from the epoll instance.
        self.clients[client] = Client::watched(&self.epoll, client, stream, unread)?;
        Ok(())
    }

    fn wake_by(&mut self, event: BorrowedFd) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, event, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?)
    }

    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.events.clear();
        self.next = 0;
        self.resumed.append(&mut self.unfinished);
        if !self.failed.is_empty() {
            return Ok(());
        }
        let left = if self.message_sent.is_empty() && self.resumed.is_empty() { until.saturating_sub(now) } else { 0 };
        let timeout = rustix::event::Timespec { tv_sec: (left / SECOND) as i64, tv_nsec: (left % SECOND) as i64 };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        loop {
            let Some(event) = self.events.get(self.next) else {
                if let Some(client) = self.message_sent.pop() {
                    return Some(Arrival::Sent(client));
                }
                if let Some(client) = self.resumed.pop() {
                    // The event that reported a closed connection may have been consumed before. The end of the
                    // connection must therefore be read here.
                    match self.pull(client, true) {
                        None => continue,
                        arrival => return arrival,
                    }
                }
                return self.failed.pop().map(|(client, error)| Arrival::Lost(client, error));
            };
            let (flags, id) = (event.flags, event.data.u64() as usize);
            self.next += 1;
            if event.data.u64() == WAKE {
                continue;
            }
            if flags.contains(EventFlags::OUT) && self.clients[id].blocked {
                self.push(id);
            }
            let ended = flags.intersects(ENDED);
            match self.pull(id, ended) {
                None => {}
                arrival => return arrival,
            }
        }
    }
}

impl Client {
    fn watched(epoll: &OwnedFd, id: usize, stream: Stream, unread: &[u8]) -> io::Result<Self> {
        let socket = Socket::from(stream);
        rustix::io::ioctl_fionbio(socket.fd(), true)?;
        epoll::add(epoll, socket.fd(), EventData::new_u64(id as u64), READABLE)?;
        let mailbox = Mailbox { inbox: Inbox::with_bytes(unread), ..Mailbox::default() };
        Ok(Self { socket, mailbox, sent: 0, blocked: false, in_flight: Vec::new(), shipping: false })
    }

    /// Gives the buffer back to the outbox. Called when the message was sent or will never be sent.
    fn unblock(&mut self) {
        self.blocked = false;
        self.mailbox.reuse(std::mem::take(&mut self.in_flight));
    }

    /// Sends more bytes of the message. Returns true when the kernel has accepted all of them.
    fn push(&mut self) -> io::Result<bool> {
        let message = if self.blocked { &self.in_flight } else { &self.mailbox.outbox };
        match &mut self.socket {
            Socket::Plain(fd) => {
                while self.sent < message.len() {
                    match rustix::net::send(&*fd, &message[self.sent..], rustix::net::SendFlags::NOSIGNAL) {
                        Ok(n) => self.sent += n,
                        Err(rustix::io::Errno::AGAIN) => return Ok(false),
                        Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(true)
            }
            Socket::Tls(fd, tls) => loop {
                self.sent += tls.writer().write(&message[self.sent..])?;
                while tls.wants_write() {
                    match tls.write_tls(&mut Descriptor(fd)) {
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => return Err(error),
                    }
                }
                if self.sent == message.len() {
                    return Ok(true);
                }
            },
        }
    }

    /// Reads until the socket is empty, or up to [`MAX_AT_ONCE`] bytes. `ended` is true if the peer has closed the
    /// socket. The end must then be read too, because no further event reports it.
    #[inline]
    fn pull(&mut self, ended: bool) -> Pulled {
        let inbox = &mut self.mailbox.inbox;
        let mut bytes = 0;
        loop {
            let space = inbox.space();
            let room = space.len();
            let got = match &mut self.socket {
                Socket::Plain(fd) => rustix::io::read(&*fd, space).map_err(io::Error::from),
                Socket::Tls(fd, tls) => read_tls(fd, tls, space),
            };
            match got {
                Ok(0) => return Pulled { bytes, error: Some(super::closed()) },
                Ok(n) => {
                    inbox.received(n);
                    bytes += n;
                    if bytes >= MAX_AT_ONCE {
                        return Pulled { bytes, error: None };
                    }
                    // If a stream socket returns less than requested, it is empty (epoll(7), question 9).
                    if n < room && !ended && matches!(self.socket, Socket::Plain(_)) {
                        return Pulled { bytes, error: None };
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Pulled { bytes, error: None },
                Err(error) => return Pulled { bytes, error: Some(error) },
            }
        }
    }
}

/// Bytes read from a socket, and the error that ended reading.
struct Pulled {
    bytes: usize,
    error: Option<io::Error>,
}

fn read_tls(fd: &OwnedFd, tls: &mut ClientConnection, space: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(space) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
        if tls.read_tls(&mut Descriptor(fd))? == 0 {
            return Ok(0);
        }
        tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    }
}

impl Socket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(fd) | Self::Tls(fd, _) => fd.as_fd(),
        }
    }
}

/// A socket, with the traits that rustls needs to read and write it.
struct Descriptor<'a>(&'a OwnedFd);

impl Read for Descriptor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, buffer)?)
    }
}

impl Write for Descriptor<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, data, rustix::net::SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
