"""The processor: its speed, and what reduces it."""

from __future__ import annotations

from ironbench import units
from ironbench.host.cgroup_limits import read_limits
from ironbench.host.doctor import probe
from ironbench.host.fingerprint import boost, mitigations
from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, note, ok, warning
from ironbench.words import counted

_CPU = "/sys/devices/system/cpu"
_STEADY = "performance"
_DEEP_S = 100e-6
"""Time in seconds that a core needs to leave an idle state. Idle states with a longer time noticeably increase the
response times of an in-memory database."""


@probe("cpu", "governor")
def governor(host: HostView) -> CheckResult | None:
    """The governor that controls the processor's frequency."""
    names = {host.tree.read(name) for name in host.tree.glob(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor")}
    governors = sorted(name for name in names if name)
    if not governors:
        return None
    seen = ", ".join(governors)
    if governors == [_STEADY]:
        return ok(seen)
    return warning(
        seen,
        "The processor lowers its frequency when idle and raises the frequency late, so light loads look slower "
        "than they are, and runs vary.",
        f"echo {_STEADY} | sudo tee {_CPU}/cpu*/cpufreq/scaling_governor",
    )


@probe("cpu", "energy preference")
def energy_preference(host: HostView) -> CheckResult | None:
    """Whether the processor is configured to prefer speed or to save energy."""
    pattern = f"{_CPU}/cpu[0-9]*/cpufreq/energy_performance_preference"
    preferences = sorted({name for path in host.tree.glob(pattern) if (name := host.tree.read(path))})
    if not preferences:
        return None
    seen = ", ".join(preferences)
    if set(preferences) <= {"performance", "balance_performance", "default"}:
        return ok(seen)
    return warning(
        seen,
        "The processor prefers saving power to running fast.",
        f"echo performance | sudo tee {pattern.replace('[0-9]', '')}",
    )


@probe("cpu", "boost")
def boosting(host: HostView) -> CheckResult | None:
    """Whether the processor may exceed its base frequency while it is cool."""
    allowed = boost(host.tree)
    if allowed is None:
        return None
    if not allowed:
        return ok("off: the frequency does not depend on heat")
    intel = f"{_CPU}/intel_pstate/no_turbo"
    command = f"echo 1 | sudo tee {intel}" if host.tree.exists(intel) else f"echo 0 | sudo tee {_CPU}/cpufreq/boost"
    return note(
        "on",
        "With boost, the speed of a core depends on the temperature of the processor and on the number of busy "
        "cores, so a run after a pause is faster. Turn boost off to compare configurations; turn boost on to "
        "measure maximum performance.",
        command,
    )


@probe("cpu", "heat")
def heat(host: HostView) -> CheckResult | None:
    """Whether the processor was throttled because of heat."""
    if not host.tree.glob(f"{_CPU}/cpu[0-9]*/thermal_throttle/*_count"):
        return None
    now, before = host.after.throttled, host.before.throttled
    meaning = "The processor lowered its frequency to cool down, so long runs are slower than short runs."
    remedy = "improve cooling, or switch boost off"
    if now > before:
        return warning(f"slowed down {counted(now - before, 'time')} in the last second", meaning, remedy)
    return (
        note(f"slowed down {counted(now, 'time')} since the machine started", meaning, remedy)
        if now
        else ok("not throttled")
    )


@probe("cpu", "idle states")
def idle_states(host: HostView) -> CheckResult | None:
    """Idle states of the cores, which determine how long a core takes to wake up."""
    tree = host.tree
    deepest = 0
    name = ""
    for state in tree.glob(f"{_CPU}/cpu0/cpuidle/state[0-9]*"):
        latency = tree.integer(f"{state}/latency") or 0
        if not tree.integer(f"{state}/disable") and latency >= deepest:
            deepest, name = latency, tree.read(f"{state}/name") or state
    if not name:
        return None
    seen = f"down to {name}, from which a core needs {deepest} µs to wake up"
    if deepest / 1e6 <= _DEEP_S:
        return ok(seen)
    return note(
        seen,
        "A sleeping core needs time to wake up, so response times with few clients are longer than under load.",
        f"sudo cpupower idle-set --disable-by-latency {int(_DEEP_S * 1e6)}",
    )


@probe("cpu", "threads per core")
def smt(host: HostView) -> CheckResult | None:
    """Whether two logical processors share a core (SMT, hyper-threading)."""
    active = host.tree.integer(f"{_CPU}/smt/active")
    if active is None:
        return None
    if not active:
        return ok("one thread per core, as far as this machine reports")
    return note(
        "two logical processors share each core",
        "With more than one busy thread per core, throughput grows less than CPU usage. At 50% CPU usage, the "
        "processor may be close to its limit.",
        f"to measure without SMT: echo off | sudo tee {_CPU}/smt/control",
    )


@probe("cpu", "mitigations")
def weaknesses(host: HostView) -> CheckResult | None:
    """Mitigations of CPU vulnerabilities, which make system calls slower."""
    if not host.tree.names(f"{_CPU}/vulnerabilities"):
        return None
    by_weakness = mitigations(host.tree)
    if not by_weakness:
        return ok("none needed, or switched off")
    return note(
        ", ".join(by_weakness),
        (
            "Mitigations make system calls and task switches slower. Keep the mitigations, and compare only machines "
            "that have the same mitigations."
        ),
    )


@probe("cpu", "container limits")
def limits(host: HostView) -> list[CheckResult]:
    """Whether a control group (a container's limit) limits this process."""
    bounds = read_limits(host.tree)
    readings = []
    if bounds.cpus is not None:
        readings.append(
            warning(
                f"at most {bounds.cpus:g} cores' worth of CPU time (cgroup {bounds.cgroup})",
                "When the quota is used up, all processes stop until the next period. This causes pauses of up "
                "to 0.1 s, which do not come from the database.",
                "assign whole CPUs instead of a quota: `docker run --cpuset-cpus=…`, or remove `--cpus`",
            )
        )
    if bounds.memory_bytes is not None:
        readings.append(
            note(
                f"at most {units.memory(bounds.memory_bytes)} of memory (cgroup {bounds.cgroup})",
                "The page cache counts against this limit, so data beyond the limit are read from the device again.",
            )
        )
    return readings or [ok("no CPU quota, no memory limit")]
