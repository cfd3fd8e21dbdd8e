//! The contents of a partition, which are in memory or in a sparse file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;

use ironbench_core::{Error, Result};

/// The bytes of a partition by offset. Offsets and lengths must be within the image.
#[derive(Debug)]
pub enum PartitionImage {
    MemoryMapping(MemoryMapping),
    File(File),
}

impl PartitionImage {
    /// Creates an image in memory, which is allocated page by page as the image is written (mmap(2), MAP_NORESERVE).
    pub fn in_memory(length: u64) -> Result<Self> {
        MemoryMapping::new(length).map(Self::MemoryMapping)
    }

    /// Creates an image in memory that is also a file, which can be passed to the kernel. The memory is allocated now.
    /// Pages that are allocated later, by a write, belong to the control group of the writer, even if the write goes
    /// through the loop driver (Linux: drivers/block/loop.c). These pages would count towards the server's memory
    /// limit.
    pub fn in_shared_memory(length: u64) -> Result<Self> {
        MemoryMapping::shared(length).map(Self::MemoryMapping)
    }

    /// Returns the file of an image in shared memory.
    pub fn shared(&self) -> Option<&File> {
        match self {
            Self::MemoryMapping(memory) => memory.file.as_ref(),
            Self::File(_) => None,
        }
    }

    /// Creates a sparse file of the image's length. The blocks are allocated when they are written.
    pub fn in_file(path: &Path, length: u64) -> Result<Self> {
        let failed = |error: io::Error| Error::failure(format!("image {}", path.display()), error.to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        Ok(Self::File(file))
    }

    /// Calls `use_` with the current bytes.
    pub fn read<T>(&self, offset: u64, length: usize, use_: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        match self {
            Self::MemoryMapping(memory) => Ok(use_(memory.bytes(offset, length))),
            Self::File(file) => Ok(use_(&from_file(file, offset, length)?)),
        }
    }

    /// Reads bytes from a file before they are needed, because reading may take time. Returns None for an image in
    /// memory, whose bytes need not be copied.
    pub fn read_ahead(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::MemoryMapping(_) => Ok(None),
            Self::File(file) => from_file(file, offset, length).map(Some),
        }
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::MemoryMapping(memory) => {
                memory.write(offset, bytes);
                Ok(())
            }
            Self::File(file) => file.write_all_at(bytes, offset),
        }
    }

    /// Zeroes a range and frees its memory, unless the memory is shared.
    pub fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        match self {
            Self::MemoryMapping(memory) => memory.discard(offset, length),
            Self::File(file) => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                // SAFETY: the descriptor is open, and the call takes no pointers.
                let done =
                    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, length as libc::off_t) };
                if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
            }
        }
    }
}

