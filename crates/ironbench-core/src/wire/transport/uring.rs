//! The io_uring transport, with one ring per thread. A round of the loop is one system call, however many clients it
//! serves.
//!
//! Every client has one multishot receive, which is armed for the whole trial. The receive gets a buffer when something
//! arrives. A message takes one entry of the submission queue: a send without a completion event. Sends and receives
//! are independent, so client and server cannot block each other over a long message.
//!
//! Only this thread submits entries (`IORING_SETUP_SINGLE_ISSUER`). Completions are processed only while the thread
//! waits (`IORING_SETUP_DEFER_TASKRUN`, Linux 6.1). With an older kernel, epoll is used. Sources: io_uring_setup(2),
//! io_uring_enter(2), io_uring_prep_recv_multishot(3).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, Fixed, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::enter::Enter;
use super::pool::{GROUP, Pool};
use super::{Arrival, Inbox, Mailbox, Transport};
use crate::wire::Stream;

/// Number of entries of the submission queue. If more clients send in one round, their entries are submitted in parts.
const MAX_ENTRIES: u32 = 4096;
/// Maximum length of a message that is sent without a completion event. A longer message may have to wait for room in
/// the socket, so its completion is awaited.
const LONGEST_SILENT: usize = 2 << 10;
/// Time limit for the kernel to release the buffers at the end.
const CANCEL_TIMEOUT: Timespec = Timespec::new().nsec(200_000_000);

struct Client {
    mailbox: Mailbox,
    /// Whether the receive is armed.
    armed: bool,
    /// Number of the client's connection. Completions of earlier connections are ignored.
    connection: u16,
    /// A message that the kernel may still be sending. The kernel will report its completion.
    in_flight: Option<Vec<u8>>,
    /// Messages of earlier connections that the kernel may still be sending. The kernel will report their completion.
    abandoned: Vec<Vec<u8>>,
}

pub struct Uring {
    enter: Enter,
    ring: IoUring,
    pool: Option<Pool>,
    clients: Vec<Client>,
    sockets: Vec<OwnedFd>,
    /// An eventfd that ends the wait when written to.
    event: RawFd,
    queued: u32,
    /// Completions of the last round.
    completed: Vec<cqueue::Entry>,
    next: usize,
    /// Number of receives that found all buffers in use.
    rearms: u64,
}

/// A ring, created only if the kernel and its administrator permit it.
pub struct Prepared {
    ring: IoUring,
    pool: Pool,
}

/// The operation in `user_data`. `user_data` also contains the client and the number of its connection.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const SHIP: u64 = 2;
const OPERATION_BITS: u32 = 2;
const CONNECTION_BITS: u32 = 16;
/// `user_data` of a completion whose only purpose is to end the wait.
const WAKE: u64 = u64::MAX;

impl Uring {
    /// Creates the ring of the calling thread, which must be the driving thread.
    pub fn prepare(clients: usize) -> io::Result<Prepared> {
        let wanted = 2 * clients.max(4) as u32;
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(wanted.next_power_of_two())
            .build(wanted.next_power_of_two().min(MAX_ENTRIES))?;
        ring.submitter().register_files_sparse(clients as u32)?;
        let pool = Pool::register(&ring, clients)?;
        Ok(Prepared { ring, pool })
    }

