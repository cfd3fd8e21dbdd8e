//! The files through io_uring (Linux 6.14, Documentation/filesystems/fuse-io-uring.rst): one system call commits the
//! answers that there are and brings the next requests, where `/dev/fuse` takes two for each request.
//!
//! The kernel has it switched off; whoever administers the machine switches it on
//! (`/sys/module/fuse/parameters/enable_uring`).

mod queue;
mod requests;
mod slot;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::exchange::Exchange;
use super::process;
use queue::Queue;

const ENABLED: &str = "/sys/module/fuse/parameters/enable_uring";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Requests that a queue can hold: all that a loop device has under way (its `hw_queue_depth`).
const SLOTS: usize = 128;
/// Of many queues each has fewer: a slot that was used keeps its memory.
const SLOTS_IN_ALL: usize = 2048;
const QUEUES: usize = 512;

/// The threads of all queues, which wait to be told of the device.
#[derive(Debug)]
pub struct Ring {
    threads: Vec<(Sender<File>, JoinHandle<()>)>,
    taken: Receiver<u16>,
}

impl Ring {
    /// None where the kernel does not have it, has it switched off, or allows no io_uring.
    pub fn start(exchange: &Arc<Exchange>) -> Option<Self> {
        let _ = File::open("/dev/fuse"); // loads the module, which has the parameter
        let enabled = std::fs::read_to_string(ENABLED).is_ok_and(|text| text.starts_with('Y'));
        if !enabled || cfg!(target_endian = "big") {
            return None;
        }
        let (possible, online) = (processors(POSSIBLE)?, processors(ONLINE)?);
        // The kernel numbers its queues from 0, one for each processor that there could be.
        if possible.len() > QUEUES || possible.iter().enumerate().any(|(place, &number)| place != number) {
            return None;
        }
        let most = SLOTS.min(SLOTS_IN_ALL / online.len().max(1)) as u16;
        let (told, heard) = channel();
        let (taken, reports) = channel();
        let mut threads = Vec::new();
        for number in possible {
            // One that is not there must have a slot all the same, or the kernel uses none of the queues.
            let slots = if online.contains(&number) { most } else { 1 };
            let (sender, device) = channel();
            let (exchange, told, taken) = (Arc::clone(exchange), told.clone(), taken.clone());
            let serve = move || {
                let made = Queue::new(number as u16, slots);
                let _ = told.send(made.is_ok());
                drop(told);
                if let (Ok(queue), Ok(device)) = (made, device.recv()) {
                    served(queue, &device, &exchange, taken);
                }
            };
            threads.push((sender, std::thread::Builder::new().name(format!("device-{number}")).spawn(serve).ok()?));
        }
        drop(told);
        let ready = heard.iter().filter(|ready| *ready).count();
        (ready == threads.len()).then_some(Self { threads, taken: reports })
    }

    /// Once the kernel has agreed: requests come here from now on. Whether it took slots of every queue; if not, all
    /// requests may wait for ever, and the device must be mounted without this.
    pub fn serve(&self, device: BorrowedFd<'_>) -> io::Result<bool> {
        for (sender, _) in &self.threads {
            let _ = sender.send(File::from(device.try_clone_to_owned()?));
        }
        Ok(self.taken.iter().take(self.threads.len()).filter(|taken| *taken > 0).count() == self.threads.len())
    }

    /// After the device is unmounted.
    pub fn join(self) {
        for (sender, thread) in self.threads {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Requests of a queue that nobody serves would wait for ever: then the whole process goes, and all of them fail.
fn served(mut queue: Queue, device: &File, exchange: &Exchange, taken: Sender<u16>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let slots = queue.register(device);
        let _ = taken.send(*slots.as_ref().unwrap_or(&0));
        drop(taken);
        if slots? > 0 { queue.serve(exchange) } else { Ok(()) }
    }));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            eprintln!("a queue of the device: {error}");
            process::vanish();
        }
        Err(_) => process::vanish(), // the panic has said why
    }
}

/// Numbers as in `0-3,6` (Documentation/admin-guide/cputopology.rst).
fn processors(path: &str) -> Option<Vec<usize>> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut found = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        found.extend(first..=last);
    }
    Some(found)
}
