//! Off-CPU time, which lasts from the moment at which a CPU switches away from a thread until a CPU switches back to
//! it. The wake-up of the thread divides this time into two parts.

use foldhash::HashMap;

use crate::processes::{NameId, Role};
use crate::stacks::{EMPTY, StackId};

/// Bits of `prev_state` that are set for a thread that is exiting (EXIT_DEAD and EXIT_ZOMBIE, include/linux/sched.h).
const ENDS: i64 = 0x10 | 0x20;
/// Bit of `prev_state` that is set for a thread that was preempted (TASK_REPORT_MAX, include/linux/sched.h).
const PREEMPTED: i64 = 0x100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Waiting to be woken, e.g. for a lock, I/O or the network.
    Blocked,
    /// Waiting for a CPU although the thread is ready to run.
    CpuQueue,
}

/// The state of a thread when a CPU switched away from it.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub tid: i32,
    pub role: Role,
    pub name: NameId,
    pub stack: StackId,
}

struct Off {
    /// The thread's PID in tracepoints.
    pid: i64,
    thread: Thread,
    since: u64,
    preempted: bool,
    /// Whether there was a pause in the recording of switches since then. The thread may have run in the pause.
    carried: bool,
    /// Time of the wake-up, and the stack of the waker.
    woken: Option<(u64, StackId)>,
}

/// A part of a thread's off-CPU time, with a single reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Wait {
    pub tid: i32,
    pub role: Role,
    pub name: NameId,
    pub reason: Reason,
    pub stack: StackId,
    pub waker: StackId,
    pub start: u64,
    pub end: u64,
}

/// The threads that are off the CPU. In a container, the PID of a thread in tracepoints differs from the thread ID that
/// the container's processes and other records contain.
#[derive(Default)]
pub struct Waits {
    off: HashMap<i32, Off>,
    /// The thread ID of each PID.
    tids: HashMap<i64, i32>,
}

impl Waits {
    /// Notes that a CPU switched away from a thread, whose `prev_state` is `state`.
    pub fn switched_out(&mut self, pid: i64, thread: Thread, state: i64, time: u64) {
        if state & ENDS != 0 {
            self.off.remove(&thread.tid);
            self.tids.remove(&pid);
            return;
        }
        let preempted = state == 0 || state & PREEMPTED != 0;
        self.tids.insert(pid, thread.tid);
        self.off.insert(thread.tid, Off { pid, thread, since: time, preempted, carried: false, woken: None });
    }

    /// Whether the thread is blocked and has not been woken yet.
    pub fn is_blocked(&self, pid: i64) -> bool {
        let off = self.tids.get(&pid).and_then(|tid| self.off.get(tid));
        off.is_some_and(|off| !off.preempted && off.woken.is_none())
    }

    pub fn woken(&mut self, pid: i64, waker: StackId, time: u64) {
        if let Some(off) = self.tids.get(&pid).and_then(|tid| self.off.get_mut(tid)) {
            off.woken = Some((time, waker));
        }
    }

    pub fn switched_in(&mut self, tid: i32, time: u64) -> Vec<Wait> {
        self.off.remove(&tid).map(|off| parts(&off, time)).unwrap_or_default()
    }

    pub fn exited(&mut self, tid: i32) {
        if let Some(off) = self.off.remove(&tid) {
            self.tids.remove(&off.pid);
        }
    }

    /// Notes that a thread ran after the last recorded switch.
    pub fn ran(&mut self, tid: i32) {
        if self.off.get(&tid).is_some_and(|off| off.carried) {
            self.off.remove(&tid);
        }
    }

    /// Returns the waits up to now. The threads that are still off the CPU stay in the list. When switches are recorded
    /// again, they are assumed to wait at the same stacks, because in a steady state the same stacks are equally
    /// frequent at both times.
    pub fn waits_until(&mut self, time: u64) -> Vec<Wait> {
        let waits = self.off.values().flat_map(|off| parts(off, time)).collect();
        for off in self.off.values_mut() {
            (off.since, off.carried) = (time, true);
            off.woken = off.woken.map(|(_, waker)| (time, waker));
        }
        waits
    }
}

fn parts(off: &Off, end: u64) -> Vec<Wait> {
    let Thread { tid, role, name, stack } = off.thread;
    let part = |reason, waker, start, end| Wait { tid, role, name, reason, stack, waker, start, end };
    match off.woken {
        _ if off.preempted => vec![part(Reason::CpuQueue, EMPTY, off.since, end)],
        None => vec![part(Reason::Blocked, EMPTY, off.since, end)],
        Some((woken, waker)) => {
            vec![part(Reason::Blocked, waker, off.since, woken), part(Reason::CpuQueue, EMPTY, woken, end)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread = Thread { tid: 5, role: Role::Engine, name: 0, stack: 9 };

    fn wait(reason: Reason, waker: StackId, start: u64, end: u64) -> Wait {
        Wait { tid: 5, role: Role::Engine, name: 0, reason, stack: 9, waker, start, end }
    }

    #[test]
    fn a_blocked_thread_waits_for_a_cpu_after_its_wake_up() {
        let mut waits = Waits::default();
        waits.switched_out(5, THREAD, 1, 100);
        assert!(waits.is_blocked(5));
        waits.woken(5, 3, 150);
        assert!(!waits.is_blocked(5));
        assert_eq!(
            waits.switched_in(5, 170),
            [wait(Reason::Blocked, 3, 100, 150), wait(Reason::CpuQueue, 0, 150, 170)]
        );
        assert_eq!(waits.switched_in(5, 180), []);
    }

    #[test]
    fn a_thread_in_a_container_is_woken_by_the_pid_outside() {
        let mut waits = Waits::default();
        waits.switched_out(1005, THREAD, 1, 100);
        assert!(!waits.is_blocked(5));
        waits.woken(1005, 3, 150);
        assert_eq!(waits.switched_in(5, 150).len(), 2);
    }

    #[test]
    fn a_preempted_thread_waits_for_a_cpu_all_the_time() {
        for state in [0, PREEMPTED] {
            let mut waits = Waits::default();
            waits.switched_out(5, THREAD, state, 100);
            assert!(!waits.is_blocked(5));
            assert_eq!(waits.switched_in(5, 170), [wait(Reason::CpuQueue, 0, 100, 170)]);
        }
    }

    #[test]
    fn a_thread_that_ends_does_not_wait() {
        let mut waits = Waits::default();
        waits.switched_out(5, THREAD, ENDS, 100);
        waits.switched_out(6, Thread { tid: 6, ..THREAD }, 1, 100);
        waits.exited(6);
        assert_eq!(waits.waits_until(200), []);
    }

    #[test]
    fn a_wait_that_has_not_ended_is_divided() {
        let mut waits = Waits::default();
        waits.switched_out(5, THREAD, 2, 100);
        assert_eq!(waits.waits_until(300), [wait(Reason::Blocked, 0, 100, 300)]);
        assert_eq!(waits.switched_in(5, 400), [wait(Reason::Blocked, 0, 300, 400)]);
    }

    #[test]
    fn a_thread_that_ran_while_switches_were_not_recorded_does_not_wait() {
        let mut waits = Waits::default();
        waits.switched_out(5, THREAD, 2, 100);
        waits.ran(5);
        assert!(waits.is_blocked(5));
        waits.waits_until(300);
        waits.ran(5);
        assert_eq!(waits.switched_in(5, 400), []);
    }
}
