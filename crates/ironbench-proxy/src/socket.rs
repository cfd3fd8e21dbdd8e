//! A nonblocking socket, plain or with TLS.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use ironbench_core::wire::Stream;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustls::Connection;

#[derive(Debug)]
pub struct Socket {
    pub fd: OwnedFd,
    tls: Option<Box<Connection>>,
}

impl From<Stream> for Socket {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Plain(fd) => Self::plain(fd),
            Stream::Tls { fd, tls } => Self { fd, tls: Some(Box::new(Connection::Client(*tls))) },
        }
    }
}

/// A socket as source and sink of TLS records.
struct Records<'a>(&'a OwnedFd);

impl Read for Records<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, buffer, RecvFlags::DONTWAIT)?.0)
    }
}

impl Write for Records<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    pub fn plain(fd: OwnedFd) -> Self {
        Self { fd, tls: None }
    }

    /// Returns the socket of a client whose TLS handshake is over.
    pub fn of_client(fd: OwnedFd, tls: rustls::ServerConnection) -> Self {
        Self { fd, tls: Some(Box::new(Connection::Server(tls))) }
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads bytes that have arrived. Returns 0 at the end of the stream. Returns the error `WouldBlock` if no bytes
    /// have arrived.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            loop {
                match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                    Err(Errno::INTR) => {}
                    other => return Ok(other?.0),
                }
            }
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer closed the connection without TLS's close_notify, as PostgreSQL does when it crashes.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            let read = tls.read_tls(&mut Records(&self.fd))?;
            let processed = tls.process_new_packets().map_err(io::Error::other);
            // The TLS session may have something to send: an answer to a key update, or an alert that tells the peer
            // why it failed.
            while tls.wants_write() && tls.write_tls(&mut Records(&self.fd)).is_ok() {}
            processed?;
            if read == 0 {
                return Ok(0);
            }
        }
    }

    /// Sends bytes, and returns how many were accepted. Returns 0 if the socket is full.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            loop {
                match send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                    Ok(count) => return Ok(count),
                    Err(Errno::AGAIN) => return Ok(0),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let count = tls.writer().write(bytes)?;
        self.flush()?;
        Ok(count)
    }

    /// Sends TLS records that the socket has not accepted yet. Returns whether all are sent.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut Records(&self.fd)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether TLS has records that the socket has not accepted yet.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Tells the peer that no more bytes follow.
    pub fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.flush();
        }
        let _ = shutdown(&self.fd, Shutdown::Write); // a peer that is gone needs no end
    }
}
