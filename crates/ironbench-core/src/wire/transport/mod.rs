//! How bytes of many clients travel through one thread.

mod enter;
pub mod epoll;
pub mod null;
mod pool;
pub mod uring;

use std::io;
use std::os::fd::BorrowedFd;

use super::Stream;

/// One client's bytes, in both directions.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// What is to be sent; emptied by whoever writes the next message.
    pub outbox: Vec<u8>,
    pub inbox: Inbox,
}

impl Mailbox {
    /// Takes back the room of a message that has left.
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

/// Most replies of short transactions fit; a longer one makes room for itself.
const FIRST_ROOM: usize = 2 << 10;
const MOST_GROWTH: usize = 1 << 20;

/// The end of a stream that should have gone on.
pub(crate) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

impl Inbox {
    /// Begins with bytes that have been received before.
    pub fn holding(bytes: &[u8]) -> Self {
        Self { room: bytes.to_vec(), filled: bytes.len() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.filled]
    }

    /// Drops the first `n` bytes.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        if n < self.filled {
            self.room.copy_within(n..self.filled, 0);
        }
        self.filled -= n;
    }

    /// Where to receive: never empty. Doubles when full.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.filled == self.room.len() {
            self.grow();
        }
        &mut self.room[self.filled..]
    }

    /// Takes a copy of `bytes`.
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
        let growth = self.room.len().clamp(FIRST_ROOM, MOST_GROWTH);
        self.room.resize(self.room.len() + growth, 0);
    }

    /// `n` bytes have been written at the start of `space`.
    #[inline]
    pub fn received(&mut self, n: usize) {
        self.filled += n;
        debug_assert!(self.filled <= self.room.len());
    }
}

/// What became of a client that was waiting.
#[derive(Debug)]
pub enum Arrival {
    /// There is more in the client's inbox.
    Bytes(usize),
    /// What `ship` was given has left for the kernel; the outbox may be written anew.
    Shipped(usize),
    /// The engine has closed the connection, or it broke.
    Lost(usize, io::Error),
}

/// Carries the messages of the clients `0..n` of one thread.
pub trait Transport {
    /// Sending takes time at once, rather than in the next `wait`: the clock is read again for every reply.
    const SENDS_AT_ONCE: bool;
    /// As the record says it.
    const NAME: &'static str;

    fn mailbox(&mut self, client: usize) -> &mut Mailbox;

    /// Sends the outbox and expects a reply.
    fn send(&mut self, client: usize);

    /// Sends the outbox of a stream that nobody answers; `Arrival::Shipped` tells when it has left.
    fn ship(&mut self, client: usize);

    /// The last message has not left yet. Its bytes are the transport's own by then, whatever becomes of the outbox.
    fn is_sending(&self, _client: usize) -> bool {
        false
    }

    /// Expects more of the reply.
    fn receive(&mut self, client: usize);

    /// From now on a lost connection is told of, though nothing has been sent on it yet.
    fn watch_for_loss(&mut self, _client: usize) {}

    /// Returns when something has arrived, at `until` at the latest (not before `until` when nothing has). `now` is a
    /// recent reading of the clock.
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()>;

    /// Sends the outbox without waiting and without expecting an answer.
    fn farewell(&mut self, _client: usize) {}

    /// Puts a new connection in the place of a client's old one, with the bytes that have been read from it already. No
    /// message of the client is under way.
    fn replace(&mut self, _client: usize, _stream: Stream, _unread: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// From now on `wait` also returns when this descriptor, of an eventfd(2), is written to.
    fn wake_by(&mut self, _event: BorrowedFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How often receiving had to be started again because all receive buffers were in use.
    fn rearms(&self) -> u64 {
        0
    }

    /// What has arrived; `None` when another `wait` is needed.
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

    /// A message of a client is overwritten because its server answers before it has read it; what that server reads.
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
        // Where the kernel or its administrator allows io_uring.
        if let Ok(prepared) = uring::Uring::prepare(1) {
            let mut transport = prepared.carry(vec![(client, Vec::new())]).unwrap();
            assert!(read_after_answering(&mut transport, server).iter().all(|byte| *byte == b'a'));
        }
    }
}
