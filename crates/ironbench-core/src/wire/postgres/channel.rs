//! A blocking stream of protocol messages over a plain or TLS socket.
//!
//! Waiting is done in `poll` alone, for both directions at once: a server that talks while we write (notices during a
//! COPY) must not leave both sides waiting for the other. All calls on the socket say `MSG_DONTWAIT`, so the
//! descriptor's own mode does not matter.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};
use rustls::ClientConnection;

use super::{
    fault::Fault,
    interrupt::Interrupt,
    protocol::{Framer, Message, Rows, framing::message_size},
};

/// How often an interrupt is looked for while the server is silent or busy.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Input is read in pieces of this size. A larger message makes the buffer grow as its bytes arrive, and not before: what a
/// server announces costs nothing.
const READ_SIZE: usize = 64 * 1024;

pub(super) struct Channel {
    pub fd: OwnedFd,
    pub tls: Option<Box<ClientConnection>>,
    /// Messages to send; [`Channel::flush`] sends and clears it.
    pub output: Vec<u8>,
    input: Input,
    framer: Framer,
    /// After this a wait fails with `TimedOut`.
    pub deadline: Option<Instant>,
    pub interrupt: Option<Interrupt>,
    glanced: Instant,
}

/// Bytes that have arrived: `start..end` of `bytes` are not taken yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Room for at least `READ_SIZE` and for as much again as has arrived of a message, up to the whole of it.
    fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let message = message_size(self.unread()).ok().flatten().unwrap_or(0);
        let wanted = (self.end + READ_SIZE).max(message.min(2 * self.end));
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl Channel {
    pub fn new(fd: OwnedFd, deadline: Option<Instant>) -> Self {
        Self {
            fd,
            tls: None,
            output: Vec::new(),
            input: Input::default(),
            framer: Framer::new(),
            deadline,
            interrupt: None,
            glanced: Instant::now(),
        }
    }

    /// Goes on where a `Connected` stopped.
    pub fn resume(fd: OwnedFd, tls: Option<Box<ClientConnection>>, unread: Vec<u8>) -> Self {
        let mut channel = Self::new(fd, None);
        channel.tls = tls;
        channel.input = Input { start: 0, end: unread.len(), bytes: unread };
        channel
    }

    /// Bytes that arrived and were not taken.
    pub fn unread(&self) -> &[u8] {
        self.input.unread()
    }

    /// The one byte that answers SSLRequest. Not a byte more is read: what follows belongs to TLS, and plain text
    /// slipped in behind the answer must not be taken for a message (CVE-2021-23222).
    pub fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        loop {
            match recv(&self.fd, &mut byte[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(byte[0]),
                Err(Errno::AGAIN) => drop(self.wait(PollFlags::IN)?),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Wraps the stream in TLS and shakes hands.
    pub fn start_tls(&mut self, client: ClientConnection) -> Result<(), Fault> {
        let mut client = Box::new(client);
        while client.is_handshaking() {
            self.pump_out(&mut client)?;
            if client.wants_read() {
                self.wait(PollFlags::IN)?;
                if self.pump_in(&mut client)? == Some(0) {
                    return Err(Fault::Io(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
        self.pump_out(&mut client)?;
        self.tls = Some(client);
        Ok(())
    }

    /// Sends `output`.
    pub fn flush(&mut self) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        let result = self.write_all(&output);
        self.output = output;
        self.output.clear();
        result
    }

    pub fn write_all(&mut self, mut data: &[u8]) -> io::Result<()> {
        if let Some(mut tls) = self.tls.take() {
            let result = self.write_tls(&mut tls, data);
            self.tls = Some(tls);
            return result;
        }
        while !data.is_empty() {
            data = &data[self.send_some(data, None)?..];
        }
        Ok(())
    }

    fn write_tls(&mut self, tls: &mut ClientConnection, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            // rustls buffers up to 64 KiB of plain text; what it does not take waits for the socket.
            let taken = tls.writer().write(data)?;
            data = &data[taken..];
            self.pump_out(tls)?;
        }
        Ok(())
    }

    /// Sends what the socket takes, waiting until it takes something. Meanwhile arriving bytes are read.
    fn send_some(&mut self, data: &[u8], mut tls: Option<&mut ClientConnection>) -> io::Result<usize> {
        loop {
            match send(&self.fd, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => return Ok(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::IN | PollFlags::OUT)?.intersects(PollFlags::IN) {
                        continue;
                    }
                    let read = match tls.as_deref_mut() {
                        None => self.receive()?,
                        Some(tls) => self.receive_tls(tls).map_err(Fault::into_io)?,
                    };
                    if read == Some(0) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn pump_out(&mut self, tls: &mut ClientConnection) -> io::Result<()> {
        let mut sealed = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut sealed)?;
        }
        let mut rest = &sealed[..];
        while !rest.is_empty() {
            rest = &rest[self.send_some(rest, Some(tls))?..];
        }
        Ok(())
    }

    /// Reads sealed bytes if there are any, and opens them. `Some(0)`: the server closed the connection.
    fn pump_in(&mut self, tls: &mut ClientConnection) -> Result<Option<usize>, Fault> {
        struct Socket<'a>(&'a OwnedFd);
        impl Read for Socket<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(recv(self.0, buffer, RecvFlags::DONTWAIT)?.0)
            }
        }
        let read = match tls.read_tls(&mut Socket(&self.fd)) {
            Ok(read) => Some(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = tls.process_new_packets() {
            // The alert tells the server why.
            let _ = self.pump_out(tls);
            return Err(Fault::Tls(error));
        }
        Ok(read)
    }

    /// Reads what has arrived on a plain socket, without waiting. `Some(0)`: the server closed the connection.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        match recv(&self.fd, self.input.room(), RecvFlags::DONTWAIT) {
            Ok((read, _)) => {
                self.input.end += read;
                Ok(Some(read))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what has arrived, without waiting. `Some(0)`: the server closed the connection.
    fn receive_any(&mut self) -> Result<Option<usize>, Fault> {
        let Some(mut tls) = self.tls.take() else {
            return Ok(self.receive()?);
        };
        // TLS may have something to say of its own, such as the answer to a change of keys.
        let result =
            self.receive_tls(&mut tls).and_then(|read| self.pump_out(&mut tls).map(|()| read).map_err(Fault::Io));
        self.tls = Some(tls);
        result
    }

    fn receive_tls(&mut self, tls: &mut ClientConnection) -> Result<Option<usize>, Fault> {
        loop {
            match tls.reader().read(self.input.room()) {
                Ok(read) => {
                    self.input.end += read;
                    return Ok(Some(read));
                }
                // Nothing opened yet.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Closed without TLS's goodbye, as PostgreSQL does when it dies.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
            if self.pump_in(tls)?.is_none() {
                return Ok(None);
            }
        }
    }

    /// The next message, waiting for it.
    pub fn next(&mut self, rows: Rows) -> Result<Message<'_>, Fault> {
        loop {
            if let Some((tag, from, to)) = self.take(rows)? {
                return Ok(Message { tag, body: &self.input.bytes[from..to] });
            }
            match self.receive_any()? {
                Some(0) => return Err(Fault::Io(io::ErrorKind::UnexpectedEof.into())),
                Some(_) => self.glance()?,
                None => drop(self.wait(PollFlags::IN)?),
            }
        }
    }

    /// The tag of the next message if all of it has arrived, without taking it and without waiting.
    pub fn peek(&mut self) -> Result<Option<u8>, Fault> {
        if let Some(tag) = self.whole()? {
            return Ok(Some(tag));
        }
        let closed = self.receive_any()? == Some(0);
        match self.whole()? {
            None if closed => Err(Fault::Io(io::ErrorKind::UnexpectedEof.into())),
            found => Ok(found),
        }
    }

    /// The tag of the next message, waiting for all of it, without taking it.
    pub fn wait_peek(&mut self) -> Result<u8, Fault> {
        loop {
            match self.peek()? {
                Some(tag) => return Ok(tag),
                None => drop(self.wait(PollFlags::IN)?),
            }
        }
    }

    fn whole(&self) -> Result<Option<u8>, Fault> {
        let unread = self.input.unread();
        Ok(message_size(unread)?.filter(|&size| size <= unread.len()).map(|_| unread[0]))
    }

    /// A message that has arrived: its tag and where its body lies in the input.
    fn take(&mut self, rows: Rows) -> Result<Option<(u8, usize, usize)>, Fault> {
        let mut unread = &self.input.bytes[self.input.start..self.input.end];
        let found = self.framer.next(&mut unread, rows)?.map(|message| (message.tag, message.body.len()));
        self.input.start = self.input.end - unread.len();
        Ok(found.map(|(tag, length)| (tag, self.input.start - length, self.input.start)))
    }

    /// Waits until the socket is ready for one of `events`.
    fn wait(&mut self, events: PollFlags) -> io::Result<PollFlags> {
        loop {
            self.glance()?;
            let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), events)];
            let timeout = TICK.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => {}
                Ok(_) => return Ok(fds[0].revents()),
                // A signal, which may be the wish to end this: do not wait for the next tick.
                Err(Errno::INTR) => self.glanced -= TICK,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Minds the deadline and, when it is time, the interrupt.
    fn glance(&mut self) -> io::Result<()> {
        if self.deadline.is_none() && self.interrupt.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Some(interrupt) = self.interrupt.as_mut()
            && now.duration_since(self.glanced) >= TICK
        {
            self.glanced = now;
            interrupt.check()?;
        }
        Ok(())
    }
}
