//! Settings of the device's process, so that the process never waits for its own device and wakes on time.

use std::fs::{File, OpenOptions};
use std::io::Write;

use ironbench_core::measure::cpu::raise_thread_priority;
use ironbench_core::measure::threads::run_parallel;

/// Flag that locks a page when it is first accessed (mlockall(2), Linux 4.4). Without it, all pages of a sparse image
/// would be locked immediately.
const MCL_ONFAULT: libc::c_int = 4;
/// prctl(2) option for a process that serves I/O (Linux 5.6). When such a process needs memory, the kernel does not
/// free memory by writing to a device, which may be the process's own.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// The settings that the kernel granted, which are recorded with the results.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct ProcessSettings {
    pub memory_locked: bool,
    pub io_flusher: bool,
    pub dma_latency: bool,
    /// Whether threads run before ordinary threads (sched(7), SCHED_FIFO), like an interrupt of a real device.
    pub real_time: bool,
}

/// Keeps the processor out of deep idle states as long as this value exists.
#[derive(Debug)]
pub struct LatencyRequest(#[allow(dead_code)] Option<File>);

pub fn prepare() -> (ProcessSettings, LatencyRequest) {
    // SAFETY: these calls take only numbers.
    let memory_locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | MCL_ONFAULT) } == 0;
    // The kernel requires full words, and zero in unused arguments.
    let (yes, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: these calls take only numbers.
    let io_flusher = unsafe { libc::prctl(PR_SET_IO_FLUSHER, yes, none, none, none) } == 0;
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let awake = request_low_latency();
    (
        ProcessSettings { memory_locked, io_flusher, dma_latency: awake.is_some(), real_time: may_run_real_time() },
        LatencyRequest(awake),
    )
}

/// Opens the file that keeps the processor out of idle states while it is open (Documentation/power/pm_qos_interface).
fn request_low_latency() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// Returns the user and system time that all threads of this process have used so far.
pub fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a structure on the stack.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn may_run_real_time() -> bool {
    run_parallel("device-try", 1, |_, _| Ok(raise_thread_priority())).is_ok_and(|allowed| allowed[0])
}
