//! Buffers that the kernel picks from when something arrives (`IORING_REGISTER_PBUF_RING`, io_uring_register_buf_ring(3)):
//! clients that wait hold none, so that thousands of them need little memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Most replies of short transactions fit into one.
const BUFFER: usize = 4 << 10;
const MOST_BUFFERS: usize = 256;
/// The only group of a ring of ours.
pub const GROUP: u16 = 0;

/// `count` descriptors, which the kernel reads as a ring, and behind them the buffers.
pub struct Pool {
    memory: NonNull<u8>,
    count: u16,
    /// Buffers handed to the kernel since the start, modulo 2^16.
    tail: u16,
}

// SAFETY: the memory is this value's own; the ring that shares it moves to other threads together with it.
unsafe impl Send for Pool {}

impl Pool {
    /// Made and registered for a ring of `clients`.
    pub fn register(ring: &IoUring, clients: usize) -> io::Result<Self> {
        let count = (2 * clients).next_power_of_two().clamp(16, MOST_BUFFERS);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new anonymous mapping concerns no other memory. It is aligned to pages, as the kernel wants it.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), length(count), protection, flags)? };
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        let mut pool = Self { memory, count: count as u16, tail: 0 };
        // SAFETY: the mapping outlives the ring: whoever owns both drops the ring's operations first.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(memory.as_ptr() as u64, pool.count, GROUP, 0)?;
        }
        (0..pool.count).for_each(|buffer| pool.give(buffer));
        pool.publish();
        Ok(pool)
    }

    /// The first `n` bytes of a buffer that the kernel has filled.
    #[inline]
    pub fn bytes(&self, buffer: u16, n: usize) -> &[u8] {
        assert!(buffer < self.count && n <= BUFFER);
        // SAFETY: within the mapping (checked above); the kernel does not write into a buffer it has handed to us.
        unsafe { std::slice::from_raw_parts(self.buffer(buffer), n) }
    }

    /// Lets the kernel have a buffer again, once `publish` is called.
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        let place = self.tail & (self.count - 1);
        // SAFETY: `place` is below `count` and the descriptor is ours until it is published.
        let entry = unsafe { &mut *self.memory.as_ptr().cast::<BufRingEntry>().add(place.into()) };
        entry.set_addr(self.buffer(buffer) as u64);
        entry.set_len(BUFFER as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub fn publish(&self) {
        // SAFETY: the tail lies inside the first descriptor, aligned, and the kernel only reads it.
        unsafe {
            let tail = BufRingEntry::tail(self.memory.as_ptr().cast()).cast::<AtomicU16>();
            (*tail).store(self.tail, Release);
        }
    }

    fn buffer(&self, buffer: u16) -> *mut u8 {
        // SAFETY: `buffer` is below `count`, so this is within the mapping.
        unsafe { self.memory.as_ptr().add(descriptors(self.count.into()) + usize::from(buffer) * BUFFER) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and the owner has seen the end of all operations.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), length(self.count.into())) };
    }
}

/// Bytes of the descriptors, in whole buffers so that those stay aligned.
fn descriptors(count: usize) -> usize {
    (count * size_of::<BufRingEntry>()).next_multiple_of(BUFFER)
}

fn length(count: usize) -> usize {
    descriptors(count) + count * BUFFER
}
