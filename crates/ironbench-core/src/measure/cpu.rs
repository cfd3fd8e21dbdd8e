//! CPU time and placement of the calling thread.

use super::clock::{MICROSECOND, SECOND};

/// CPU time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    pub user_ns: u64,
    pub system_ns: u64,
}

impl Cpu {
    /// Of the calling thread since it began (`getrusage(2)`, `RUSAGE_THREAD`).
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

/// Keeps the calling thread on `cpus`; does nothing when the list is empty. False when the kernel refuses.
pub fn bind_thread(cpus: &[usize]) -> bool {
    if cpus.is_empty() {
        return true;
    }
    // SAFETY: cpu_set_t is plain data; CPU_SET ignores nothing, so numbers beyond the set are left out first.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// The calling thread wakes on time and goes before ordinary ones, as far as that is allowed.
pub fn hasten_thread() -> bool {
    // SAFETY: numbers only; the second call reads a structure that lives on the stack.
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
    fn cpu_time_grows_while_computing() {
        let before = Cpu::of_thread();
        let mut sum = 0u64;
        while Cpu::of_thread().since(before).user_ns == 0 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(Cpu::of_thread().since(before).user_ns > 0);
    }
}
