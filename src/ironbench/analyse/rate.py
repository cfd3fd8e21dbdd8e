"""An open loop: the rate that was asked for, and whether the system kept it.

What it finished follows from what was asked, so it is no peak, no score and no ratio between systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.summarise import Summary
from ironbench.catalogue import base_name
from ironbench.model.record import Record
from ironbench.model.system import Load
from ironbench.words import counted

_ASKED = ("throughput", "engine_commits_per_s")
"""Metrics that say again what rate was asked for."""
_TIMES = ("response_time", "service_time", "lateness", "not_started", "unfinished")
"""Metrics that depend on how many transactions were asked for."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What one rate came to, with one number of clients."""

    rate: float
    """Transactions started per second."""
    clients: int
    metrics: dict[str, Summary]
    trials: tuple[Record, ...]

    @property
    def kept(self) -> int:
        """Trials that finished what was asked."""
        return sum(record.kept_rate is True for record in self.trials)

    @property
    def is_kept(self) -> bool:
        """In every trial."""
        return self.kept == len(self.trials)

    @property
    def basis(self) -> str:
        return f"{self.rate:g}/s, {counted(len(self.trials), 'trial')}"

    @property
    def words(self) -> str:
        """`kept`, `not kept`, `kept in 2 of 3 trials`."""
        if self.is_kept or not self.kept:
            return "kept" if self.is_kept else "not kept"
        return f"kept in {self.kept} of {counted(len(self.trials), 'trial')}"


def no_ratio(metric: str, a: Sequence[Record], b: Sequence[Record]) -> bool:
    """Whether a ratio of that metric says nothing of the systems: it was asked for, the two were given unlike work, or
    one of them did not keep its rate, so that its times grew as long as the trial lasted."""
    name, trials = base_name(metric), (*a, *b)
    if name in _ASKED:
        return any(record.cell.load.rate is not None for record in trials)
    return name.startswith(_TIMES) and not alike(a, b)


def alike(a: Sequence[Record], b: Sequence[Record]) -> bool:
    """Whether both were given the same work per second, as far as an open loop says, and kept up with it."""
    asked = {(record.cell.load.rate, record.cell.load.arrivals) for record in (*a, *b)}
    return len(asked) == 1 and not any(record.kept_rate is False for record in (*a, *b))


def loop_words(load: Load) -> str:
    """`a closed loop`, `an open loop at 500/s`."""
    return "a closed loop" if load.rate is None else f"an open loop at {load.rate:g}/s"
