//! A blocking byte stream over a plain or TLS socket. A protocol cuts its messages from this stream.
//!
//! Only `poll` waits, always for both directions. Otherwise a client that writes a COPY and a server that sends notices
//! could wait for each other forever. Socket calls use `MSG_DONTWAIT`, so it does not matter whether the descriptor is
//! in blocking mode.

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

use super::{fault::Broken, interrupt::Interrupt};

/// Interval at which a wait checks for an interrupt while the server is silent or busy.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Size of the pieces in which input is read. The buffer for a larger message grows as its bytes arrive. It does not
/// grow when the server announces a length, because that length may be false.
const READ_SIZE: usize = 64 * 1024;

/// Maximum number of bytes that may arrive while a message is being sent. These bytes are mostly notices. Without a
/// limit, a server that sends without reading could fill the memory.
const MAX_WHILE_SENDING: usize = 16 << 20;
const LARGEST_PIECE: usize = 1 << 20;

/// The socket of a session.
#[derive(Debug)]
pub enum Stream {
    /// A plain socket in blocking mode, with `TCP_NODELAY` for TCP.
    Plain(OwnedFd),
    /// A TLS session after its handshake, with nothing left to write. The owner moves the bytes.
    /// To read: `read_tls` from the socket, `process_new_packets`, `reader()`.
    /// To write: `writer()`, `write_tls` to the socket.
    Tls { fd: OwnedFd, tls: Box<ClientConnection> },
}

impl Stream {
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls { .. })
    }
}

pub struct Pipe {
    pub fd: OwnedFd,
    pub tls: Option<Box<ClientConnection>>,
    /// Messages to send. [`Pipe::flush`] sends and clears them.
    pub output: Vec<u8>,
    pub input: Input,
    /// The instant after which waits fail with `TimedOut`.
    pub deadline: Option<Instant>,
    pub interrupt: Option<Interrupt>,
    last_check: Instant,
}

/// Received bytes, of which `start..end` are not consumed yet.
#[derive(Default)]
pub struct Input {
    pub bytes: Vec<u8>,
    pub start: usize,
    pub end: usize,
}