    #[inline]
    fn queue(&mut self, entry: &Entry) {
        // SAFETY:
        // a message that the socket may not accept immediately is not touched until the kernel reports its completion.
        // Like the pool, it is freed only after `drop` has waited for all operations.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit_queued();
        }
        self.queued += 1;
    }

    /// Sends the whole outbox as one operation. A short message causes no completion event, because a socket accepts it
    /// immediately. The buffer of a longer message is taken out of the outbox until the kernel has finished with it.
    #[inline]
    fn transmit(&mut self, id: usize, operation: u64) {
        let tag = self.tag(id, operation);
        let client = &mut self.clients[id];
        let outbox = &client.mailbox.outbox;
        let entry = opcode::Send::new(Fixed(id as u32), outbox.as_ptr(), outbox.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(tag);
        if operation == SEND && outbox.len() <= LONGEST_SILENT {
            return self.dispatch(id, &entry.flags(Flags::SKIP_SUCCESS));
        }
        let message = std::mem::take(&mut client.mailbox.outbox);
        client.abandoned.extend(client.in_flight.replace(message));
        self.dispatch(id, &entry);
    }

    /// Handles the completion of the client's last message. The kernel no longer uses its buffer.
    #[inline]
    fn left(&mut self, id: usize) {
        let client = &mut self.clients[id];
        if let Some(message) = client.in_flight.take() {
            client.mailbox.reuse(message);
        }
    }

    #[inline]
    fn dispatch(&mut self, id: usize, entry: &Entry) {
        if !self.clients[id].armed {
            self.arm(id);
        }
        self.queue(entry);
    }

    #[cold]
    fn submit_queued(&mut self) {
        // Entries that cannot be submitted now stay queued. The error is ignored here, because the next `wait` gets and
        // reports it.
        let _ = self.ring.submit();
        self.queued = self.ring.submission().len() as u32;
    }

    #[inline]
    fn tag(&self, id: usize, operation: u64) -> u64 {
        let connection = u64::from(self.clients[id].connection);
        (id as u64) << (CONNECTION_BITS + OPERATION_BITS) | connection << OPERATION_BITS | operation
    }

    #[cold]
    fn arm(&mut self, id: usize) {
        self.clients[id].armed = true;
        let entry = opcode::RecvMulti::new(Fixed(id as u32), GROUP);
        self.queue(&entry.build().user_data(self.tag(id, RECEIVE)));
    }

    /// Ignores a completion of an earlier connection. Gives its buffer back to the kernel.
    #[cold]
    fn let_go(&mut self, entry: &cqueue::Entry) {
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            self.pool.as_mut().expect("there until the ring is dropped").give(buffer);
        }
    }

    #[cold]
    fn watch(&mut self, event: RawFd) {
        let entry = opcode::PollAdd::new(Fd(event), libc::POLLIN as u32).multi(true);
        self.queue(&entry.build().user_data(WAKE));
    }

    /// Moves received bytes into the client's inbox.
    #[inline]
    fn received(&mut self, id: usize, entry: &cqueue::Entry) -> Option<Arrival> {
        let client = &mut self.clients[id];
        client.armed = cqueue::more(entry.flags());
        let pool = self.pool.as_mut().expect("there until the ring is dropped");
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            let n = entry.result().max(0) as usize;
            client.mailbox.inbox.append(pool.bytes(buffer, n));
            pool.give(buffer);
        }
        match entry.result() {
            0 => Some(Arrival::Lost(id, super::closed())),
            n if n > 0 => {
                if !client.armed {
                    self.arm(id);
                }
                Some(Arrival::Bytes(id))
            }
            error => match -error {
                // All buffers were in use. The buffers are free again when this entry is submitted.
                errno @ (libc::ENOBUFS | libc::EINTR | libc::EAGAIN) => {
                    self.rearms += u64::from(errno == libc::ENOBUFS);
                    self.arm(id);
                    None
                }
                errno => Some(Arrival::Lost(id, io::Error::from_raw_os_error(errno))),
            },
        }
    }
}

impl Prepared {
    /// Takes over each client's socket, with the bytes already read from it.
    pub fn carry(self, sockets: Vec<(OwnedFd, Vec<u8>)>) -> io::Result<Uring> {
        let Self { ring, pool } = self;
        let fds: Vec<_> = sockets.iter().map(|(fd, _)| fd.as_raw_fd()).collect();
        ring.submitter().register_files_update(0, &fds)?;
        let client = |unread: &Vec<u8>| Client {
            mailbox: Mailbox { inbox: Inbox::with_bytes(unread), ..Mailbox::default() },
            armed: false,
            connection: 0,
            in_flight: None,
            abandoned: Vec::new(),
        };
        Ok(Uring {
            enter: Enter::of(&ring),
            clients: sockets.iter().map(|(_, unread)| client(unread)).collect(),
            sockets: sockets.into_iter().map(|(fd, _)| fd).collect(),
            event: -1,
            queued: 0,
            completed: Vec::with_capacity(2 * fds.len()),
            next: 0,
            rearms: 0,
            pool: Some(pool),
            ring,
        })
    }
}

impl Transport for Uring {
    const SENDS_AT_ONCE: bool = false;
    const NAME: &'static str = "io_uring";

