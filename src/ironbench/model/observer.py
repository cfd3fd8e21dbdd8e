"""Observers, which sample a layer of the system during a trial, and the parts of a transaction's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.points import Point
from ironbench.model.session import Session

if TYPE_CHECKING:
    from ironbench.machine.tree import Tree

Samples = dict[str, list[Sample]]
"""Source name → its samples in order of time."""


class Observer(Protocol):
    """Declares what to read, and later makes metrics and series of it. Pure but for questions to the session."""

    name: str
    doc: str
    """One sentence for `ironbench list observers`."""

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        """Sources named `observer.part`; empty when this observer sees nothing here."""
        ...

    def parse(self, samples: Samples, window_s: float) -> Observation:
        """Metrics by catalogue name over the measured window [0, window_s], and series over all samples."""
        ...


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

    instants: Sequence[Point]
    """Backends by wait event, one point per sampled instant; `IDLE` and `WORKING` where there is no event."""
    on_cores: OnCores | None
    """None where the processes are out of sight."""
    part_of: Callable[[str], str]
    """Event → the part of a transaction's time (`PARTS`)."""


@runtime_checkable
class WaitObserver(Observer, Protocol):
    """An observer that samples what backends wait for."""

    def waits(self, samples: Samples, window_s: float) -> Waits:
        """Of the measured window."""
        ...


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