impl Input {
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns free space of at least `READ_SIZE` bytes. If a part of a message has arrived, the free space is at least
    /// as large as that part.
    fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = (self.end + READ_SIZE).max(2 * self.end);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl Pipe {
    pub fn new(fd: OwnedFd, deadline: Option<Instant>) -> Self {
        Self {
            fd,
            tls: None,
            output: Vec::new(),
            input: Input::default(),
            deadline,
            interrupt: None,
            last_check: Instant::now(),
        }
    }

    /// Continues a stream from which `unread` has already been read.
    pub fn resume(stream: Stream, unread: Vec<u8>) -> Self {
        let (fd, tls) = match stream {
            Stream::Plain(fd) => (fd, None),
            Stream::Tls { fd, tls } => (fd, Some(tls)),
        };
        let mut pipe = Self::new(fd, None);
        pipe.tls = tls;
        pipe.input = Input { start: 0, end: unread.len(), bytes: unread };
        pipe
    }

    /// Returns the stream, so that another owner can continue it.
    pub fn into_stream(self) -> Stream {
        match self.tls {
            None => Stream::Plain(self.fd),
            Some(tls) => Stream::Tls { fd: self.fd, tls },
        }
    }

    /// Returns the bytes that have arrived and are not consumed.
    pub fn unread(&self) -> &[u8] {
        self.input.unread()
    }

    /// Reads the one-byte answer to SSLRequest, and no further byte. The next byte belongs to TLS. Injected plain text
    /// is therefore not taken for a message (CVE-2021-23222).
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

    /// Performs the TLS handshake.
    pub fn start_tls(&mut self, client: ClientConnection) -> Result<(), Broken> {
        let mut client = Box::new(client);
        while client.is_handshaking() {
            self.pump_out(&mut client)?;
            if client.wants_read() {
                self.wait(PollFlags::IN)?;
                if self.pump_in(&mut client)? == Some(0) {
                    return Err(Broken::Io(io::ErrorKind::UnexpectedEof.into()));
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
            // rustls buffers up to 64 KiB of plain text. The rest waits until the socket accepts more.
            let taken = tls.writer().write(data)?;
            data = &data[taken..];
            self.pump_out(tls)?;
        }
        Ok(())
    }

    /// Waits until the socket accepts bytes, and sends as many as it accepts. Bytes that arrive during the wait are
    /// read.
    fn send_some(&mut self, data: &[u8], mut tls: Option<&mut ClientConnection>) -> io::Result<usize> {
        loop {
            match send(&self.fd, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    if let Some(interrupt) = self.interrupt.as_mut() {
                        interrupt.note_received(); // a hung server accepts only what fits into the socket buffers
                    }
                    return Ok(sent);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::IN | PollFlags::OUT)?.intersects(PollFlags::IN) {
                        continue;
                    }
                    let read = match tls.as_deref_mut() {
                        None => self.receive()?,
                        Some(tls) => self.receive_tls(tls).map_err(Broken::into_io)?,
                    };
                    if read == Some(0) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    if self.unread().len() > MAX_WHILE_SENDING {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "the server sends data without reading any",
                        ));
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

    /// Reads and decrypts the TLS records that have arrived. `Some(0)` means that the server closed the connection.
    fn pump_in(&mut self, tls: &mut ClientConnection) -> Result<Option<usize>, Broken> {
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
            // Sends the TLS alert, which tells the server the reason.
            let _ = self.pump_out(tls);
            return Err(Broken::Tls(error));
        }
        Ok(read)
    }

    /// Reads the bytes that have arrived on a plain socket, without waiting. `Some(0)` means that the server closed the
    /// connection.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        // A fast server can send the next piece while this one is copied.
        let room = self.input.room();
        let most = room.len().min(LARGEST_PIECE);
        match recv(&self.fd, &mut room[..most], RecvFlags::DONTWAIT) {
            Ok((read, _)) => {
                self.input.end += read;
                Ok(Some(read))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the bytes that have arrived, without waiting. `Some(0)` means that the server closed the connection.
    pub fn receive_any(&mut self) -> Result<Option<usize>, Broken> {
        let received = self.receive_now()?;
        if let (Some(_), Some(interrupt)) = (received, self.interrupt.as_mut()) {
            interrupt.note_received();
        }
        Ok(received)
    }

    fn receive_now(&mut self) -> Result<Option<usize>, Broken> {
        let Some(mut tls) = self.tls.take() else {
            return Ok(self.receive()?);
        };
        // TLS may need to send something on its own, such as the answer to a key update.
        let result =
            self.receive_tls(&mut tls).and_then(|read| self.pump_out(&mut tls).map(|()| read).map_err(Broken::Io));
        self.tls = Some(tls);
        result
    }

    fn receive_tls(&mut self, tls: &mut ClientConnection) -> Result<Option<usize>, Broken> {
        loop {
            match tls.reader().read(self.input.room()) {
                Ok(read) => {
                    self.input.end += read;
                    return Ok(Some(read));
                }
                // No complete TLS record has arrived yet.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The connection was closed without TLS's close_notify, as PostgreSQL does when it crashes.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
            if self.pump_in(tls)?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Waits for more bytes of a message. The end of the stream is an error here.
    pub fn more(&mut self) -> Result<(), Broken> {
        match self.receive_any()? {
            Some(0) => Err(Broken::Io(io::ErrorKind::UnexpectedEof.into())),
            Some(_) => Ok(self.check_limits()?),
            None => Ok(self.wait(PollFlags::IN).map(|_| ())?),
        }
    }

    /// Waits until the socket is ready for one of `events`.
    pub fn wait(&mut self, events: PollFlags) -> io::Result<PollFlags> {
        loop {
            self.check_limits()?;
            let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), events)];
            let timeout = TICK.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => {}
                Ok(_) => return Ok(fds[0].revents()),
                // A signal may mean that the caller wants to stop. The check is therefore due now, and not only at the
                // next tick.
                Err(Errno::INTR) => self.last_check -= TICK,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a wait failed because its deadline had passed.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Checks the deadline and, at most once per tick, the interrupt.
    fn check_limits(&mut self) -> io::Result<()> {
        if self.deadline.is_none() && self.interrupt.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Some(interrupt) = self.interrupt.as_mut()
            && now.duration_since(self.last_check) >= TICK
        {
            self.last_check = now;
            interrupt.check()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    #[test]
    fn a_server_that_sends_and_does_not_read_is_left_before_the_memory_is_full() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let flood = thread::spawn(move || while server.write_all(&[0; 1 << 16]).is_ok() {});
        let mut pipe = Pipe::new(client.into(), None);
        let error = pipe.write_all(&vec![0; 4 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(pipe.unread().len() <= MAX_WHILE_SENDING + (1 << 20));
        drop(pipe);
        flood.join().unwrap();
    }
}
