//! A live emulated device, on which real file systems can be created. Technically, the device is a set of files in a
//! FUSE file system. The file system sends each answer at the time that the model computes.
//!
//! The caller creates loop devices from the files (in Python, `ironbench.devices` does). Nothing in this module may
//! wait for memory that only a write to this device would free. The module `process` explains why.

mod calibrate;
mod drift;
mod due;
mod exchange;
mod filesystem;
mod image;
mod pace;
mod process;
mod recording;
mod spec;
mod tally;
mod tree;
mod undo;
mod way;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption, Session};
use ironbench_core::{Error, Result};
use serde::Serialize;

use calibrate::Probe;
use drift::{Watch, statistic};
use exchange::Exchange;
use filesystem::Files;
use pace::Mode;
pub use process::Granted;
pub use spec::Spec;
pub use undo::Cut;
use way::{AfterHold, Overhead, Way};

use crate::Op;

/// Number of threads that receive requests if the images are in memory. With images in files, more threads are needed,
/// because they wait for the files.
const THREADS_IN_MEMORY: usize = 2;
const THREADS_IN_FILES: usize = 16;
/// Time for which calibration delays an answer. This time is so short that the processors of waiting threads stay
/// awake.
const HELD_NS: u64 = 60_000;
/// Longer delays for calibration, during which processors can go to sleep. Each delay has a number of measurements. The
/// result for the first delay is also used for shorter ones. Short delays need more measurements, because the kernel
/// reports the time inside the block device in milliseconds.
const LONG_HELD: [(u64, usize); AfterHold::POINTS] =
    [(HELD_NS, 1000), (200_000, 400), (1_000_000, 80), (5_000_000, 40), (12_000_000, 20)];
/// Time for which calibration delays the answer to a large I/O, which takes long to copy.
const LARGE_HELD_NS: u64 = 200_000;
const SMALL: usize = 4096;
const LARGE: usize = 256 << 10;
const SMALL_COUNT: usize = 400;
const LARGE_COUNT: usize = 100;
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
    pub granted: Granted,
}

/// A mounted device. When it is dropped, its files are unmounted. The files must no longer be in use then.
#[derive(Debug)]
pub struct Live {
    exchange: Arc<Exchange>,
    /// The thread that tracks the overhead. This thread runs while the model determines the time of answers.
    watch: Mutex<Option<Watch>>,
    session: Mutex<Option<BackgroundSession>>,
    passes: Arc<AtomicBool>,
    granted: Granted,
    _awake: process::Awake,
}

