"""What an observer is."""

from __future__ import annotations

from typing import Protocol

from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.session import Session

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
