//! Transports, which send and receive the bytes of many clients in one thread.

mod enter;
pub mod epoll;
pub mod null;
mod pool;
pub mod uring;

use std::io;
use std::os::fd::BorrowedFd;

use super::Stream;

/// The input and output of one client.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// Bytes to send. The bytes are cleared before the next message is written.
    pub outbox: Vec<u8>,
    pub inbox: Inbox,
}

impl Mailbox {
    /// Keeps the buffer of a message that has been sent, for the next message.
    fn reuse(&mut self, mut message: Vec<u8>) {
        if self.outbox.capacity() == 0 {
            message.clear();
            self.outbox = message;
        }
    }
}

/// Bytes received and not yet consumed, at the start of `room`.
#[derive(Debug, Default)]
pub struct Inbox {
    room: Vec<u8>,
    filled: usize,
}

/// Initial size of the room. This size fits most replies of short transactions, and grows for longer replies.
const FIRST_ROOM: usize = 2 << 10;
const MAX_GROWTH: usize = 1 << 20;

/// Returns the error for a stream that ended too early.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

impl Inbox {
    /// Creates an inbox that contains bytes already received.
    pub fn with_bytes(bytes: &[u8]) -> Self {
        Self { room: bytes.to_vec(), filled: bytes.len() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.filled]
    }

    /// Removes the first `n` bytes.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        if n < self.filled {
            self.room.copy_within(n..self.filled, 0);
        }
        self.filled -= n;
    }

    /// Returns the space for received bytes, which is never empty. Doubles the buffer when it is full.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.filled == self.room.len() {
            self.grow();
        }
        &mut self.room[self.filled..]
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        while self.room.len() - self.filled < bytes.len() {
            self.grow();
        }
        self.room[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    #[cold]
    fn grow(&mut self) {
        let growth = self.room.len().clamp(FIRST_ROOM, MAX_GROWTH);
        self.room.resize(self.room.len() + growth, 0);
    }

    /// Notes that `n` bytes have been written at the start of `space`.
    #[inline]
    pub fn received(&mut self, n: usize) {
        self.filled += n;
        debug_assert!(self.filled <= self.room.len());
    }
}

/// An event of a waiting client.
#[derive(Debug)]
pub enum Arrival {
    /// More bytes are in the client's inbox.
    Bytes(usize),
    /// The kernel has accepted the message that was sent by `send_without_reply`. The outbox can be filled again.
    Sent(usize),
    /// The engine has closed the connection, or the connection broke.
    Lost(usize, io::Error),
}

/// Sends and receives the messages of a thread's clients `0..n`.
pub trait Transport {
    /// Whether a message is sent immediately. Otherwise it is sent in the next `wait`. If messages are sent
    /// immediately, callers read the clock again for every reply.
    const SENDS_AT_ONCE: bool;
    /// Name of the transport in records.
    const NAME: &'static str;

    fn mailbox(&mut self, client: usize) -> &mut Mailbox;

    /// Sends the outbox and expects a reply.
    fn send(&mut self, client: usize);

    /// Sends the outbox without expecting a reply. `Arrival::Sent` reports when it has been sent.
    fn send_without_reply(&mut self, client: usize);

    /// Whether the last message is still being sent. The caller may already change the outbox, because the transport
    /// has moved the bytes elsewhere.
    fn is_sending(&self, _client: usize) -> bool {
        false
    }

    /// Expects more bytes of the reply.
    fn receive(&mut self, client: usize);

    /// Makes the transport report the loss of a connection on which nothing has been sent yet.
    fn watch_for_loss(&mut self, _client: usize) {}

    /// Waits until something has arrived. If nothing arrives, returns at `until`. `now` is a recent reading of the
    /// clock.
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()>;

    /// Sends the outbox. Does not wait, and expects no reply.
    fn farewell(&mut self, _client: usize) {}

    /// Replaces a client's connection by `_stream`. `_unread` contains the bytes already read from it. No message of
    /// the client may be in flight.
    fn replace(&mut self, _client: usize, _stream: Stream, _unread: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes `wait` also return when this eventfd(2) is written to.
    fn wake_by(&mut self, _event: BorrowedFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns how often a receive had to be restarted because all receive buffers were in use.
    fn rearms(&self) -> u64 {
        0
    }

    /// Returns the next arrival. Returns None if another `wait` is needed.
    fn next(&mut self) -> Option<Arrival>;
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;
    use crate::measure::clock::{self, SECOND};

    #[test]
    fn an_inbox_keeps_what_was_not_consumed_and_grows_when_full() {
        let mut inbox = Inbox::default();
        let first = inbox.space();
        first[..4].copy_from_slice(b"abcd");
        inbox.received(4);
        inbox.consume(3);
        assert_eq!(inbox.bytes(), b"d");
        let room = inbox.space().len();
        assert_eq!(room, FIRST_ROOM - 1);
        inbox.received(room);
        assert!(inbox.space().len() >= FIRST_ROOM);
        assert_eq!(inbox.bytes()[0], b'd');
    }

    /// Overwrites a client's outbox at a time when the server has answered, but has not read the whole message. Returns
    /// what the server reads.
    fn read_after_answering(transport: &mut impl Transport, mut server: UnixStream) -> Vec<u8> {
        const LENGTH: usize = 4 << 20;
        transport.mailbox(0).outbox = vec![b'a'; LENGTH];
        transport.send(0);
        server.write_all(b"x").unwrap();
        let mut answered = false;
        while !answered {
            let now = clock::now();
            transport.wait(now, now + SECOND).unwrap();
            while let Some(arrival) = transport.next() {
                answered |= matches!(arrival, Arrival::Bytes(0));
            }
        }
        assert!(transport.is_sending(0));
        let outbox = &mut transport.mailbox(0).outbox;
        outbox.clear();
        outbox.resize(LENGTH, b'b');
        let reading = thread::spawn(move || {
            let mut read = vec![0; LENGTH];
            server.read_exact(&mut read).unwrap();
            read
        });
        while transport.is_sending(0) {
            let now = clock::now();
            transport.wait(now, now + SECOND / 100).unwrap();
            while transport.next().is_some() {}
        }
        reading.join().unwrap()
    }

    #[test]
    fn a_message_that_is_overwritten_while_it_is_sent_arrives_as_it_was() {
        let pair = || UnixStream::pair().map(|(client, server)| (OwnedFd::from(client), server)).unwrap();
        let (client, server) = pair();
        let mut transport = epoll::Epoll::new(vec![(Stream::Plain(client), Vec::new())]).unwrap();
        assert!(read_after_answering(&mut transport, server).iter().all(|byte| *byte == b'a'));
        let (client, server) = pair();
        // io_uring may be disabled by the kernel or its administrator.
        if let Ok(prepared) = uring::Uring::prepare(1) {
            let mut transport = prepared.carry(vec![(client, Vec::new())]).unwrap();
            assert!(read_after_answering(&mut transport, server).iter().all(|byte| *byte == b'a'));
        }
    }
}
