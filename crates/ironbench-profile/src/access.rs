//! Determines which processes the kernel permits to sample, and what is missing for a profile.

use std::fs;
use std::io;

use crate::event::{Event, Target, Trigger};
use crate::profiler::Kind;
use crate::tracefs::{Missing, Scheduler};

/// The kernel has no performance events, or a container's filter refuses them. The detail is the error message.
pub const NO_PERF_EVENTS: &str = "no-perf-events";
/// The user has no permission to sample. The detail is the value of sysctl kernel.perf_event_paranoid.
pub const PARANOID: &str = "paranoid";
/// tracefs is not mounted. The detail is its usual mount point.
pub const NO_TRACEFS: &str = "no-tracefs";
/// The kernel lacks a tracepoint. The detail is the tracepoint's name.
pub const NO_TRACEPOINTS: &str = "no-tracepoints";
/// Only processes of the same user can be sampled. The detail is the value of sysctl kernel.perf_event_paranoid.
pub const ONLY_OWN: &str = "only-own";

const PARANOID_FILE: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The processes that may be sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Everything,
    /// Only processes of the same user. `kernel` says whether their time in the kernel may also be sampled.
    Own {
        kernel: bool,
    },
}

/// One of the codes above, and its detail.
pub type Lack = (&'static str, String);

/// Returns what is missing for a profile of these kinds. With `ONLY_OWN`, a restricted profile is possible. With any
/// other code, no profile is possible.
pub fn available(kinds: &[Kind]) -> Vec<Lack> {
    match access(kinds) {
        Ok(Access::Everything) => Vec::new(),
        Ok(Access::Own { .. }) => vec![(ONLY_OWN, paranoid())],
        Err(missing) => missing,
    }
}

/// Tries to open events to find out which processes may be sampled.
pub fn access(kinds: &[Kind]) -> Result<Access, Vec<Lack>> {
    let cpu = kinds.contains(&Kind::Cpu).then(clock_access);
    let wait = kinds.contains(&Kind::Wait).then(tracepoint_access);
    let tried: Vec<_> = cpu.into_iter().chain(wait).collect();
    let mut missing: Vec<Lack> = tried.iter().filter_map(|access| access.as_ref().err().cloned()).collect();
    missing.dedup();
    if missing.is_empty() { Ok(tried.into_iter().flatten().last().unwrap_or(Access::Everything)) } else { Err(missing) }
}

fn clock_access() -> Result<Access, Lack> {
    let clock = Trigger::CpuClock { hz: 99 };
    let cpu = online_cpus().first().copied().unwrap_or(0);
    let Err(error) = Event::open(clock, Target::whole_cpu(cpu), false) else { return Ok(Access::Everything) };
    if !is_refused(&error) {
        return Err((NO_PERF_EVENTS, error.to_string()));
    }
    let own = Target::own_thread();
    if Event::open(clock, Target { kernel: true, ..own }, false).is_ok() {
        return Ok(Access::Own { kernel: true });
    }
    match Event::open(clock, own, false) {
        Ok(_) => Ok(Access::Own { kernel: false }),
        // With a value of at most 2, the kernel permits this event. The refusal therefore comes from a filter of system
        // calls.
        Err(error) if paranoid().parse().is_ok_and(|value: i32| value <= 2) => Err((NO_PERF_EVENTS, error.to_string())),
        Err(_) => Err((PARANOID, paranoid())),
    }
}

fn tracepoint_access() -> Result<Access, Lack> {
    let scheduler = Scheduler::find().map_err(|missing| match missing {
        Missing::Tracefs => (NO_TRACEFS, "/sys/kernel/tracing".to_owned()),
        Missing::Tracepoint(name) => (NO_TRACEPOINTS, name),
        Missing::Permission(_) => (PARANOID, paranoid()),
    })?;
    let switch = Trigger::Switch { id: scheduler.switch };
    let cpu = online_cpus().first().copied().unwrap_or(0);
    match Event::open(switch, Target::whole_cpu(cpu), false) {
        Ok(_) => Ok(Access::Everything),
        Err(error) if is_refused(&error) => Err((PARANOID, paranoid())),
        Err(error) => Err((NO_PERF_EVENTS, error.to_string())),
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn paranoid() -> String {
    fs::read_to_string(PARANOID_FILE).unwrap_or_default().trim().to_owned()
}

/// Returns the numbers of the CPUs in use.
pub fn online_cpus() -> Vec<i32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".to_owned());
    cpus(list.trim())
}

/// Parses a list such as `0-3,8`.
fn cpus(list: &str) -> Vec<i32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_contains_numbers_and_ranges() {
        assert_eq!(cpus("0-2,5,8-9"), [0, 1, 2, 5, 8, 9]);
        assert_eq!(cpus("0"), [0]);
    }
}
