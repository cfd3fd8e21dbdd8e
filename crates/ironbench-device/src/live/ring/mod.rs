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
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::exchange::Exchange;
use queue::Queue;

const ENABLED: &str = "/sys/module/fuse/parameters/enable_uring";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
/// Requests that a queue can hold: all that a loop device has under way (its `hw_queue_depth`).
const SLOTS: usize = 128;
/// Of many queues each has fewer: a slot that was used keeps its memory.
const SLOTS_IN_ALL: usize = 2048;
const QUEUES: usize = 128;

/// The threads of all queues, which wait to be told of the device.
#[derive(Debug)]
pub struct Ring {
    threads: Vec<(Sender<File>, JoinHandle<()>)>,
}

impl Ring {
    /// None where the kernel does not have it, has it switched off, or allows no io_uring.
    pub fn start(exchange: &Arc<Exchange>) -> Option<Self> {
        let _ = File::open("/dev/fuse"); // loads the module, which has the parameter
        let enabled = std::fs::read_to_string(ENABLED).is_ok_and(|text| text.starts_with('Y'));
        let queues = (enabled && cfg!(target_endian = "little")).then(queues).flatten()?;
        let slots = SLOTS.min(SLOTS_IN_ALL / queues) as u16;
        let mut threads = Vec::new();
        let (told, heard) = channel();
        for number in 0..queues as u16 {
            let (sender, device) = channel();
            let (exchange, told) = (Arc::clone(exchange), told.clone());
            let serve = move || {
                let made = Queue::new(number, slots);
                let _ = told.send(made.is_ok());
                if let (Ok(queue), Ok(device)) = (made, device.recv()) {
                    served(queue, &device, &exchange);
                }
            };
            threads.push((sender, std::thread::Builder::new().name(format!("device-{number}")).spawn(serve).ok()?));
        }
        drop(told);
        heard.iter().take(queues).all(|ready| ready).then_some(Self { threads })
    }

    /// Once the kernel has agreed: requests come here from now on.
    pub fn serve(&self, device: BorrowedFd<'_>) -> io::Result<()> {
        for (sender, _) in &self.threads {
            let _ = sender.send(File::from(device.try_clone_to_owned()?));
        }
        Ok(())
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
fn served(mut queue: Queue, device: &File, exchange: &Exchange) {
    if let Err(error) = queue.serve(device, exchange) {
        eprintln!("a queue of the device: {error}");
        std::process::abort();
    }
}

/// One for each processor that the machine could have. None: too many.
fn queues() -> Option<usize> {
    let text = std::fs::read_to_string(POSSIBLE).ok()?;
    let last: usize = text.trim().rsplit(['-', ',']).next()?.parse().ok()?;
    (last < QUEUES).then_some(last + 1)
}