fn from_file(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Anonymous memory, or the memory of a file. Several threads may access the same bytes at the same time, as on a disk.
/// The file system must avoid this. Otherwise the result is undefined, but only for these bytes.
#[derive(Debug)]
pub struct MemoryMapping {
    start: NonNull<u8>,
    length: usize,
    file: Option<File>,
}

// SAFETY: this value owns the mapping for its whole life, and threads share only plain bytes in it.
unsafe impl Send for MemoryMapping {}
// SAFETY: this value owns the mapping for its whole life, and threads share only plain bytes in it.
unsafe impl Sync for MemoryMapping {}

/// Like MADV_DONTNEED, but also works on locked pages (madvise(2), Linux 5.18).
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

impl MemoryMapping {
    fn new(length: u64) -> Result<Self> {
        Self::mapped(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, None)
    }

    fn shared(length: u64) -> Result<Self> {
        let failed = |error: io::Error| Error::failure("memory of the device", error.to_string());
        // SAFETY: the name is zero-terminated, and the returned descriptor is not used anywhere else.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"ironbench-image".as_ptr(), libc::MFD_CLOEXEC);
            if descriptor < 0 {
                return Err(failed(io::Error::last_os_error()));
            }
            File::from_raw_fd(descriptor)
        };
        let size = libc::off_t::try_from(length).map_err(|_| Error::input("capacity", "exceeds the address space"))?;
        // SAFETY: the descriptor is open, and the call takes no pointers.
        while unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(failed(error)
                    .hint("make the device smaller with --capacity, or store its contents with --backing DIR"));
            }
        }
        let memory = Self::mapped(length, libc::MAP_SHARED, Some(file))?;
        // Populated pages become locked (`process::prepare`). Kernels before 5.14 lack this call. On them, a page
        // becomes locked only when this process first zeroes it. SAFETY: the range is the new mapping.
        unsafe { libc::madvise(memory.start.as_ptr().cast(), memory.length, libc::MADV_POPULATE_WRITE) };
        Ok(memory)
    }

    fn mapped(length: u64, how: libc::c_int, file: Option<File>) -> Result<Self> {
        let length = usize::try_from(length).map_err(|_| Error::input("capacity", "exceeds the address space"))?;
        let descriptor = file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: this is a new mapping at an address that the kernel chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, how, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::failure("memory of the device", io::Error::last_os_error().to_string()));
        }
        // A forked helper process must not get a copy of the page tables.
        // SAFETY: the range is the new mapping.
        unsafe { libc::madvise(start, length, libc::MADV_DONTFORK) };
        let start = NonNull::new(start.cast()).expect("a mapping is never at address 0");
        Ok(Self { start, length, file })
    }

    fn bytes(&self, offset: u64, length: usize) -> &[u8] {
        let offset = self.checked_start(offset, length);
        // SAFETY: the range is within the mapping, as asserted above. The documentation of the type explains concurrent
        // writes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let offset = self.checked_start(offset, bytes.len());
        // SAFETY: the range is within the mapping, as asserted above, and `bytes` does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len()) }
    }

    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        const PAGE: usize = 4096;
        let length = length as usize;
        let offset = self.checked_start(offset, length);
        let (first, last) = (offset.next_multiple_of(PAGE), (offset + length) / PAGE * PAGE);
        let zero = |from: usize, to: usize| {
            // SAFETY: the range is within the mapping, as asserted above.
            unsafe { std::ptr::write_bytes(self.start.as_ptr().add(from), 0, to.saturating_sub(from)) };
        };
        if first >= last || self.file.is_some() {
            zero(offset, offset + length);
            return Ok(());
        }
        zero(offset, first);
        zero(last, offset + length);
        // SAFETY: the range consists of whole pages within the mapping.
        let given = unsafe { libc::madvise(self.start.as_ptr().add(first).cast(), last - first, MADV_DONTNEED_LOCKED) };
        if given != 0 {
            zero(first, last);
        }
        Ok(())
    }

    fn checked_start(&self, offset: u64, length: usize) -> usize {
        let offset = offset as usize;
        assert!(offset <= self.length && length <= self.length - offset, "{offset} + {length} is outside the image");
        offset
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created by `new`, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use proptest::prelude::*;

    use super::*;

    const LENGTH: usize = 64 << 10;

    fn all() -> ([PartitionImage; 3], std::path::PathBuf) {
        let name = format!("ironbench-image-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let length = LENGTH as u64;
        let [memory, shared] =
            [PartitionImage::in_memory(length), PartitionImage::in_shared_memory(length)].map(Result::unwrap);
        ([memory, shared, PartitionImage::in_file(&path, length).unwrap()], path)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_written_last_is_read_whatever_holds_it(
            steps in prop::collection::vec((any::<bool>(), 0..LENGTH, 0..20_000usize, any::<u8>()), 1..20)
        ) {
            let (images, path) = all();
            let mut known = vec![0u8; LENGTH];
            for (writes, offset, length, byte) in steps {
                let length = length.min(LENGTH - offset);
                let byte = if writes { byte } else { 0 };
                known[offset..offset + length].fill(byte);
                for image in &images {
                    if writes {
                        image.write(offset as u64, &vec![byte; length]).unwrap();
                    } else if length > 0 {
                        image.discard(offset as u64, length as u64).unwrap();
                    }
                }
            }
            for image in &images {
                prop_assert!(image.read(0, LENGTH, |bytes| bytes == known).unwrap());
            }
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_is_written_to_the_file_of_a_shared_memory_is_in_it() {
        let image = PartitionImage::in_shared_memory(LENGTH as u64).unwrap();
        image.shared().unwrap().write_all_at(b"through the kernel", 5000).unwrap();
        assert_eq!(image.shared().unwrap().metadata().unwrap().blocks() * 512, LENGTH as u64, "all of it is taken");
        assert!(image.read(5000, 18, |bytes| bytes == b"through the kernel").unwrap());
        assert!(PartitionImage::in_memory(4096).unwrap().shared().is_none());
    }

    #[test]
    #[should_panic(expected = "outside the image")]
    fn what_is_outside_an_image_is_never_touched() {
        PartitionImage::in_memory(4096).unwrap().write(4000, &[1; 100]).unwrap();
    }
}
