"""Samples of the observers. Also the wait classes, which divide the time of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ironbench.model.observation import Sample
from ironbench.model.points import SamplePoint

Samples = dict[str, list[Sample]]
"""For each source, its samples in order of time."""


IDLE = "idle"
"""Value used as the wait event of a backend between two transactions."""
WORKING = "CPU"
"""Value used as the wait event of a backend that does not wait: it runs on a core, or is ready to run."""


@dataclass(frozen=True, slots=True)
class OnCores:
    """CPU time and CPU scheduling waits of the backends' processes, as counted by the kernel, in seconds per second."""

    cpu: float
    run_queue: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Wait events of an engine's backends during a trial."""

    instants: Sequence[SamplePoint]
    """For each sample, a point with the number of backends for each wait event. Backends without a wait event count as
    `IDLE` or `WORKING`."""
    on_cores: OnCores | None
    """Time that the backends spent on cores and waiting for a core, or None if the processes are not visible."""
    wait_class: Callable[[str], str]
    """A function that returns the wait class (`WAIT_CLASSES`) of a wait event."""


CPU = "CPU"  # CPU time of the engine
RUN_QUEUE = "run queue"  # ready to run, waiting for a core
DATA_READ = "data read"  # reading pages of tables and indexes
DATA_WRITE = "data write"  # writing pages out, to make room or to extend a table
LOG_FLUSH = "log flush"  # writing the WAL and waiting until it is durable
TEMP = "temp"  # reading and writing temporary files
LOCKS = "locks"  # waiting for another transaction's lock on a row, a table or the like
INTERNAL_LOCKS = "internal locks"  # waiting for LWLocks or latches
CLIENT = "client"  # the client, the network, and think time
OTHER = "other"  # other known waits, and time that is not accounted for

WAIT_CLASSES = (CPU, RUN_QUEUE, DATA_READ, DATA_WRITE, LOG_FLUSH, TEMP, LOCKS, INTERNAL_LOCKS, CLIENT, OTHER)
SERVER_CPU = "server-cpu"
"""Name of the limiting resource if the limit is CPU time of the server, which includes waiting for a core."""
OTHER_PROGRAMS = "other-programs"
"""Name of the limiting resource if other programs used more CPU time than server and client together."""
CONCURRENCY = "concurrency"
"""Name of the limiting resource if more clients are needed. Most of the time is then CPU time of the server, but cores
are idle and backends hardly wait for a core."""
