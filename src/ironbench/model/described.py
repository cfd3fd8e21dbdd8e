"""Facts about the workload and the engine of a trial, for readers of its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEADING = ("throughput", "response_time_mean_s")
"""Metrics that come first in a comparison of transactions."""


@dataclass(frozen=True, slots=True)
class Described:
    """Facts about a workload and an engine. The defaults are for workloads and engines that this version does not
    know."""

    units: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work, singular and plural."""
    leading: tuple[str, ...] = LEADING
    """Metrics that come first in a comparison, the most important first."""
    scores: tuple[str, ...] = ("throughput",)
    """Metrics that rank systems, higher is better; the first one that was measured counts."""
    derived: str = ""
    """A sentence that must accompany every result."""
    streams: tuple[int, str] | None = None
    """The maximum number of concurrent streams, and their name; None: the clients of the load do the work."""
    connections: int | None = None
    """Number of connections that do work on the engine; None: one per client."""
    rests: bool = False
    """Clients rest between transactions, as long as the workload determines."""
    paced: bool = False
    """Operations start at recorded times."""
    drives: bool = False
    """The workload drives itself instead of running scripts."""
    units_only: bool = True
    """The trial did nothing besides its units of work, so metrics per unit are meaningful."""
    bare_machine: bool = False
    """The workload used the machine directly, without a database."""
    in_client: bool = False
    """The engine is a library that runs in the client's threads."""
    limited_writers: bool = False
    """The engine limits how many clients may write concurrently."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Wait event → what a backend does during it."""
