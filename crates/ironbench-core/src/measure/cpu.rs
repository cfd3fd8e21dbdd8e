//! CPU time of threads, and the CPUs on which they run.

use super::clock::{MICROSECOND, SECOND};

/// CPU time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl CpuTime {
    /// Returns the CPU time of the calling thread since it started (`getrusage(2)`, `RUSAGE_THREAD`).
    pub fn of_thread() -> Self {
        // SAFETY: rusage is plain data, for which zeros are valid, and the kernel fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let ns = |time: libc::timeval| time.tv_sec as u64 * SECOND + time.tv_usec as u64 * MICROSECOND;
        Self { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

/// The CPU clock of a thread, which every thread of the process can read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadClock {
    id: libc::clockid_t,
    thread: libc::pid_t,
}

impl ThreadClock {
    /// Returns the clock of the calling thread (`pthread_getcpuclockid(3)`).
    pub fn of_thread() -> Option<Self> {
        let mut id = 0;
        // SAFETY: the calling thread exists, and the number is written to a variable on the stack.
        let (error, thread) =
            unsafe { (libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id), libc::gettid()) };
        (error == 0).then_some(Self { id, thread })
    }

    /// Returns the CPU time of the thread since it started. Returns None if the thread has ended. The sum of user and
    /// system time is exact to the nanosecond. It is divided in the ratio of the kernel's tick counts
    /// (`proc_pid_stat(5)`, fields 14 and 15).
    pub fn read(self) -> Option<CpuTime> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel fills a structure on the stack, or refuses a clock whose thread has ended.
        if unsafe { libc::clock_gettime(self.id, &raw mut time) } != 0 {
            return None;
        }
        let total = time.tv_sec as u64 * SECOND + time.tv_nsec as u64;
        let (user, system) = self.ticks().unwrap_or((1, 0));
        let share = if user + system > 0 { user as f64 / (user + system) as f64 } else { 1.0 };
        let user_ns = (total as f64 * share) as u64;
        Some(CpuTime { user_ns, system_ns: total.saturating_sub(user_ns) })
    }

    fn ticks(self) -> Option<(u64, u64)> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.thread)).ok()?;
        // The thread's name, which is in parentheses, may contain spaces and parentheses.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    }
}

/// Pins the calling thread to `cpus`. An empty list changes nothing. Returns false if the kernel refuses.
pub fn pin_thread(cpus: &[usize]) -> bool {
    if cpus.is_empty() {
        return true;
    }
    // SAFETY: cpu_set_t is plain data. A CPU number beyond the set would be invalid for CPU_SET, so such numbers are
    // filtered out.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Removes the timer slack of the calling thread. Also makes the thread run before ordinary threads, if that is
/// permitted (sched(7), SCHED_FIFO). Returns whether the kernel granted this priority.
pub fn raise_thread_priority() -> bool {
    // SAFETY: the first call takes only integers; the second reads a structure on the stack.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        let priority = libc::sched_param { sched_priority: 1 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_reads_the_same_cpu_time() {
        let clock = ThreadClock::of_thread().unwrap();
        let total = |cpu: CpuTime| cpu.user_ns + cpu.system_ns;
        let mut sum = 0u64;
        while total(CpuTime::of_thread()) < 30_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let before = total(CpuTime::of_thread());
        let read = std::thread::spawn(move || clock.read()).join().unwrap().unwrap();
        let after = total(CpuTime::of_thread());
        // The tolerance is necessary because getrusage rounds to microseconds.
        assert!(before <= total(read) + 2_000 && total(read) <= after + 2_000, "{before} {read:?} {after}");
        let ended = std::thread::spawn(ThreadClock::of_thread).join().unwrap().unwrap();
        assert_eq!(ended.read(), None);
    }

    #[test]
    fn cpu_time_grows_while_computing() {
        let before = CpuTime::of_thread();
        let mut sum = 0u64;
        while CpuTime::of_thread().since(before).user_ns == 0 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(CpuTime::of_thread().since(before).user_ns > 0);
    }
}
