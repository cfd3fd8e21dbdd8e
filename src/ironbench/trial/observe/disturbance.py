"""CPU time used by other programs and other virtual machines between two moments.

The parts are the same as in a trial's breakdown of CPU time (`observe.cpu`), but for periods of about a second.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from ironbench.host.tree import Tree
from ironbench.model.judging_limits import BUSY, BUSY_WITH_KERNEL
from ironbench.model.points import Values
from ironbench.trial.observe import processes
from ironbench.trial.observe.cpu import parse_stat

_IDLE = ("cpu.idle", "cpu.iowait")
_NOT_WORK = ("cpu.irq", "cpu.softirq", "cpu.steal")


@dataclass(frozen=True, slots=True)
class DisturbanceCounters:
    """Counters of the machine's CPU time at one moment."""

    ticks: Values
    programs_s: float | None
    """CPU seconds of other programs, or None if some of them are not visible."""
    own_s: float


@dataclass(frozen=True, slots=True)
class DisturbanceShares:
    """CPU time that others used between two moments, as fractions of all cores' time."""

    programs: float = 0.0
    steal: float = 0.0
    counted: bool = True
    """Whether the CPU time of other programs was measured. If not, `programs` is the remaining busy time, which
    includes the threads of the kernel."""

    @property
    def share(self) -> float:
        return self.programs + self.steal

    @property
    def disturbs(self) -> bool:
        """Whether others used too much CPU time. In this case, a trial is flagged (`cpu-taken`), and a slice is
        repeated."""
        return self.share > (BUSY if self.counted else BUSY_WITH_KERNEL)


def read(own: Set[int], machine: Tree | None = None) -> DisturbanceCounters:
    """Reads the counters. `own`: processes that belong to the experiment. The descendants of these processes also
    belong to it."""
    machine = machine or Tree()
    ticks = {name: value for name, value in parse_stat(machine.read("/proc/stat") or "").items() if "cpu." in name}
    return DisturbanceCounters(ticks, *processes.programs_and_own_s(machine, own))


def used_between(before: DisturbanceCounters, after: DisturbanceCounters) -> DisturbanceShares:
    grown = {name: value - before.ticks.get(name, 0.0) for name, value in after.ticks.items()}
    whole = sum(grown.values())
    if whole <= 0:
        return DisturbanceShares()
    steal = grown.get("cpu.steal", 0.0) / whole
    work = whole - sum(grown.get(name, 0.0) for name in (*_IDLE, *_NOT_WORK))
    used_s = work / processes.TICKS_PER_S - (after.own_s - before.own_s)
    counted = before.programs_s is not None and after.programs_s is not None
    if before.programs_s is not None and after.programs_s is not None:
        used_s = min(used_s, after.programs_s - before.programs_s)
    # The difference may be negative: clocks sometimes differ by a tick, and the kernel does not count an ended process
    # if its parent does not wait for it.
    programs = max(0.0, used_s) * processes.TICKS_PER_S / whole
    return DisturbanceShares(programs, steal, counted)