impl Live {
    /// Mounts the device's files in `directory`. Answers leave immediately until `pace` is called.
    pub fn mount(spec: &Spec, directory: &Path) -> Result<Self> {
        let (granted, awake) = process::prepare();
        let exchange = Arc::new(Exchange::new(spec)?);
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("ironbench".into()), MountOption::NoDev, MountOption::NoSuid, MountOption::NoExec];
        config.n_threads = Some(if spec.backing.is_some() { THREADS_IN_FILES } else { THREADS_IN_MEMORY });
        config.clone_fd = true;
        let passes = Arc::new(AtomicBool::new(false));
        let session = Files::new(Arc::clone(&exchange), Arc::clone(&passes))
            .map_err(std::io::Error::other)
            .and_then(|files| Session::new(files, directory, &config)?.spawn())
            .map_err(|error| {
                Error::failure(format!("FUSE file system on {}", directory.display()), error.to_string())
                    .hint("emulated devices need root and the kernel's FUSE (`ironbench doctor`)")
            })?;
        let session = Mutex::new(Some(session));
        Ok(Self { exchange, watch: Mutex::new(None), session, passes, granted, _awake: awake })
    }

    /// Measures the I/O path through a block device created from one of the files. Overwrites the first `length` bytes.
    pub fn calibrate(&self, block_device: &str, length: u64) -> Result<Calibration> {
        let measured = self.measured(block_device, length);
        self.exchange.pace(Mode::Free);
        measured.map_err(|error| Error::failure(format!("calibration on {block_device}"), error.to_string()))
    }

    /// Starts the pacing of answers. From now on, the block devices created from the files complete I/Os at the times
    /// of the model (see `drift`). If the kernel keeps no statistics for these block devices, the overhead measured at
    /// mount is used.
    pub fn pace(&self, block_devices: &[String]) {
        let stats = block_devices.iter().map(|one| statistic(one)).collect::<std::io::Result<_>>();
        let wanted = self.exchange.takes_time().then_some(stats);
        let started = wanted.and_then(|stats| Watch::start(Arc::clone(&self.exchange), stats.ok()?).ok());
        self.watched(started);
        self.exchange.pace(Mode::Model);
    }

    /// Sends all answers immediately.
    pub fn hurry(&self) {
        self.watched(None);
        self.exchange.pace(Mode::Free);
    }

    fn watched(&self, watch: Option<Watch>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
        self.exchange.pace.as_at_mount();
    }

    pub fn counters(&self) -> Vec<u8> {
        self.exchange.counters()
    }

    /// Cuts the power; see `Exchange::cut`.
    pub fn cut(&self, how: Cut, seed: u64) -> Result<usize> {
        self.watched(None); // there will be new block devices
        self.exchange.cut(how, seed)
    }

    pub fn revive(&self) {
        self.exchange.revive();
    }

    /// Ends the trace, if there is one.
    pub fn end_trace(&self) -> Result<()> {
        self.exchange.end_trace()
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

    fn measured(&self, block_device: &str, length: u64) -> std::io::Result<Calibration> {
        let probe = Probe::open(block_device, length)?;
        self.exchange.pace(Mode::Free);
        probe.mean_ns(Op::Write, LARGE, LARGE_COUNT)?; // allocates the image's pages
        let read_latency_ns = probe.mean_ns(Op::Read, SMALL, SMALL_COUNT)?;
        let reads_per_s = probe.rate(RATE_DEPTH, RATE_SPAN)?;
        let held = |op, size, count, held_ns| -> std::io::Result<f64> {
            let held_ns = if self.exchange.takes_time() { held_ns } else { 0 };
            self.exchange.pace(if held_ns > 0 { Mode::Fixed(held_ns) } else { Mode::Free });
            Ok((probe.mean_ns(op, size, count)? - held_ns as f64).max(0.0))
        };
        let stat = statistic(block_device).ok();
        let (mut waking, mut beyond) = (AfterHold::default(), Some(AfterHold::default()));
        let long_held = LONG_HELD.into_iter().filter(|_| self.exchange.takes_time());
        for (place, (held_ns, count)) in long_held.enumerate() {
            self.exchange.pace(Mode::Fixed(held_ns));
            let (taken_ns, beyond_ns) = probe.reads_ns(stat.as_deref(), count)?;
            waking.after_ns[place] = held_ns;
            waking.more_ns[place] = (taken_ns - held_ns as f64).max(0.0);
            beyond = beyond.zip(beyond_ns).map(|(mut beyond, ns)| {
                (beyond.after_ns[place], beyond.more_ns[place]) = (held_ns, ns);
                beyond
            });
        }
        let awake = waking.more_ns[0];
        waking.more_ns = waking.more_ns.map(|taken| (taken - awake).max(0.0));
        let before = self.exchange.lateness();
        let way = |op: Op| -> std::io::Result<Way> {
            let small = held(op, SMALL, SMALL_COUNT, HELD_NS)?;
            let large = held(op, LARGE, LARGE_COUNT, LARGE_HELD_NS)? - waking.after(LARGE_HELD_NS) as f64;
            Ok(Way::through((SMALL, small), (LARGE, large)))
        };
        let (read, write) = (way(Op::Read)?, way(Op::Write)?);
        let flush = Way { each_ns: held(Op::Flush, SMALL, LARGE_COUNT, HELD_NS)?, byte_ns: 0.0 };
        let after = self.exchange.lateness();
        let late_ns = (after.0 - before.0) / (after.1 - before.1).max(1);
        let overhead = Overhead { read, write, flush, waking, late_ns, beyond };
        self.exchange.calibrated(overhead, reads_per_s);
        let (passes, granted) = (self.passes.load(Acquire), self.granted.clone());
        Ok(Calibration { overhead, reads_per_s, read_latency_ns, passes, granted })
    }
}
