//! A live emulated device, on which real file systems can be created. Technically, the device is a set of files in a
//! FUSE file system. The file system sends each answer at the time that the model computes.
//!
//! The caller creates loop devices from the files (in Python, `ironbench.devices` does). Nothing in this module may
//! wait for memory that only a write to this device would free. The module `process` explains why.

mod calibrate;
mod delay_queue;
mod filesystem;
mod image;
mod io_path;
mod overhead_tracker;
mod pace;
mod process;
mod request_handler;
mod spec;
mod tally;
mod trace_writer;
mod tree;
mod undo;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption, Session};
use ironbench_core::{Error, Result};
use serde::Serialize;

use calibrate::BlockDevice;
use filesystem::PartitionFiles;
use io_path::{IoPath, Overhead, WakeupDelay};
use overhead_tracker::{OverheadTracker, stat_file};
use pace::Mode;
pub use process::ProcessSettings;
use request_handler::RequestHandler;
pub use spec::DeviceSpec;
pub use undo::PowerCut;

use crate::Op;

/// Number of threads that receive requests if the images are in memory. With images in files, more threads are needed,
/// because they wait for the files.
const THREADS_IN_MEMORY: usize = 2;
const THREADS_IN_FILES: usize = 16;
/// Time for which calibration delays an answer. This time is so short that the processors of waiting threads stay
/// awake.
const CALIBRATION_DELAY_NS: u64 = 60_000;
/// Longer delays for calibration, during which processors can go to sleep. Each delay has a number of measurements. The
/// result for the first delay is also used for shorter ones. Short delays need more measurements, because the kernel
/// reports the time inside the block device in milliseconds.
const LONG_DELAYS: [(u64, usize); WakeupDelay::POINTS] =
    [(CALIBRATION_DELAY_NS, 1000), (200_000, 400), (1_000_000, 80), (5_000_000, 40), (12_000_000, 20)];
/// Time for which calibration delays the answer to a large I/O, which takes long to copy.
const LARGE_IO_DELAY_NS: u64 = 200_000;
const SMALL_IO: usize = 4096;
const LARGE_IO: usize = 256 << 10;
const SMALL_IO_COUNT: usize = 400;
const LARGE_IO_COUNT: usize = 100;
const RATE_DEPTH: usize = 16;
const RATE_SPAN: Duration = Duration::from_millis(300);

/// The measured I/O path of this machine.
#[derive(Debug, Clone, Serialize)]
pub struct Calibration {
    pub overhead: Overhead,
    /// 4 KiB reads per second when no answer is delayed.
    pub reads_per_s: f64,
    /// Mean latency of consecutive 4 KiB reads when no answer is delayed.
    pub read_latency_ns: f64,
    /// Whether the kernel passes requests through. Otherwise this process gets them through `/dev/fuse`.
    pub passes: bool,
    pub granted: ProcessSettings,
}

/// A mounted device. When it is dropped, its files are unmounted. The files must no longer be in use then.
#[derive(Debug)]
pub struct MountedDevice {
    request_handler: Arc<RequestHandler>,
    /// The thread that tracks the overhead. This thread runs while the model determines the time of answers.
    tracker: Mutex<Option<OverheadTracker>>,
    session: Mutex<Option<BackgroundSession>>,
    passes: Arc<AtomicBool>,
    granted: ProcessSettings,
    _latency_request: process::LatencyRequest,
}