    #[inline]
    fn mailbox(&mut self, client: usize) -> &mut Mailbox {
        &mut self.clients[client].mailbox
    }

    #[inline]
    fn send(&mut self, id: usize) {
        self.transmit(id, SEND);
    }

    fn send_without_reply(&mut self, id: usize) {
        self.transmit(id, SHIP);
    }

    #[inline]
    fn is_sending(&self, client: usize) -> bool {
        self.clients[client].in_flight.is_some()
    }

    fn receive(&mut self, _client: usize) {
        // Nothing has to be done, because the receive stays armed.
    }

    fn watch_for_loss(&mut self, id: usize) {
        if !self.clients[id].armed {
            self.arm(id);
        }
    }

    fn farewell(&mut self, client: usize) {
        if self.is_sending(client) {
            return;
        }
        let outbox = &self.clients[client].mailbox.outbox;
        // Errors are ignored, because the session ends anyway.
        let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.sockets[client], outbox, flags);
    }

    fn replace(&mut self, id: usize, stream: Stream, unread: &[u8]) -> io::Result<()> {
        let Stream::Plain(socket) = stream else {
            return Err(io::Error::other("the server now requires TLS, but did not before"));
        };
        // Ends the armed receive. Otherwise the kernel would keep the old socket open.
        let _ = rustix::net::shutdown(&self.sockets[id], rustix::net::Shutdown::Both);
        self.ring.submitter().register_files_update(id as u32, &[socket.as_raw_fd()])?;
        self.sockets[id] = socket;
        let client = &mut self.clients[id];
        client.mailbox.inbox = Inbox::with_bytes(unread);
        client.armed = false;
        client.abandoned.extend(client.in_flight.take());
        client.connection = client.connection.wrapping_add(1);
        Ok(())
    }

    fn wake_by(&mut self, event: BorrowedFd) -> io::Result<()> {
        self.event = event.as_raw_fd();
        self.watch(self.event);
        Ok(())
    }

    fn rearms(&self) -> u64 {
        self.rearms
    }

    #[inline]
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.completed.clear();
        self.next = 0;
        if let Some(pool) = &self.pool {
            pool.publish();
        }
        match self.enter.call(self.queued, until.saturating_sub(now)) {
            Ok(submitted) => self.queued -= submitted,
            Err(error) => match error.raw_os_error() {
                // A timeout or a signal ended the wait, or completions must be processed first. Only a part of the
                // queue may have been submitted.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {
                    self.queued = self.ring.submission().len() as u32;
                }
                _ => return Err(error),
            },
        }
        self.completed.extend(self.ring.completion());
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        while let Some(entry) = self.completed.get(self.next).cloned() {
            self.next += 1;
            if entry.user_data() == WAKE {
                if !cqueue::more(entry.flags()) {
                    self.watch(self.event);
                }
                continue;
            }
            let id = (entry.user_data() >> (CONNECTION_BITS + OPERATION_BITS)) as usize;
            let operation = entry.user_data() & ((1 << OPERATION_BITS) - 1);
            if entry.user_data() != self.tag(id, operation) {
                self.let_go(&entry);
                continue;
            }
            if operation == RECEIVE {
                match self.received(id, &entry) {
                    None => continue,
                    arrival => return arrival,
                }
            }
            self.left(id);
            match -entry.result() {
                // This error is not reported here, because the server's last message must still be read. The receive
                // reports the error too.
                libc::EPIPE | libc::ECONNRESET | libc::ECANCELED => {}
                errno if errno > 0 => return Some(Arrival::Lost(id, io::Error::from_raw_os_error(errno))),
                _ if operation == SHIP => return Some(Arrival::Sent(id)),
                _ => {}
            }
        }
        None
    }
}

impl Drop for Uring {
    /// Waits for all operations, because the kernel must not write into freed memory.
    fn drop(&mut self) {
        for socket in &self.sockets {
            // Ends all pending operations of the socket. Errors are ignored, because the socket may be closed already.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        let cancelled = self.ring.submitter().register_sync_cancel(Some(CANCEL_TIMEOUT), CancelBuilder::any());
        // "Not found" means that there was nothing to cancel.
        let done = cancelled.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true);
        if !done {
            std::mem::forget(std::mem::take(&mut self.clients));
            std::mem::forget(self.pool.take());
        }
    }
}
