//! One queue of requests and the thread that serves it: receives, answers, commits.
//!
//! The kernel has a queue for each processor; a request goes to that of the processor it was made on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::Fixed;
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::super::exchange::Exchange;
use super::super::process;
use super::requests;
use super::slot::Slots;

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
    /// Of each slot, as REGISTER is told; a REGISTER that is tried again is told once more.
    places: Box<[[libc::iovec; 2]]>,
    /// Which slots have brought a request.
    used: Box<[bool]>,
    /// Slots that brought a request while others were still registered.
    early: Vec<u16>,
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
        let slots = Slots::new(slots)?;
        let places = (0..slots.count()).map(|number| slots.places(number)).collect();
        let used = vec![false; usize::from(slots.count())].into();
        Ok(Self { number, ring, slots, places, used, early: Vec::new() })
    }

    /// Offers the slots to the kernel; how many it took. It refuses at once or not at all, but for those it tries again.
    pub fn register(&mut self, device: &File) -> io::Result<u16> {
        process::stay_on(usize::from(self.number));
        self.ring.submitter().register_files(&[device.as_raw_fd()])?;
        for number in 0..self.slots.count() {
            self.push(REGISTER, number, 0);
        }
        self.ring.submit()?;
        let refused: Vec<_> = self.ring.completion().map(|one| (one.result(), one.user_data())).collect();
        let mut taken = self.slots.count();
        for (result, number) in refused {
            match -result {
                libc::EAGAIN | libc::EINTR => self.push(REGISTER, number as u16, 0),
                0 => self.early.push(number as u16),
                _ => taken -= 1,
            }
        }
        Ok(taken)
    }

    /// Until the device is unmounted.
    pub fn serve(&mut self, exchange: &Exchange) -> io::Result<()> {
        std::mem::take(&mut self.early).into_iter().for_each(|number| self.receive(exchange, number));
        let mut brought = Vec::with_capacity(usize::from(self.slots.count()));
        loop {
            // Commits what there is to commit, too.
            tolerated(self.ring.submit_and_wait(1))?;
            brought.extend(self.ring.completion().map(|one| (one.result(), one.user_data() as u16)));
            for (result, number) in brought.drain(..) {
                match -result {
                    0 => self.receive(exchange, number),
                    libc::ENOTCONN | libc::ECONNABORTED => return Ok(()), // unmounted
                    libc::EAGAIN | libc::EINTR if !self.used[usize::from(number)] => self.push(REGISTER, number, 0),
                    libc::EAGAIN | libc::EINTR => self.commit(number),
                    error if !self.used[usize::from(number)] => {
                        eprintln!("slot {number} of queue {}: {}", self.number, io::Error::from_raw_os_error(error));
                    }
                    // Whoever made the request would wait for ever.
                    error => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
    }

    fn receive(&mut self, exchange: &Exchange, number: u16) {
        self.used[usize::from(number)] = true;
        requests::answer(exchange, self.slots.slot(number));
        self.commit(number);
    }

    fn commit(&mut self, number: u16) {
        let commit = self.slots.slot(number).commit();
        self.push(COMMIT_AND_FETCH, number, commit);
    }

    /// `fuse_uring_cmd_req`: flags, what is committed, the queue.
    fn push(&mut self, command: u32, slot: u16, commit: u64) {
        let mut fields = [0; 80];
        fields[8..16].copy_from_slice(&commit.to_ne_bytes());
        fields[16..18].copy_from_slice(&self.number.to_ne_bytes());
        let places = (command == REGISTER).then(|| &self.places[usize::from(slot)]);
        let request = opcode::UringCmd80::new(DEVICE, command).cmd(fields).addr(places.map(|at| at.as_ptr() as u64));
        let mut request = request.build().user_data(u64::from(slot));
        if let Some(places) = places {
            let start = std::ptr::from_mut(&mut request).cast::<u8>();
            // SAFETY: the entry is an `io_uring_sqe` (repr(C)), of which `io-uring` has no way to set the length.
            unsafe { start.add(LENGTH_AT).cast::<u32>().write_unaligned(places.len() as u32) };
        }
        // SAFETY: slots, places and device outlive the request. There is room: a slot has one request at a time.
        unsafe { self.ring.submission().push(&request) }.expect("a request for each slot at most");
    }
}

/// A signal came, or the kernel is short of something for a moment: the next turn tries again.
fn tolerated(outcome: io::Result<usize>) -> io::Result<()> {
    match outcome {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => Err(error),
        _ => Ok(()),
    }
}
