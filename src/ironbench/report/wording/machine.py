"""Words for the machines of server and client: what disturbed a trial, and what could not be observed."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.limits import BUSY, OUR_SHARE
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
"""Share of CPU time from which a cause is named."""


@wording("not-quiet")
def not_quiet(
    waited_s: Number, busy: Number, device_bytes_per_s: Number, in_flight: Number, dirty_bytes: Number
) -> str:
    """the machine was not quiet before the trial, after 30 s of waiting: 12% of the CPUs were busy"""
    found = []
    if highest(busy):
        found.append(f"{percent(busy, BUSY)} of the CPUs were busy")
    if highest(device_bytes_per_s):
        found.append(f"devices moved {size(device_bytes_per_s)}/s")
    if highest(in_flight):
        found.append(f"{count(in_flight, 'request')} in flight")
    if highest(dirty_bytes):
        found.append(f"{size(dirty_bytes)} waited to be written")
    what = f": {', '.join(found)}" if found else ""
    return f"the machine was not quiet before the trial, after {span(waited_s)} of waiting{what}"


@wording("clock-step")
def clock_step(step_s: Number) -> str:
    """the machine's clock was set by +1.000 s during the trial: times of day are off, durations are not"""
    step = low_to_high(step_s, lambda one: f"{one:+.3f} s")
    return f"the machine's clock was set by {step} during the trial: times of day are off, durations are not"


@wording("cpu-taken")
def cpu_taken(
    programs: Number, steal: Number, share: Number | None = None, slices: Number = 0, dropped: Number = 0
) -> str:
    """5 to 12% of CPU time was taken from the work: 5 to 11% by other programs, 0.5 to 1% by other virtual machines"""
    parts = ((programs, "other programs"), (steal, "other virtual machines"))
    by = ", ".join(f"{percent(part)} by {name}" for part, name in parts if highest(part) >= _NOTABLE)
    by = by or f"less than {percent(_NOTABLE)} by each cause"
    if share is not None:
        return f"{percent(share, BUSY)} of CPU time was taken from the work: {by}"
    return (
        f"{count(slices, 'slice')} of the block had CPU time taken from the work (at most {by}), and "
        f"{count(dropped, 'rotation')} had been dropped already"
    )


@wording("own-cpu-share")
def own_cpu_share(share: Number, parts: Strings) -> str:
    """client and observers used 22% of the CPU time used: do not draw conclusions about CPU"""
    who = listed(strings(parts)) or "ironbench"
    return f"{who} used {percent(share, OUR_SHARE)} of the CPU time used: verdicts about CPU do not hold"


@wording("server-unseen")
def server_unseen(error: Strings = "", processes: Strings = "") -> str:
    """the server's processes are out of sight, and CPU, memory and devices are those of the machine that …"""
    if strings(error):
        return f"the server's machine could not be observed: {names(error)}"
    if strings(processes):
        return f"the server's processes are not visible on its machine: {names(processes)}"
    return (
        "the server's processes are out of sight, and CPU, memory and devices are those of the machine that ironbench "
        "ran on; --server ssh://USER@HOST (system.server in a lab) observes the server's"
    )


@wording("link-lost")
def link_lost(
    error: Strings, times: Number | None = None, lost_s: Number = 0.0, gaps: Sequence[Sequence[float]] = ()
) -> str:
    """the link to the server's machine was lost 2 times for 4 s in all: from 3 s to 5 s, from 9 s to 11 s"""
    why = f" ({names(error)})" if strings(error) else ""
    if times is None:
        return f"the server's machine could not be observed{why}"
    when = ", ".join(f"from {units.span(low)} to {units.span(high)}" for low, high in gaps[:3])
    lost = f"the link to the server's machine was lost {count(times, 'time')} for {span(lost_s)} in all"
    return f"{lost}{f': {when}' if when else ''}{why}"


@wording("lab-changed")
def lab_changed(changes: Strings) -> str:
    """since the lab began, this has changed: software: ironbench 0.1.0, now 0.2.0"""
    return f"since the lab began, this has changed: {'; '.join(strings(changes)) or 'unknown'}"


@wording("not-undone")
def not_undone(command: Strings, error: Strings) -> str:
    """an earlier change was not undone, because `umount /srv` failed: exit status 32"""
    failed = f"`{names(command) or 'the cleanup'}`{f' {names(error)}' if strings(error) else ' failed'}"
    return f"what was done before is not undone, for {failed}"


@wording("counts-late")
def counts_late(
    late_s: Number = 0.0,
    window_s: Number = 0.0,
    error: Number | None = None,
    published: Number | None = None,
    transactions: Number = 0,
) -> str:
    """the server publishes commits, rows and I/O up to 1 s late: in 5 s up to 20% off"""
    if published is not None:
        seen = f"the server had published {percent(published)} of {count(transactions, 'transaction')} at the end"
        return f"{seen}: its commits, rows and I/O are left out"
    delay = f"the server publishes commits, rows and I/O up to {span(late_s)} late"
    if error is not None:
        return f"{delay}: in {span(window_s)} up to {percent(error)} off"
    return f"{delay}: in {span(window_s)} they say too little"


@wording("more-threads-than-cpus")
def more_threads_than_cpus(threads: Number, cpus: Number) -> str:
    """8 threads on 2 CPUs: they take turns, and their times contain the waiting"""
    return f"{count(threads, 'thread')} on {count(cpus, 'CPU')}: they take turns, and their times contain the waiting"


@wording("probes-within-caches")
def probes_within_caches(probed_bytes: Number, needed_bytes: Number) -> str:
    """bandwidth and latency were measured within 8 MiB and are those of caches; 256 MiB or more measures memory"""
    probed, needed = low_to_high(probed_bytes, units.memory), low_to_high(needed_bytes, units.memory)
    return (
        f"bandwidth and latency were measured within {probed}, and are those of caches as far as these reach: "
        f"--with memory= (workload.with in a lab) of {needed} or more measures memory"
    )
