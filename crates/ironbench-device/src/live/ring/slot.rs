//! Where the kernel puts a request and takes the answer from (Linux, include/uapi/linux/fuse.h, ABI 7.42).

use std::io;
use std::ptr::NonNull;

use super::super::exchange::Answer;
use super::super::tree::LONGEST;

const AREA: usize = 128;
const PAGE: usize = 4096;
/// From one payload to the next: were it a power of two, the beginnings of all would fall into a few sets of the cache.
const STRIDE: usize = LONGEST as usize + PAGE;
const OUT_HEADER: u32 = 16;
const WRITE_OUT: usize = 8;

/// `fuse_uring_req_header`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Header {
    /// `fuse_in_header`, then `fuse_out_header`.
    common: [u64; AREA / 8],
    /// The request's own, such as `fuse_read_in`.
    own: [u64; AREA / 8],
    flags: u64,
    commit: u64,
    payload: u32,
    padding: u32,
    reserved: u64,
}

/// The slots of one queue: all headers, then all payloads, which take memory as they are used.
#[derive(Debug)]
pub struct Slots {
    start: NonNull<u8>,
    count: u16,
}

impl Slots {
    pub fn new(count: u16) -> io::Result<Self> {
        let length = payloads_at(count) + usize::from(count) * STRIDE;
        // SAFETY: a new private mapping at an address of the kernel's choice. Its zeroes are headers, too.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Pages as they are used, however the machine hands out large ones; and none for a helper that is started.
        for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTFORK] {
            // SAFETY: the range is the mapping just made.
            unsafe { libc::madvise(start, length, advice) };
        }
        let start = NonNull::new(start.cast()).expect("a mapping is never at address 0");
        Ok(Self { start, count })
    }

    pub fn count(&self) -> u16 {
        self.count
    }

    /// Only one at a time may be used of a number, and none after the slots are gone.
    pub fn slot(&self, number: u16) -> Slot {
        assert!(number < self.count, "there is no slot {number}");
        let place = usize::from(number);
        // SAFETY: both are within the mapping, which has a header and a payload for each number.
        let (header, payload) = unsafe {
            let header = self.start.add(place * size_of::<Header>()).cast();
            (header, self.start.add(payloads_at(self.count) + place * STRIDE))
        };
        Slot { header, payload }
    }

    /// What REGISTER wants of one: its header and its payload.
    pub fn places(&self, number: u16) -> [libc::iovec; 2] {
        let Slot { header, payload, .. } = self.slot(number);
        [
            libc::iovec { iov_base: header.as_ptr().cast(), iov_len: size_of::<Header>() },
            libc::iovec { iov_base: payload.as_ptr().cast(), iov_len: LONGEST as usize },
        ]
    }
}

fn payloads_at(count: u16) -> usize {
    (usize::from(count) * size_of::<Header>()).next_multiple_of(PAGE)
}

impl Drop for Slots {
    fn drop(&mut self) {
        let length = payloads_at(self.count) + usize::from(self.count) * STRIDE;
        // SAFETY: the mapping was made by `new`; the ring whose kernel side writes there is closed before.
        unsafe { libc::munmap(self.start.as_ptr().cast(), length) };
    }
}

/// A slot that the kernel has filled. It is ours until the answer is committed.
#[derive(Debug)]
pub struct Slot {
    header: NonNull<Header>,
    payload: NonNull<u8>,
}

impl Slot {
    fn header(&self) -> &Header {
        // SAFETY: it lives as long as the slots, and the kernel leaves it alone until the answer is committed.
        unsafe { self.header.as_ref() }
    }

    pub fn opcode(&self) -> u32 {
        (self.header().common[0] >> 32) as u32
    }

    pub fn inode(&self) -> u64 {
        self.header().common[2]
    }

    /// The request's own fields, as words of 64 bits.
    pub fn own(&self, place: usize) -> u64 {
        self.header().own[place]
    }

    /// What a commit is to name.
    pub fn commit(&self) -> u64 {
        self.header().commit
    }

    /// What follows the fields: data, a name.
    pub fn payload(&self) -> &'static [u8] {
        let length = self.header().payload.min(LONGEST) as usize;
        // SAFETY: as `header`. The request's bytes are used up before the answer's are written.
        unsafe { std::slice::from_raw_parts(self.payload.as_ptr(), length) }
    }

    fn reply(mut self, error: i32, payload: u32) {
        // SAFETY: as `header`; no other reference to it is alive.
        let header = unsafe { self.header.as_mut() };
        header.common[0] = u64::from(OUT_HEADER + payload) | (u64::from(error.wrapping_neg() as u32) << 32);
        header.common[1] = header.commit;
        header.payload = payload;
    }
}

impl Answer for Slot {
    fn data(self, bytes: &[u8]) {
        let length = bytes.len().min(LONGEST as usize);
        // SAFETY: the payload is that long, and nobody else uses it; `bytes` are not of it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.payload.as_ptr(), length) };
        self.reply(0, length as u32);
    }

    fn written(self, length: u32) {
        let mut out = [0; WRITE_OUT];
        out[..4].copy_from_slice(&length.to_ne_bytes());
        self.data(&out);
    }

    fn done(self) {
        self.reply(0, 0);
    }

    fn refuse(self, error: i32) {
        self.reply(error, 0);
    }
}
