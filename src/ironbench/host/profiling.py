"""Whether this machine lets ironbench sample stacks, and the fix if it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.model.profile import WAIT

OWN_ONLY = "only-own"
"""Code of a restriction: only processes of the same user can be sampled."""


@dataclass(frozen=True, slots=True)
class Restriction:
    """Reason why stacks cannot be sampled, or can be sampled only in some processes."""

    code: str
    """Code of the restriction, as the sampler reports it (`_core.available`)."""
    cause: str
    fix: str


_CONTAINER = "in a container: `docker run --cap-add PERFMON --security-opt seccomp=unconfined`"
_CAUSES = {
    "no-perf-events": ("the kernel or the container does not permit performance events (perf_event_open)", _CONTAINER),
    "paranoid": ("kernel.perf_event_paranoid does not permit this user to sample stacks", ""),
    "no-tracefs": (
        "the tracing file system, which describes the scheduler's tracepoints, is not mounted",
        "sudo mount -t tracefs tracefs /sys/kernel/tracing",
    ),
    "no-tracepoints": ("the kernel lacks a tracepoint of the scheduler", "use `--profile cpu`"),
    OWN_ONLY: (
        "kernel.perf_event_paranoid permits sampling only of processes of the same user",
        "run ironbench as root, or `sudo sysctl kernel.perf_event_paranoid=0`",
    ),
}
_FIX_CPU = f"run ironbench as root, or `sudo sysctl kernel.perf_event_paranoid=1`; {_CONTAINER}"
_FIX_WAIT = f"run ironbench as root, or use `--profile cpu`; {_CONTAINER}"
"""Fixes for samples that `kernel.perf_event_paranoid` does not permit. No setting permits `wait` samples to an ordinary
user: they use tracepoints of the scheduler, which only root or a process with CAP_PERFMON may read (Linux:
Documentation/admin-guide/perf-security.rst)."""


def restrictions(kinds: Sequence[str]) -> tuple[Restriction, ...]:
    """Returns what prevents sampling these kinds of stacks (`cpu`, `wait`) on this machine. Returns an empty tuple if
    everything works."""
    from ironbench import _core

    found = []
    for code, detail in _core.available(kinds):
        cause, fix = _CAUSES[code]
        fix = fix or (_FIX_WAIT if WAIT in kinds else _FIX_CPU)
        found.append(Restriction(code, f"{cause} ({detail})" if detail else cause, fix))
    return tuple(found)
