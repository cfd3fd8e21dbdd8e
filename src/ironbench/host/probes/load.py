"""Load from other programs and virtual machines."""

from __future__ import annotations

from ironbench import units
from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, note, ok, severe, warning
from ironbench.words import counted, in_percent

_SEVERE_STEAL, _WARNING_STEAL = 0.05, 0.01
_SEVERE_OTHERS, _WARNING_OTHERS = 0.20, 0.05


@probe("load", "steal")
def steal(host: HostView) -> CheckResult | None:
    """Steal time: CPU time that the hypervisor gives to other virtual machines while this one is ready to run."""
    if not host.after.cpu:
        return None
    share = host.share_of_time("steal")
    seen = f"{in_percent(share)} of CPU time over the last second"
    meaning = (
        "Other virtual machines take CPU time from this virtual machine, so the time for the same work varies "
        "between runs."
    )
    remedy = "ask your provider for dedicated or unthrottled CPUs, or repeat the measurement at a quieter hour"
    if share >= _SEVERE_STEAL:
        return severe(seen, meaning, remedy)
    if share >= _WARNING_STEAL:
        return warning(seen, meaning, remedy)
    return ok(seen)


@probe("load", "other programs")
def others(host: HostView) -> CheckResult | None:
    """CPU time currently used by programs other than ironbench."""
    if not host.after.cpu:
        return None
    total = sum(host.after.cpu.values()) - sum(host.before.cpu.values())
    used = {
        pid: (name, ticks - host.before.processes.get(pid, ("", 0))[1])
        for pid, (name, ticks) in host.after.processes.items()
        if pid not in host.ourselves.pids
    }
    share = sum(ticks for _, ticks in used.values()) / total if total > 0 else 0.0
    busiest = sorted(((ticks, name, pid) for pid, (name, ticks) in used.items() if ticks > 0), reverse=True)[:3]
    who = ", ".join(f"{name} ({pid})" for _, name, pid in busiest)
    seen = f"{in_percent(share)} of the machine's CPU time over the last second" + (f": {who}" if who else "")
    meaning = "The database and the client share cores, cache and devices with these programs."
    remedy = "stop these programs, or wait until they end: `top` shows them"
    if share >= _SEVERE_OTHERS:
        return severe(seen, meaning, remedy)
    if share >= _WARNING_OTHERS:
        return warning(seen, meaning, remedy)
    return ok(seen)


@probe("load", "waiting programs")
def runnable(host: HostView) -> CheckResult | None:
    """Number of programs that are currently ready to run."""
    if not host.after.cpu:
        return None
    cores = max(1, len(host.tree.glob("/sys/devices/system/cpu/cpu[0-9]*")))
    # ironbench itself is one of the runnable processes.
    waiting = max(0, host.after.runnable - 1)
    seen = f"{counted(waiting, 'thread')} running or waiting for a CPU besides ironbench, on {counted(cores, 'core')}"
    if waiting >= cores:
        return warning(
            seen,
            "Every core is already busy: response times include CPU scheduling waits.",
            "stop the running programs: `top` shows them",
        )
    return ok(seen)


@probe("load", "swapping")
def swapping(host: HostView) -> CheckResult | None:
    """Whether memory is being swapped, or was swapped earlier."""
    memory = host.tree.table("/proc/meminfo")
    if "SwapTotal" not in memory:
        return None
    used = memory["SwapTotal"] - memory.get("SwapFree", 0)
    pages = host.after.swapped_pages - host.before.swapped_pages
    if pages > 0:
        return severe(
            f"{pages} pages in the last second",
            (
                "Memory is so short that the kernel swaps programs out to disk and in again, so every measurement "
                "includes the time of that disk."
            ),
            "free memory, or give the database less (`--memory`); then `sudo swapoff -a && sudo swapon -a`",
        )
    if used > 0:
        return note(
            f"{units.memory(used)} are in swap, none moved in the last second",
            "Pages were swapped out earlier; reading them back pauses the program that needs them.",
            "sudo swapoff -a && sudo swapon -a",
        )
    return ok("no memory is in swap")
