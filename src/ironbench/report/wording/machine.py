"""Words for notes about the machines of server and client: what disturbed a trial, and what could not be observed."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.judging_limits import BUSY, OUR_SHARE, PROFILE_LOST, PROFILE_UNRESOLVED
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import (
    Number,
    Strings,
    count,
    highest,
    low_to_high,
    names,
    percent,
    size,
    span,
    strings,
)
from ironbench.words import listed

_NOTABLE = 0.001
"""Causes that used a smaller fraction of CPU time are not named."""


@wording("not-quiet")
def not_quiet(
    waited_s: Number, busy: Number, device_bytes_per_s: Number, in_flight: Number, dirty_bytes: Number
) -> str:
    """Example with waited_s=30, busy=0.12, device_bytes_per_s=0, in_flight=0, dirty_bytes=0: `the machine was still
    busy before the trial, although ironbench had waited for 30 s: CPU 12% busy`."""
    found = []
    if highest(busy):
        found.append(f"CPU {percent(busy, BUSY)} busy")
    if highest(device_bytes_per_s):
        found.append(f"device I/O {size(device_bytes_per_s)}/s")
    if highest(in_flight):
        found.append(f"{count(in_flight, 'I/O request')} in flight")
    if highest(dirty_bytes):
        found.append(f"{size(dirty_bytes)} of dirty pages")
    what = f": {', '.join(found)}" if found else ""
    return f"the machine was still busy before the trial, although ironbench had waited for {span(waited_s)}{what}"


@wording("clock-step")
def clock_step(step_s: Number) -> str:
    """Example with step_s=1: `the machine's clock jumped by +1.000 s during the trial: timestamps are wrong, durations
    are correct`."""
    step = low_to_high(step_s, lambda one: f"{one:+.3f} s")
    return f"the machine's clock jumped by {step} during the trial: timestamps are wrong, durations are correct"


@wording("cpu-taken")
def cpu_taken(
    programs: Number, steal: Number, share: Number | None = None, slices: Number = 0, dropped: Number = 0
) -> str:
    """Example with programs=NoteRange(0.05, 0.11), steal=NoteRange(0.01, 0.02), share=NoteRange(0.05, 0.12): `5 to 12%
    of CPU time was lost (5 to 11% to other programs, 1 to 2% to steal time)`."""
    parts = ((programs, "other programs"), (steal, "steal time"))
    by = ", ".join(f"{percent(part)} to {name}" for part, name in parts if highest(part) >= _NOTABLE)
    by = by or f"less than {percent(_NOTABLE)} to each cause"
    if share is not None:
        return f"{percent(share, BUSY)} of CPU time was lost ({by})"
    return (
        f"{count(slices, 'slice')} of the block lost CPU time to other programs or virtual machines (at most "
        f"{by}), after {count(dropped, 'rotation')} had already been dropped and repeated"
    )


@wording("own-cpu-share")
def own_cpu_share(share: Number, parts: Strings) -> str:
    """Example with share=0.22, parts=('client', 'observers'): `ironbench's client and observers used 22% of the CPU
    time, so do not draw conclusions about the server's CPU use`."""
    who = f"ironbench's {listed(strings(parts))}" if strings(parts) else "ironbench"
    return (
        f"{who} used {percent(share, OUR_SHARE)} of the CPU time, so do not draw conclusions about the server's CPU use"
    )


@wording("profile-lost")
def profile_lost(share: Number) -> str:
    """Example with share=0.031: `3.1% of the sampled stacks were lost, because the kernel's buffers were full: use a
    lower frequency, for example `--profile cpu:49`, or keep one CPU core free`."""
    return (
        f"{percent(share, PROFILE_LOST)} of the sampled stacks were lost, because the kernel's buffers were full: "
        "use a lower frequency, for example `--profile cpu:49`, or keep one CPU core free"
    )


@wording("profile-unseen")
def profile_unseen(error: Strings) -> str:
    """Example with error='db.example: no answer': `the profile does not contain the server (db.example: no answer)`."""
    why = f" ({names(error)})" if strings(error) else ""
    return f"the profile does not contain the server{why}"


@wording("profile-unresolved")
def profile_unresolved(share: Number, outside: Number = 0.0) -> str:
    """Example with share=0.35, outside=0.3: `35% of the frames in the sampled stacks have no function name: callers are
    missing, because …`"""
    fix = (
        "install the engine's debug symbols (in Debian and Ubuntu, packages whose names end in `-dbgsym`), or use a "
        "build that is not stripped"
    )
    if highest(outside) >= highest(share) / 2:
        fix = (
            "callers are missing, because programs contain neither unwind tables nor frame pointers; for complete "
            "stacks, use a build with `-fno-omit-frame-pointer`"
        )
    return f"{percent(share, PROFILE_UNRESOLVED)} of the frames in the sampled stacks have no function name: {fix}"


@wording("server-unseen")
def server_unseen(error: Strings = "", processes: Strings = "") -> str:
    """Example: `ironbench cannot see the server's processes, so CPU, memory and device metrics come from the machine
    that ironbench ran on; use `--server ssh://USER@HOST` (`system.server` in a lab) to observe the server's
    machine`."""
    if strings(error):
        return f"ironbench could not observe the server's machine: {names(error)}"
    if strings(processes):
        return f"ironbench cannot see the server's processes on the server's machine: {names(processes)}"
    return (
        "ironbench cannot see the server's processes, so CPU, memory and device metrics come from the machine "
        "that ironbench ran on; use `--server ssh://USER@HOST` (`system.server` in a lab) to observe the server's "
        "machine"
    )


