"""Facts about the workload and the engine of a trial, for code that reads the trial's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEADING = ("throughput", "response_time_mean_s")
"""Metrics that come first in a comparison of transactional workloads."""


@dataclass(frozen=True, slots=True)
class Described:
    """Facts about a workload and an engine. The defaults apply to workloads and engines that this version does not
    contain."""

    units: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work, in the singular and the plural."""
    leading: tuple[str, ...] = LEADING
    """Metrics that come first in a comparison, the most important first."""
    scores: tuple[str, ...] = ("throughput",)
    """Metrics by which systems are ranked, higher is better. The first metric in this list that was measured is
    used."""
    derived: str = ""
    """A sentence that must accompany every result."""
    streams: tuple[int, str] | None = None
    """Maximum number of concurrent streams, and what the streams are called. The value is None if the clients of the
    load do the work."""
    connections: int | None = None
    """Number of connections that do work on the engine, or None if each client has one connection."""
    rests: bool = False
    """Whether clients rest between transactions for a time that the workload determines."""
    paced: bool = False
    """Whether the workload replays operations at the times of a recording."""
    drives: bool = False
    """Whether the workload runs its own code instead of scripts."""
    units_only: bool = True
    """Whether the trial did nothing besides its units of work. Otherwise, metrics per unit have no meaning."""
    bare_machine: bool = False
    """Whether the workload used the machine directly, without a database."""
    in_client: bool = False
    """Whether the engine is a library that runs in the client's threads."""
    limited_writers: bool = False
    """Whether the engine limits how many clients may write concurrently."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """For each wait event, what a backend does while it waits for this event."""
