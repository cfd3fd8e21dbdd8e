//! The bytes that are written, which are random, or partly zeros.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use super::plan::{ALIGNMENT, Pass};
use ironbench_core::SplitMix64;

/// Size of the units that must differ from each other. Devices and file systems that deduplicate or compress work on
/// units of at least this size.
const UNIT: usize = 4096;

/// Blocks of this size or more are in huge pages if the kernel grants them and the pass does not request small pages. A
/// block of many small pages may have more segments than a device accepts in one request (`max_segments`,
/// Documentation/ABI/stable/sysfs-block). The kernel would then split the request. In addition, virtual disks need time
/// for each segment.
const LARGE: usize = 128 << 10;
const LARGE_PAGE: usize = 2 << 20;

/// Memory for one I/O, aligned for direct I/O.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    layout: Layout,
    bytes: usize,
    stamped: bool,
}

// SAFETY: the buffer owns its memory.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Allocates a buffer. In each 4 KiB, the last `zero_percent` percent are zeros, and the rest is random.
    pub fn new(pass: &Pass, random: &mut SplitMix64) -> Self {
        let (bytes, zero_percent) = (pass.block_bytes as usize, pass.zero_percent);
        let large = bytes >= LARGE && !pass.small_pages;
        let (size, align) =
            if large { (bytes.next_multiple_of(LARGE_PAGE), LARGE_PAGE) } else { (bytes.max(1), ALIGNMENT) };
        let layout = Layout::from_size_align(size, align).expect("a block is at most 64 MiB");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        if large {
            // SAFETY: the range consists of whole pages that this buffer owns. If the call is refused, pages stay
            // small.
            unsafe { libc::madvise(start.cast(), size, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the memory has `bytes` bytes.
        unsafe { start.write_bytes(0, bytes) };
        let mut buffer = Self { start, layout, bytes, stamped: zero_percent < 100 };
        for unit in buffer.as_mut().chunks_mut(UNIT) {
            let filled = unit.len() * (100 - zero_percent.min(100)) as usize / 100;
            for word in unit[..filled].chunks_mut(8) {
                word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
            }
        }
        buffer
    }

    /// Makes every unit different from all others ever written, so that no layer can deduplicate blocks.
    #[inline]
    pub fn stamp(&mut self, random: &mut SplitMix64) {
        if self.stamped {
            for unit in self.as_mut().chunks_exact_mut(UNIT) {
                unit[..8].copy_from_slice(&random.next_u64().to_le_bytes());
            }
        }
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: this value owns `bytes` bytes at `start`, which were initialised when allocated.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout.
        unsafe { dealloc(self.start, self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::pass;
    use super::*;
    use proptest::prelude::*;

    fn of(units: usize, zero_percent: u32) -> Pass {
        Pass { block_bytes: (units * UNIT) as u32, zero_percent, ..pass() }
    }

    proptest! {
        #[test]
        fn the_share_of_zeros_is_the_one_asked_for(units in 1usize..20, percent in 0u32..=100, seed: u64) {
            let mut random = SplitMix64::new(seed);
            let mut buffer = Buffer::new(&of(units, percent), &mut random);
            buffer.stamp(&mut random);
            let zeros = buffer.as_mut().iter().filter(|&&byte| byte == 0).count() as f64;
            let share = zeros / (units * UNIT) as f64;
            // Random bytes are also zero with probability 1/256.
            let expected = f64::from(percent) / 100.0;
            prop_assert!((share - expected - (1.0 - expected) / 256.0).abs() < 0.015, "{}", share);
            prop_assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn no_two_stamped_units_are_equal() {
        let mut random = SplitMix64::new(1);
        let mut buffer = Buffer::new(&of(4, 0), &mut random);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            buffer.stamp(&mut random);
            seen.extend(buffer.as_mut().chunks(UNIT).map(<[u8]>::to_vec));
        }
        assert_eq!(seen.len(), 400);
    }
}
