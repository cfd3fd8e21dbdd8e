"""What an observer is: something that samples a layer of the system during a trial."""

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
    """Event → the part of a transaction's time (`model.parts`)."""


@runtime_checkable
class WaitObserver(Observer, Protocol):
    """An observer that samples what backends wait for."""

    def waits(self, samples: Samples, window_s: float) -> Waits:
        """Of the measured window."""
        ...
