//! Instants in nanoseconds of `CLOCK_MONOTONIC`, which the kernel's timers also use.
//!
//! The vDSO reads the clock in about 20 ns without entering the kernel. A calibrated `rdtsc` would take half that time.
//! But NTP slews the clock and the timers with it, and `rdtsc` would not follow.

pub const MICROSECOND: u64 = 1_000;
pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// An instant that never comes.
pub const NEVER: u64 = u64::MAX;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes, and both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Returns the current instant, for computing durations and setting timers.
#[inline]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the current time in nanoseconds since 1970, for display.
pub fn unix_now() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Converts seconds to nanoseconds. Negative values and NaN become 0.
pub fn from_seconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64).round() as u64
}

pub fn to_seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

/// Sleeps until `instant`, to the precision of the kernel's high-resolution timers.
pub fn sleep_until(instant: u64) {
    let time = libc::timespec { tv_sec: (instant / SECOND) as i64, tv_nsec: (instant % SECOND) as i64 };
    // SAFETY: `time` outlives the call. An interrupted sleep is repeated until the absolute instant has passed.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

/// Asks the kernel not to delay this thread's timers: the default slack of 50 µs would appear as lateness.
pub fn remove_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and affects only the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}
