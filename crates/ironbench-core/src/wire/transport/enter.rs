//! The only system call in a round of the io_uring transport.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use io_uring::IoUring;

use crate::measure::clock::SECOND;

/// Calls io_uring_enter(2).
/// The ring's descriptor is registered with the ring itself, which saves a look-up at every call.
pub struct Enter {
    /// Index in the thread's table of registered rings, or the ring's own descriptor.
    ring: RawFd,
    flags: u32,
}

const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
const ENTER_REGISTERED_RING: u32 = 16;
const REGISTER_RING_FDS: u32 = 20;

/// Mirrors `struct io_uring_getevents_arg`.
#[repr(C)]
struct Arguments {
    signals: u64,
    signals_size: u32,
    min_wait_us: u32,
    timeout: u64,
}

/// Mirrors `struct io_uring_rsrc_update`.
#[repr(C)]
struct Registration {
    offset: u32,
    reserved: u32,
    data: u64,
}

impl Enter {
    pub fn of(ring: &IoUring) -> Self {
        let fd = ring.as_raw_fd();
        let mut place = Registration { offset: u32::MAX, reserved: 0, data: fd as u64 };
        // SAFETY: the structure lives until the call returns. The kernel writes the chosen index into it.
        let registered =
            unsafe { libc::syscall(libc::SYS_io_uring_register, fd, REGISTER_RING_FDS, &raw mut place, 1) };
        match registered {
            1 => Self { ring: place.offset as RawFd, flags: ENTER_REGISTERED_RING },
            _ => Self { ring: fd, flags: 0 },
        }
    }

    /// Submits entries and waits up to `timeout_ns` for a completion. Returns the number of submitted entries.
    #[inline]
    pub fn call(&self, submit: u32, timeout_ns: u64) -> io::Result<u32> {
        let time = [(timeout_ns / SECOND) as i64, (timeout_ns % SECOND) as i64];
        let timeout = time.as_ptr() as u64;
        let arguments = Arguments { signals: 0, signals_size: 0, min_wait_us: 0, timeout };
        let want = u32::from(timeout_ns > 0);
        // SAFETY: `time` and `arguments` live until the call returns.
        let submitted = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.ring,
                submit,
                want,
                self.flags | ENTER_GETEVENTS | ENTER_EXT_ARG,
                &raw const arguments,
                size_of::<Arguments>(),
            )
        };
        u32::try_from(submitted).map_err(|_| io::Error::last_os_error())
    }
}
