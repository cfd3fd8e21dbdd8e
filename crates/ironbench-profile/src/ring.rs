//! The ring buffer that an event shares with the kernel (perf_event_open(2), "MMAP layout").

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::event::Event;

/// A mapped ring buffer. Records consist of 8-byte words.
pub struct Ring {
    /// The page that contains the head and tail positions. The records follow it.
    start: NonNull<perf_event_mmap_page>,
    page: usize,
    /// Size in bytes of the part that contains records. The size is a power of 2.
    size: usize,
    tail: u64,
}

/// Maximum size of a record in bytes, because the size is a 16-bit number.
const LARGEST_RECORD: usize = 1 << 16;

// SAFETY: this value owns the mapping.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring buffer of `size` bytes, rounded up to a power of 2. If the limit of locked memory does not permit
    /// this size, the ring buffer is smaller.
    pub fn map(event: &Event, size: usize) -> io::Result<Self> {
        // SAFETY: the argument is a constant.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
        let mut size = size.next_power_of_two().max(page);
        loop {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let descriptor = event.descriptor.as_raw_fd();
            // SAFETY: this is a new mapping at an address that the kernel chooses.
            let mapped =
                unsafe { libc::mmap(ptr::null_mut(), page + size, protection, libc::MAP_SHARED, descriptor, 0) };
            if mapped != libc::MAP_FAILED {
                let start = NonNull::new(mapped.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
                return Ok(Self { start, page, size, tail: 0 });
            }
            let error = io::Error::last_os_error();
            let limited = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
            if !limited || size <= 4 * page {
                return Err(error);
            }
            size /= 2;
        }
    }

    /// Returns the number of bytes that were written since the last `drain`.
    pub fn used(&self) -> usize {
        self.positions().0.load(Ordering::Acquire).wrapping_sub(self.tail) as usize
    }

    /// Returns the positions to which the kernel has written, and up to which this program has read.
    fn positions(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: the page is mapped as long as the ring buffer exists, and both sides access the positions atomically.
        unsafe {
            let page = self.start.as_ptr();
            (AtomicU64::from_ptr(&raw mut (*page).data_head), AtomicU64::from_ptr(&raw mut (*page).data_tail))
        }
    }

    /// Appends all complete records to `words`, and frees their space in the ring buffer. Returns whether there was no
    /// space for another record. In this case, the kernel may have dropped records after the last one.
    pub fn drain(&mut self, words: &mut Vec<u64>) -> bool {
        let head = self.positions().0.load(Ordering::Acquire);
        let count = head.wrapping_sub(self.tail) as usize;
        let offset = self.tail as usize & (self.size - 1);
        let first = count.min(self.size - offset);
        for (offset, count) in [(offset, first), (0, count - first)] {
            // SAFETY: the kernel has published these bytes and reuses them only after the tail has moved.
            words.extend_from_slice(unsafe {
                let records = self.start.as_ptr().cast::<u8>().add(self.page + offset);
                std::slice::from_raw_parts(records.cast::<u64>(), count / 8)
            });
        }
        self.tail = head;
        self.positions().1.store(head, Ordering::Release);
        count + LARGEST_RECORD.min(self.size / 2) > self.size
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `map` mapped this memory, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::event::{Target, Trigger};
    use crate::record::{Batch, Record};

    fn work(duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_full_ring_counts_the_lost_records() {
        let Ok(event) = Event::open(Trigger::CpuClock { hz: 999 }, Target::own_thread(), false) else {
            return; // this machine does not permit performance events
        };
        // The ring buffer has room for seven samples with their stacks.
        let mut ring = Ring::map(&event, 128 << 10).unwrap();
        event.enable().unwrap();
        let mut lost = 0;
        let deadline = Instant::now() + Duration::from_secs(20);
        // The kernel reports lost records only when it writes the next record.
        while lost == 0 && Instant::now() < deadline {
            work(Duration::from_millis(300));
            let mut batch = Batch::default();
            ring.drain(&mut batch.words);
            batch.index_from(0);
            for &(_, at) in &batch.index {
                if let Record::Lost { records, .. } = batch.record(at) {
                    lost += records;
                }
            }
        }
        assert!(lost > 0);
    }
}
