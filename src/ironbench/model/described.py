"""Facts about the workload and the engine of a trial that its readers need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEADING = ("throughput", "response_time_mean_s")
"""Metrics that a comparison of transactions begins with."""


@dataclass(frozen=True, slots=True)
class Described:
    """The defaults describe a workload and an engine that this version does not know."""

    units: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work, one and many."""
    leading: tuple[str, ...] = LEADING
    """Metrics that a comparison begins with, the most telling first."""
    scores: tuple[str, ...] = ("throughput",)
    """Metrics that systems are ranked by, more is better; the first that was measured counts."""
    derived: str = ""
    """A sentence that must accompany every result."""
    streams: tuple[int, str] | None = None
    """How many streams work at once at most, and which; None where the clients of the load work."""
    connections: int | None = None
    """Connections at work on the engine; None: as many as clients."""
    paced: bool = False
    """Operations begin at recorded times."""
    drives: bool = False
    """The workload drives itself instead of running scripts."""
    units_only: bool = True
    """The trial did nothing besides its units of work, so figures per unit have a meaning."""
    bare_machine: bool = False
    """No database lay between the work and the machine."""
    in_client: bool = False
    """The engine is a library in the threads that drive it."""
    limited_writers: bool = False
    """The engine lets a fixed number of clients write at once."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Wait event → what a backend in it does."""