@wording("link-lost")
def link_lost(
    error: Strings, times: Number | None = None, lost_s: Number = 0.0, gaps: Sequence[Sequence[float]] = ()
) -> str:
    """Example with error='', times=2, lost_s=4.0, gaps=[(3.0, 5.0), (9.0, 11.0)]: `the connection to the server's
    machine was lost 2 times for 4 s in total: from 3 s to 5 s, from 9 s to 11 s`."""
    why = f" ({names(error)})" if strings(error) else ""
    if times is None:
        return f"ironbench could not observe the server's machine{why}"
    when = ", ".join(f"from {units.span(low)} to {units.span(high)}" for low, high in gaps[:3])
    lost = f"the connection to the server's machine was lost {count(times, 'time')} for {span(lost_s)} in total"
    return f"{lost}{f': {when}' if when else ''}{why}"


@wording("lab-changed")
def lab_changed(changes: Strings) -> str:
    """Example with changes='software: ironbench 0.1.0, now 0.2.0': `these facts changed since the lab was started:
    software: ironbench 0.1.0, now 0.2.0`."""
    return f"these facts changed since the lab was started: {'; '.join(strings(changes)) or 'unknown'}"


@wording("not-undone")
def not_undone(command: Strings, error: Strings) -> str:
    """Example with command='umount /srv', error='exit status 32': `an earlier change to the system was not reverted,
    because `umount /srv` failed: exit status 32`."""
    why = f": {names(error)}" if strings(error) else ""
    return f"an earlier change to the system was not reverted, because `{names(command) or 'the cleanup'}` failed{why}"


@wording("counts-late")
def counts_late(
    late_s: Number = 0.0,
    window_s: Number = 0.0,
    error: Number | None = None,
    published: Number | None = None,
    transactions: Number = 0,
) -> str:
    """Example with late_s=1, window_s=5, error=0.2: `the server's counters of commits, rows and I/O lag by up to 1 s,
    which causes an error of up to 20% in a trial of 5 s`."""
    if published is not None:
        seen = (
            f"the server's counters included only {percent(published)} of {count(transactions, 'transaction')} at "
            "the end of the trial"
        )
        return f"{seen}, so the counts of commits, rows and I/O are left out"
    delay = f"the server's counters of commits, rows and I/O lag by up to {span(late_s)}"
    if error is not None:
        return f"{delay}, which causes an error of up to {percent(error)} in a trial of {span(window_s)}"
    return f"{delay}, so the counters are not usable in a trial of {span(window_s)}"


@wording("more-threads-than-cpus")
def more_threads_than_cpus(threads: Number, cpus: Number) -> str:
    """Example with threads=8, cpus=2: `8 threads on 2 CPUs: the threads share CPUs, so the measured times include CPU
    scheduling wait`."""
    on = f"{count(threads, 'thread')} on {count(cpus, 'CPU')}"
    return f"{on}: the threads share CPUs, so the measured times include CPU scheduling wait"


@wording("probes-within-caches")
def probes_within_caches(probed_bytes: Number, needed_bytes: Number) -> str:
    """Example with probed_bytes=8 << 20, needed_bytes=64 << 20: `bandwidth and latency were measured in a memory area
    of 8.00 MiB, which fits into the CPU caches: to measure memory, use `--with memory=SIZE` (`workload.with` in a lab)
    with a size of 64.0 MiB or more`."""
    probed, needed = low_to_high(probed_bytes, units.memory), low_to_high(needed_bytes, units.memory)
    return (
        f"bandwidth and latency were measured in a memory area of {probed}, which fits into the CPU caches: to "
        f"measure memory, use `--with memory=SIZE` (`workload.with` in a lab) with a size of {needed} or more"
    )
