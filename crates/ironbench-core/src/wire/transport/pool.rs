//! Receive buffers from which the kernel picks when something arrives (io_uring_register_buf_ring(3)). A client that
//! waits needs no buffer, so thousands of clients need little memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Size of a buffer. Most replies of short transactions fit into one buffer.
const BUFFER: usize = 4 << 10;
const MAX_BUFFERS: usize = 256;
/// The ring's only buffer group.
pub const GROUP: u16 = 0;

/// A memory mapping. The mapping starts with `count` descriptors, which the kernel reads as a ring. The buffers follow.
pub struct Pool {
    memory: NonNull<u8>,
    count: u16,
    /// Number of buffers given to the kernel since the start, modulo 2^16.
    tail: u16,
}

// SAFETY: this value owns the memory. It moves to other threads only together with the ring, which shares the memory.
unsafe impl Send for Pool {}

impl Pool {
    /// Creates a pool and registers it for a ring of `clients`.
    pub fn register(ring: &IoUring, clients: usize) -> io::Result<Self> {
        let count = (2 * clients).next_power_of_two().clamp(16, MAX_BUFFERS);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping affects no other memory. The mapping is aligned to pages, as the kernel
        // requires.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), length(count), protection, flags)? };
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        let mut pool = Self { memory, count: count as u16, tail: 0 };
        // SAFETY: the mapping outlives the ring, because their owner ends the ring's operations first.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(memory.as_ptr() as u64, pool.count, GROUP, 0)?;
        }
        (0..pool.count).for_each(|buffer| pool.give(buffer));
        pool.publish();
        Ok(pool)
    }

    /// Returns the first `n` bytes of a buffer that the kernel has filled.
    #[inline]
    pub fn bytes(&self, buffer: u16, n: usize) -> &[u8] {
        assert!(buffer < self.count && n <= BUFFER);
        // SAFETY: the bytes are within the mapping (checked above). The kernel does not write into a buffer that it has
        // returned.
        unsafe { std::slice::from_raw_parts(self.buffer(buffer), n) }
    }

    /// Gives a buffer back to the kernel. The kernel may use it after `publish`.
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        let place = self.tail & (self.count - 1);
        // SAFETY: `place` is below `count`, and the kernel does not use the descriptor until it is published.
        let entry = unsafe { &mut *self.memory.as_ptr().cast::<BufRingEntry>().add(place.into()) };
        entry.set_addr(self.buffer(buffer) as u64);
        entry.set_len(BUFFER as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub fn publish(&self) {
        // SAFETY: the tail is aligned and lies inside the first descriptor. The kernel only reads it.
        unsafe {
            let tail = BufRingEntry::tail(self.memory.as_ptr().cast()).cast::<AtomicU16>();
            (*tail).store(self.tail, Release);
        }
    }

    fn buffer(&self, buffer: u16) -> *mut u8 {
        // SAFETY: `buffer` is below `count`, so the address is within the mapping.
        unsafe { self.memory.as_ptr().add(descriptors(self.count.into()) + usize::from(buffer) * BUFFER) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and its owner has waited for the end of all operations.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), length(self.count.into())) };
    }
}

/// Returns the size of the descriptors in bytes, rounded up to a multiple of the buffer size to keep the buffers
/// aligned.
fn descriptors(count: usize) -> usize {
    (count * size_of::<BufRingEntry>()).next_multiple_of(BUFFER)
}

fn length(count: usize) -> usize {
    descriptors(count) + count * BUFFER
}
