//! Opens events of the kernel's performance monitoring (perf_event_open(2)).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys::{bindings, ioctls, perf_event_open};

use crate::unwind::REGISTERS;

/// Number of bytes of the user stack that the kernel copies with each sample of the clock, starting at the innermost
/// frame. The next constant is the number for a switch. The number for a switch is smaller, because there are more
/// switches than samples of the clock.
const CLOCK_STACK: u32 = 16 << 10;
const SWITCH_STACK: u32 = 8 << 10;
/// Filter of the switches: the idle task does not wait.
const NOT_IDLE: &CStr = c"prev_pid != 0";

/// What triggers the samples of an event.
#[derive(Clone, Copy, Debug)]
pub enum Trigger {
    /// The software clock, which takes this many samples per second of CPU time.
    CpuClock { hz: u64 },
    /// Nothing. The event only announces processes.
    Nothing,
    /// Every hit of the tracepoint with this ID.
    Tracepoint { id: u64 },
    /// Every switch away from a thread, except for the idle task. `id` is the ID of the tracepoint sched_switch. The
    /// samples contain the registers and the user stack, so that this program can unwind it. The event also records
    /// every switch to a thread, without a sample.
    Switch { id: u64 },
}

/// The threads and CPUs that an event covers.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Thread ID, or -1 for every process. Child threads that are created later are included.
    pub thread: i32,
    /// Number of the CPU, or -1 for any CPU.
    pub cpu: i32,
    /// Whether samples are taken in the kernel and stacks contain kernel frames.
    pub kernel: bool,
}

impl Target {
    pub fn whole_cpu(cpu: i32) -> Self {
        Self { thread: -1, cpu, kernel: true }
    }

    /// Returns the target for the calling thread in user space. The kernel permits it unless perf events are disabled.
    pub fn own_thread() -> Self {
        Self { thread: 0, cpu: -1, kernel: false }
    }
}

/// An open event. The event is disabled until `enable` is called. Dropping the value closes the event.
pub struct Event {
    pub descriptor: OwnedFd,
    /// ID of the event in its samples.
    pub id: u64,
}

impl Event {
    /// Opens an event. `announces` says whether the event also records new processes, names and memory maps. One event
    /// of each target must do this.
    pub fn open(trigger: Trigger, target: Target, announces: bool) -> io::Result<Self> {
        let is_switch = matches!(trigger, Trigger::Switch { .. });
        let mut attributes = bindings::perf_event_attr {
            size: size_of::<bindings::perf_event_attr>() as u32,
            sample_type: u64::from(
                bindings::PERF_SAMPLE_IDENTIFIER
                    | bindings::PERF_SAMPLE_TID
                    | bindings::PERF_SAMPLE_TIME
                    | bindings::PERF_SAMPLE_CALLCHAIN,
            ),
            clockid: libc::CLOCK_MONOTONIC,
            ..Default::default()
        };
        let copied_stack = match trigger {
            Trigger::CpuClock { hz } => {
                attributes.type_ = bindings::PERF_TYPE_SOFTWARE;
                attributes.config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK);
                attributes.__bindgen_anon_1.sample_freq = hz;
                attributes.set_freq(1);
                attributes.set_exclude_idle(1);
                attributes.set_exclude_kernel(u64::from(!target.kernel));
                CLOCK_STACK
            }
            Trigger::Nothing => {
                attributes.type_ = bindings::PERF_TYPE_SOFTWARE;
                attributes.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
                0
            }
            Trigger::Tracepoint { id } | Trigger::Switch { id } => {
                attributes.type_ = bindings::PERF_TYPE_TRACEPOINT;
                attributes.config = id;
                attributes.__bindgen_anon_1.sample_period = 1;
                attributes.sample_type |= u64::from(bindings::PERF_SAMPLE_RAW);
                // The end of a wait is taken from these records and not from the tracepoint: when an idle CPU switches
                // to a thread, some kernels (seen with 6.18 in a virtual machine) do not hit the tracepoint.
                attributes.set_context_switch(u64::from(is_switch));
                if is_switch { SWITCH_STACK } else { 0 }
            }
        };
        if copied_stack > 0 {
            attributes.sample_type |= u64::from(bindings::PERF_SAMPLE_REGS_USER | bindings::PERF_SAMPLE_STACK_USER);
            attributes.sample_regs_user = REGISTERS.iter().map(|register| 1 << register).sum();
            attributes.sample_stack_user = copied_stack;
            attributes.set_exclude_callchain_user(1);
        }
        attributes.set_disabled(1);
        attributes.set_inherit(u64::from(target.thread > 0));
        attributes.set_exclude_hv(1);
        attributes.set_exclude_callchain_kernel(u64::from(!target.kernel));
        attributes.set_use_clockid(1);
        attributes.set_sample_id_all(1);
        if announces {
            attributes.set_mmap(1);
            attributes.set_mmap2(1);
            attributes.set_comm(1);
            attributes.set_comm_exec(1);
            attributes.set_task(1);
        }
        let flags = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are initialised, and the kernel checks them.
        let descriptor = unsafe { perf_event_open(&mut attributes, target.thread, target.cpu, -1, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mut id = 0;
        // SAFETY: the kernel writes one number.
        checked(unsafe { ioctls::ID(descriptor.as_raw_fd(), &raw mut id) })?;
        if is_switch {
            // SAFETY: the kernel reads a text that ends with a zero byte.
            checked(unsafe { ioctls::SET_FILTER(descriptor.as_raw_fd(), NOT_IDLE.as_ptr().cast_mut()) })?;
        }
        Ok(Self { descriptor, id })
    }

    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the call has no argument.
        checked(unsafe { ioctls::ENABLE(self.descriptor.as_raw_fd(), 0) })
    }

    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the call has no argument.
        checked(unsafe { ioctls::DISABLE(self.descriptor.as_raw_fd(), 0) })
    }

    /// Writes the event's records to the ring buffer of another event on the same CPU.
    pub fn share_ring_of(&self, other: &Self) -> io::Result<()> {
        // SAFETY: both descriptors are open.
        checked(unsafe { ioctls::SET_OUTPUT(self.descriptor.as_raw_fd(), other.descriptor.as_raw_fd()) })
    }
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
