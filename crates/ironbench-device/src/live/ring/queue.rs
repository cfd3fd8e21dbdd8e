//! One queue of requests and the thread that serves it: receives, asks the model, holds answers, commits them.
//!
//! The kernel has a queue for each processor; a request goes to that of the processor it was made on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::super::due::{BATCH, NEVER, SPIN_NS, Waiting};
use super::super::exchange::{Exchange, Held};
use super::super::process;
use super::requests;
use super::slot::{Slot, Slots};

const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// Where `len` is in a submission (`struct io_uring_sqe`, include/uapi/linux/io_uring.h).
const LENGTH_AT: usize = 24;

/// The one file that the ring knows.
const DEVICE: Fixed = Fixed(0);

type Ring = IoUring<squeue::Entry128, cqueue::Entry>;

pub struct Queue {
    number: u16,
    /// Before the slots, so that the kernel is done with them when they go.
    ring: Ring,
    slots: Slots,
    waiting: Waiting<Held<Slot>>,
    hastened: bool,
}

impl Queue {
    /// On the thread that will serve it: nobody else may use the ring.
    pub fn new(number: u16, slots: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(u32::from(slots) * 2)
            .build(u32::from(slots))?;
        Ok(Self { number, ring, slots: Slots::new(slots)?, waiting: Waiting::default(), hastened: false })
    }

    /// Until the device is unmounted.
    pub fn serve(&mut self, device: &File, exchange: &Exchange) -> io::Result<()> {
        process::stay_on(usize::from(self.number));
        self.ring.submitter().register_files(&[device.as_raw_fd()])?;
        let places: Vec<_> = (0..self.slots.count()).map(|number| self.slots.places(number)).collect();
        for (number, place) in places.iter().enumerate() {
            self.push(REGISTER, number as u16, 0, Some(place));
        }
        self.ring.submit()?;
        drop(places);
        let mut full = Vec::with_capacity(usize::from(self.slots.count()));
        let mut alive = self.slots.count();
        while alive > 0 {
            self.wait(exchange)?;
            full.extend(self.ring.completion());
            for one in full.drain(..) {
                match -one.result() {
                    0 => self.receive(exchange, one.user_data() as u16),
                    libc::ENOTCONN | libc::ECONNABORTED => return Ok(()), // unmounted
                    // The kernel has given up the request and its slot; when it took none at all, it uses /dev/fuse.
                    _ => alive -= 1,
                }
            }
            let now = exchange.clock().now();
            for _ in 0..BATCH {
                let Some(held) = self.waiting.pop(now) else { break };
                let (number, commit) = (held.answer().number, held.answer().commit());
                exchange.answer(held);
                self.push(COMMIT_AND_FETCH, number, commit, None);
            }
        }
        Ok(())
    }

    fn receive(&mut self, exchange: &Exchange, number: u16) {
        let slot = self.slots.slot(number);
        let commit = slot.commit();
        match requests::answer(exchange, slot) {
            Some(held) => self.waiting.push(held.due(), held),
            None => self.push(COMMIT_AND_FETCH, number, commit, None),
        }
    }

    /// For a request, or for an answer to be due; commits what there is to commit.
    fn wait(&mut self, exchange: &Exchange) -> io::Result<()> {
        self.hasten(exchange.holds());
        let due = self.waiting.earliest();
        let outcome = if due == NEVER {
            self.ring.submit_and_wait(1)
        } else {
            let left = due.saturating_sub(exchange.clock().now());
            if left > SPIN_NS {
                let nap = left - SPIN_NS;
                let nap = Timespec::new().sec(nap / 1_000_000_000).nsec((nap % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&nap))
            } else if self.ring.submission().is_empty() && !self.ring.submission().taskrun() {
                std::hint::spin_loop();
                return Ok(());
            } else {
                self.ring.submit()
            }
        };
        match outcome {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Answers that are held must be on time, as interrupts of a real device are; where none are, whoever asks should go
    /// on asking, so that many requests are received at once.
    fn hasten(&mut self, wanted: bool) {
        if wanted != self.hastened {
            self.hastened = wanted;
            if wanted {
                process::hasten_thread();
            } else {
                process::slow_thread();
            }
        }
    }

    /// `fuse_uring_cmd_req`: flags, what is committed, the queue. Of REGISTER also the slot's places.
    fn push(&mut self, command: u32, slot: u16, commit: u64, places: Option<&[libc::iovec; 2]>) {
        let mut fields = [0; 80];
        fields[8..16].copy_from_slice(&commit.to_ne_bytes());
        fields[16..18].copy_from_slice(&self.number.to_ne_bytes());
        let request = opcode::UringCmd80::new(DEVICE, command).cmd(fields).addr(places.map(|at| at.as_ptr() as u64));
        let mut request = request.build().user_data(u64::from(slot));
        if let Some(places) = places {
            let start = std::ptr::from_mut(&mut request).cast::<u8>();
            // SAFETY: the entry is an `io_uring_sqe` (repr(C)), of which `io-uring` has no way to set the length.
            unsafe { start.add(LENGTH_AT).cast::<u32>().write_unaligned(places.len() as u32) };
        }
        // SAFETY: slots and device outlive the request. There is room: a slot has one request at a time.
        unsafe { self.ring.submission().push(&request) }.expect("a request for each slot at most");
    }
}