impl MountedDevice {
    /// Mounts the device's files in `directory`. Answers leave immediately until `pace` is called.
    pub fn mount(spec: &DeviceSpec, directory: &Path) -> Result<Self> {
        let (granted, awake) = process::prepare();
        let request_handler = Arc::new(RequestHandler::new(spec)?);
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("ironbench".into()), MountOption::NoDev, MountOption::NoSuid, MountOption::NoExec];
        config.n_threads = Some(if spec.backing.is_some() { THREADS_IN_FILES } else { THREADS_IN_MEMORY });
        config.clone_fd = true;
        let passes = Arc::new(AtomicBool::new(false));
        let session = PartitionFiles::new(Arc::clone(&request_handler), Arc::clone(&passes))
            .map_err(std::io::Error::other)
            .and_then(|files| Session::new(files, directory, &config)?.spawn())
            .map_err(|error| {
                Error::failure(format!("FUSE file system on {}", directory.display()), error.to_string())
                    .hint("emulated devices need root and the kernel's FUSE (`ironbench doctor`)")
            })?;
        let session = Mutex::new(Some(session));
        Ok(Self { request_handler, tracker: Mutex::new(None), session, passes, granted, _latency_request: awake })
    }

    /// Measures the I/O path through a block device created from one of the files. Overwrites the first `length` bytes.
    pub fn calibrate(&self, block_device: &str, length: u64) -> Result<Calibration> {
        let measured = self.measure(block_device, length);
        self.request_handler.pace(Mode::Immediate);
        measured.map_err(|error| Error::failure(format!("calibration on {block_device}"), error.to_string()))
    }

    /// Starts the pacing of answers. From now on, the block devices created from the files complete I/Os at the times
    /// of the model (see `overhead_tracker`). If the kernel keeps no statistics for these block devices, the overhead
    /// measured at mount is used.
    pub fn pace(&self, block_devices: &[String]) {
        let stats = block_devices.iter().map(|one| stat_file(one)).collect::<std::io::Result<_>>();
        let wanted = self.request_handler.takes_time().then_some(stats);
        let started =
            wanted.and_then(|stats| OverheadTracker::start(Arc::clone(&self.request_handler), stats.ok()?).ok());
        self.set_tracker(started);
        self.request_handler.pace(Mode::Model);
    }

    /// Sends all answers immediately.
    pub fn stop_pacing(&self) {
        self.set_tracker(None);
        self.request_handler.pace(Mode::Immediate);
    }

    fn set_tracker(&self, tracker: Option<OverheadTracker>) {
        *self.tracker.lock().unwrap_or_else(PoisonError::into_inner) = tracker;
        self.request_handler.pace.reset_overhead();
    }

    pub fn counters(&self) -> Vec<u8> {
        self.request_handler.counters()
    }

    /// Cuts the power; see `RequestHandler::cut_power`.
    pub fn cut_power(&self, how: PowerCut, seed: u64) -> Result<usize> {
        self.set_tracker(None); // there will be new block devices
        self.request_handler.cut_power(how, seed)
    }

    pub fn restore_power(&self) {
        self.request_handler.restore_power();
    }

    /// Ends the trace, if there is one.
    pub fn end_trace(&self) -> Result<()> {
        self.request_handler.end_trace()
    }

    /// Unmounts the files.
    ///
    /// # Errors
    /// Failure: something still uses the files.
    pub fn unmount(&self) -> Result<()> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(session) = session else { return Ok(()) };
        session.umount_and_join().map_err(|error| Error::failure("FUSE file system", error.to_string()))
    }

    fn measure(&self, block_device: &str, length: u64) -> std::io::Result<Calibration> {
        let device = BlockDevice::open(block_device, length)?;
        self.request_handler.pace(Mode::Immediate);
        device.mean_ns(Op::Write, LARGE_IO, LARGE_IO_COUNT)?; // allocates the image's pages
        let read_latency_ns = device.mean_ns(Op::Read, SMALL_IO, SMALL_IO_COUNT)?;
        let reads_per_s = device.rate(RATE_DEPTH, RATE_SPAN)?;
        let excess_ns = |op, size, count, delay_ns| -> std::io::Result<f64> {
            let delay_ns = if self.request_handler.takes_time() { delay_ns } else { 0 };
            self.request_handler.pace(if delay_ns > 0 { Mode::Fixed(delay_ns) } else { Mode::Immediate });
            Ok((device.mean_ns(op, size, count)? - delay_ns as f64).max(0.0))
        };
        let stat = stat_file(block_device).ok();
        let (mut waking, mut beyond) = (WakeupDelay::default(), Some(WakeupDelay::default()));
        let long_delays = LONG_DELAYS.into_iter().filter(|_| self.request_handler.takes_time());
        for (index, (delay_ns, count)) in long_delays.enumerate() {
            self.request_handler.pace(Mode::Fixed(delay_ns));
            let (taken_ns, beyond_ns) = device.reads_ns(stat.as_deref(), count)?;
            waking.after_ns[index] = delay_ns;
            waking.more_ns[index] = (taken_ns - delay_ns as f64).max(0.0);
            beyond = beyond.zip(beyond_ns).map(|(mut beyond, ns)| {
                (beyond.after_ns[index], beyond.more_ns[index]) = (delay_ns, ns);
                beyond
            });
        }
        let awake = waking.more_ns[0];
        waking.more_ns = waking.more_ns.map(|taken| (taken - awake).max(0.0));
        let before = self.request_handler.lateness();
        let io_path = |op: Op| -> std::io::Result<IoPath> {
            let small = excess_ns(op, SMALL_IO, SMALL_IO_COUNT, CALIBRATION_DELAY_NS)?;
            let large =
                excess_ns(op, LARGE_IO, LARGE_IO_COUNT, LARGE_IO_DELAY_NS)? - waking.after(LARGE_IO_DELAY_NS) as f64;
            Ok(IoPath::fit((SMALL_IO, small), (LARGE_IO, large)))
        };
        let (read, write) = (io_path(Op::Read)?, io_path(Op::Write)?);
        let flush =
            IoPath { each_ns: excess_ns(Op::Flush, SMALL_IO, LARGE_IO_COUNT, CALIBRATION_DELAY_NS)?, byte_ns: 0.0 };
        let after = self.request_handler.lateness();
        let late_ns = (after.0 - before.0) / (after.1 - before.1).max(1);
        let overhead = Overhead { read, write, flush, waking, late_ns, beyond };
        self.request_handler.set_calibration(overhead, reads_per_s);
        let (passes, granted) = (self.passes.load(Acquire), self.granted.clone());
        Ok(Calibration { overhead, reads_per_s, read_latency_ns, passes, granted })
    }
}
