//! io_uring: one ring for a thread. A round of the loop is one system call, however many clients it serves.
//!
//! Per message two entries are queued: a send that completes silently, and a receive that does not try before the socket
//! says it has something (`IORING_RECVSEND_POLL_FIRST`), because a server never answers that fast. They are not linked:
//! the receive is under way while a long message is still being sent, so client and server cannot block each other.
//! Only this thread submits, and completions are worked off only while it waits (`IORING_SETUP_SINGLE_ISSUER`,
//! `IORING_SETUP_DEFER_TASKRUN`, Linux 6.1); older kernels use epoll. Source: io_uring_setup(2), io_uring_enter(2).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use super::{Arrival, Inbox, Mailbox, Transport};
use crate::measure::clock::SECOND;

const POLL_FIRST: u16 = 1;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
/// Entries of the submission queue: when more clients send in one round, it is submitted in parts.
const MOST_ENTRIES: u32 = 4096;
/// How long the kernel may take to let go of our buffers at the end.
const CANCEL_TIMEOUT: Timespec = Timespec::new().nsec(200_000_000);

struct Client {
    mailbox: Mailbox,
    /// The kernel may write into the inbox.
    receiving: bool,
}

pub struct Uring {
    ring: IoUring,
    clients: Vec<Client>,
    sockets: Vec<OwnedFd>,
    queued: u32,
    /// What completed in the last round: `user_data` and result.
    completed: Vec<(u64, i32)>,
    next: usize,
}

/// A ring that this kernel and its administrator allow.
pub struct Prepared(IoUring);

/// `user_data`: the client, and which of its two operations it was.
const SEND: u64 = 1;

fn tag(client: usize, operation: u64) -> u64 {
    (client as u64) << 1 | operation
}

impl Uring {
    /// Makes the ring of the calling thread, which must be the one that drives.
    pub fn prepare(clients: usize) -> io::Result<Prepared> {
        let wanted = 2 * clients.max(4) as u32;
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(wanted.next_power_of_two())
            .build(wanted.next_power_of_two().min(MOST_ENTRIES))?;
        ring.submitter().register_files_sparse(clients as u32)?;
        Ok(Prepared(ring))
    }

    #[inline]
    fn queue(&mut self, entry: &Entry) {
        // SAFETY: buffers of `entry` are those of a mailbox, which is not touched while the operation is under way and
        // is given up only after `drop` has seen the end of all operations.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit_queued();
        }
        self.queued += 1;
    }

    #[cold]
    fn submit_queued(&mut self) {
        // What cannot be submitted now stays queued; `wait` meets the same error and reports it.
        if let Ok(submitted) = self.ring.submit() {
            self.queued -= submitted as u32;
        }
    }

    #[inline]
    fn queue_receive(&mut self, id: usize, flags: u16) {
        let client = &mut self.clients[id];
        client.receiving = true;
        let space = client.mailbox.inbox.space();
        let entry = opcode::Recv::new(Fixed(id as u32), space.as_mut_ptr(), space.len() as u32).ioprio(flags);
        self.queue(&entry.build().user_data(tag(id, 0)));
    }
}

impl Prepared {
    /// Takes each client's socket and the bytes that have been read from it already.
    pub fn carry(self, sockets: Vec<(OwnedFd, Vec<u8>)>) -> io::Result<Uring> {
        let fds: Vec<_> = sockets.iter().map(|(fd, _)| fd.as_raw_fd()).collect();
        self.0.submitter().register_files_update(0, &fds)?;
        let client = |unread: &Vec<u8>| Client {
            mailbox: Mailbox { inbox: Inbox::holding(unread), ..Mailbox::default() },
            receiving: false,
        };
        Ok(Uring {
            ring: self.0,
            clients: sockets.iter().map(|(_, unread)| client(unread)).collect(),
            sockets: sockets.into_iter().map(|(fd, _)| fd).collect(),
            queued: 0,
            completed: Vec::new(),
            next: 0,
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
        let outbox = &self.clients[id].mailbox.outbox;
        let entry = opcode::Send::new(Fixed(id as u32), outbox.as_ptr(), outbox.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(tag(id, SEND));
        self.queue(&entry);
        self.queue_receive(id, POLL_FIRST);
    }

    fn receive(&mut self, client: usize) {
        self.queue_receive(client, 0);
    }

    fn farewell(&mut self, client: usize) {
        let outbox = &self.clients[client].mailbox.outbox;
        // Whether it arrives makes no difference to anybody.
        let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.sockets[client], outbox, flags);
    }

    #[inline]
    fn wait(&mut self, now: u64, until: u64) -> io::Result<()> {
        self.completed.clear();
        self.next = 0;
        let left = until.saturating_sub(now);
        let time = Timespec::new().sec(left / SECOND).nsec((left % SECOND) as u32);
        let arguments = SubmitArgs::new().timespec(&time);
        let want = u32::from(left > 0);
        // SAFETY: the arguments live until the call returns; the flags are those of io_uring_enter(2).
        let entered = unsafe {
            self.ring.submitter().enter(self.queued, want, ENTER_GETEVENTS | ENTER_EXT_ARG, Some(&arguments))
        };
        match entered {
            Ok(submitted) => self.queued -= submitted as u32,
            Err(error) => match error.raw_os_error() {
                // Time out, signal, or completions to be taken first. What was queued may have been taken in part.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {
                    self.queued = self.ring.submission().len() as u32;
                }
                _ => return Err(error),
            },
        }
        for entry in self.ring.completion() {
            self.completed.push((entry.user_data(), entry.result()));
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        while let Some(&(tag, result)) = self.completed.get(self.next) {
            self.next += 1;
            let id = (tag >> 1) as usize;
            if tag & SEND != 0 {
                match -result {
                    // What the server said before it left is still to be read; the receive tells the rest.
                    libc::EPIPE | libc::ECONNRESET | libc::ECANCELED => continue,
                    errno if errno > 0 => return Some(Arrival::Lost(id, io::Error::from_raw_os_error(errno))),
                    _ => continue,
                }
            }
            let client = &mut self.clients[id];
            client.receiving = false;
            match result {
                0 => return Some(Arrival::Lost(id, super::closed())),
                n if n > 0 => {
                    client.mailbox.inbox.received(n as usize);
                    return Some(Arrival::Bytes(id));
                }
                errno if -errno == libc::EINTR || -errno == libc::EAGAIN => self.queue_receive(id, POLL_FIRST),
                errno => return Some(Arrival::Lost(id, io::Error::from_raw_os_error(-errno))),
            }
        }
        None
    }
}

impl Drop for Uring {
    /// The kernel must not write into memory that is no longer ours.
    fn drop(&mut self) {
        if !self.clients.iter().any(|client| client.receiving) {
            return;
        }
        for socket in &self.sockets {
            // Ends whatever is still waiting on it; one that is closed already needs no more.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
        let cancelled = self.ring.submitter().register_sync_cancel(Some(CANCEL_TIMEOUT), CancelBuilder::any());
        let done = match cancelled {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !done {
            std::mem::forget(std::mem::take(&mut self.clients));
        }
    }
}
