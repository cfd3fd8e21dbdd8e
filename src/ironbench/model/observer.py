"""What observers sampled of a trial, and the parts of a transaction's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ironbench.model.observation import Sample
from ironbench.model.points import SamplePoint

Samples = dict[str, list[Sample]]
"""Source name → its samples in order of time."""


IDLE = "idle"
"""A backend between two transactions."""
WORKING = "CPU"
"""A backend that waits for nothing: on a core, or ready to be."""


@dataclass(frozen=True, slots=True)
class OnCores:
    """What the kernel counted of the backends' processes, in backends (seconds per second)."""

    cpu: float
    run_queue: float


@dataclass(frozen=True, slots=True)
class Waits:
    """What an engine's backends waited for during a trial."""

    instants: Sequence[SamplePoint]
    """Backends by wait event, one point per sampled instant; `IDLE` and `WORKING` where there is no event."""
    on_cores: OnCores | None
    """None where the processes are out of sight."""
    part_of: Callable[[str], str]
    """Event → the part of a transaction's time (`PARTS`)."""


CPU = "CPU"  # the engine computing
RUN_QUEUE = "run queue"  # ready to compute, waiting for a core
DATA_READ = "data read"  # reading pages of tables and indexes
DATA_WRITE = "data write"  # writing pages out, to make room or to extend a table
LOG_FLUSH = "log flush"  # writing the log and waiting until it is safe
TEMP = "temp"  # reading and writing temporary files
LOCKS = "locks"  # waiting for another transaction's lock on a row, a table or the like
INTERNAL_LOCKS = "internal locks"  # waiting for the engine's own short locks on its memory
CLIENT = "client"  # the client, the way to it, and its think time
OTHER = "other"  # known waits of no other part, and what nothing accounts for

PARTS = (CPU, RUN_QUEUE, DATA_READ, DATA_WRITE, LOG_FLUSH, TEMP, LOCKS, INTERNAL_LOCKS, CLIENT, OTHER)
SERVER_CPU = "server-cpu"
"""Limiting resource: CPU time, and the wait for it."""
OTHER_PROGRAMS = "other-programs"
"""Limiting resource where they used more CPU time than the server and the client."""
CONCURRENCY = "concurrency"
"""Named as the limit instead of the server's CPU where cores are idle and no backend waits for one."""
