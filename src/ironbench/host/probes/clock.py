"""Clock source, and how punctually the kernel wakes a waiting thread."""

from __future__ import annotations

from statistics import quantiles

from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, ok, severe, warning

_BASE = "/sys/devices/system/clocksource/clocksource0"
_FAST = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "timebase", "stp", "tod")
"""Clocks that can be read without a system call (vdso(7)). To read any other clock, the kernel must be called and must
access a slow device."""
_LATE_S, _VERY_LATE_S = 1e-3, 10e-3


@probe("time", "clock source")
def clock_source(host: HostView) -> CheckResult | None:
    """The clock source of the kernel, which is read twice per transaction."""
    current = host.tree.read(f"{_BASE}/current_clocksource")
    if not current:
        return None
    if current in _FAST:
        return ok(current)
    available = (host.tree.read(f"{_BASE}/available_clocksource") or "").split()
    better = next((name for name in _FAST if name in available), None)
    command = (
        f"echo {better} | sudo tee {_BASE}/current_clocksource" if better else "boot with clocksource=tsc tsc=reliable"
    )
    return severe(
        current,
        "Reading this clock takes at least one system call, about 1 µs instead of 25 ns. The client, the "
        "server's timing (EXPLAIN ANALYZE) and observers therefore slow down the work that they measure.",
        command,
    )


@probe("time", "wake-up")
def wake_up(host: HostView) -> CheckResult | None:
    """How late a thread wakes up that sleeps for 1 ms, which limits the accuracy of an open loop's schedule."""
    late = host.attempts.wake_ups()
    if len(late) < 100:
        return None
    cuts = quantiles(late, n=100)
    median, p99 = cuts[49], cuts[98]
    seen = f"{median * 1e6:.0f} µs late (median), {p99 * 1e6:.0f} µs (99th percentile)"
    meaning = (
        "Open loops start transactions late by this time, and emulated devices answer late by this time, so "
        "shorter response times cannot be measured."
    )
    remedy = "stop other load first; on real hardware `sudo tuned-adm profile latency-performance`"
    if median >= _LATE_S or p99 >= _VERY_LATE_S:
        return severe(seen, meaning, remedy)
    if p99 >= _LATE_S:
        return warning(seen, meaning, remedy)
    return ok(seen)
