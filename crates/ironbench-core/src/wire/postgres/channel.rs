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
    protocol::{Framer, Message, Rows, backend::message_size},
};

/// How often `Watch` is asked while the server is silent or busy.
const TICK: Duration = Duration::from_millis(100);
/// Input is read in pieces of this size; a larger message makes the buffer grow.
const READ_SIZE: usize = 64 * 1024;

/// Asked ten times a second while the channel waits; may end the wait with an error.
pub(super) type Watch = Box<dyn FnMut() -> io::Result<()> + Send>;

pub(super) struct Channel {
    pub fd: OwnedFd,
    pub tls: Option<Box<ClientConnection>>,
    /// Messages to send; [`Channel::flush`] sends and clears it.
    pub output: Vec<u8>,
    input: Input,
    framer: Framer,
    /// After this a wait fails with `TimedOut`.
    pub deadline: Option<Instant>,
    pub watch: Option<Watch>,
    watched: Instant,
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

    /// Room for at least `READ_SIZE` and for the whole of the message that has begun to arrive.
    fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let message = message_size(self.unread()).ok().flatten().unwrap_or(0);
        let wanted = (self.end + READ_SIZE).max(message);
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
            watch: None,
            watched: Instant::now(),
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
            data = &data[self.send_some(data)?..];
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
    fn send_some(&mut self, data: &[u8]) -> io::Result<usize> {
        loop {
            match send(&self.fd, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => return Ok(sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // With TLS the reader is in the hands of the caller; its messages wait in the socket.
                    let plain = self.tls.is_none();
                    let wanted = if plain { PollFlags::IN | PollFlags::OUT } else { PollFlags::OUT };
                    let ready = self.wait(wanted)?;
                    if plain && ready.intersects(PollFlags::IN) && self.receive()? == Some(0) {
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
            rest = &rest[self.send_some(rest)?..];
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
        let result = self.receive_tls(&mut tls);
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
            self.pump_out(tls)?;
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

    /// Whether the server has said something: takes what has arrived, without waiting.
    pub fn has_input(&mut self) -> Result<bool, Fault> {
        if self.receive_any()? == Some(0) && self.input.unread().is_empty() {
            return Err(Fault::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(!self.input.unread().is_empty())
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
                // A signal: the watch may want to know at once.
                Err(Errno::INTR) => self.watched -= TICK,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks the watch when it is time, and minds the deadline.
    fn glance(&mut self) -> io::Result<()> {
        let Some(watch) = self.watch.as_mut() else {
            return match self.deadline {
                Some(deadline) if Instant::now() >= deadline => Err(io::ErrorKind::TimedOut.into()),
                _ => Ok(()),
            };
        };
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if now.duration_since(self.watched) >= TICK {
            self.watched = now;
            watch()?;
        }
        Ok(())
    }
}
