"""A validated plan of a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.search import Limit, Search
from ironbench.model.system import Cell, Choice, System, Trial

AT_STAKE = "power_cut_unflushed_writes"
"""Metric: writes that no flush had followed when the power was cut."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One system, one workload, its trials in the order they will run."""

    series: str
    system: System
    choice: Choice
    trials: tuple[Trial, ...]
    confirmations: int
    """Fresh trials of the peak cell after a sweep; 0 when there is nothing to choose from."""
    observe: bool = True
    search: Search | None = None
    """The trials are then where a search starts; each further one follows from those before."""

    traces: str = ""
    """Directory for the traces of emulated devices; empty: none are wanted."""
    crash: str = ""
    """What a power cut after each trial makes of unflushed writes: `lose`, `subset`, `torn`; empty: there is none."""

    seed_given: bool = False
    """Whether somebody chose the seed: runs differ in those that are drawn by nature."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""
    progress_s: int | None = None
    """A line of progress on stderr this often; None: only the bar."""

    transaction_log: str = ""
    """File for a line about each measured transaction; empty: none is written."""
    sampling_rate: float = 1.0
    """Fraction of the transactions that get a line."""

    turns_since: str = ""
    """See `Record.turns_since`."""

    @property
    def limits(self) -> tuple[Limit, ...]:
        """See `Record.limits`."""
        return self.search.limits if self.search else ()

    @property
    def search_range(self) -> tuple[int, int] | None:
        """See `Record.search_range`."""
        return (self.search.low, self.search.high) if self.search else None

    @property
    def estimate_s(self) -> float:
        """Time of all trials, engine start and load excluded; trials bounded by transactions count as 0."""
        spans = [(trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s for trial in self.trials]
        return sum(spans) + self.confirmations * (max(spans) if spans else 0.0)

    def transaction_log_of(self, trial: Trial) -> str:
        """The file for one trial's lines: in a run of several trials, its name ends with the trial's id."""
        if not self.transaction_log or trial.purpose == Purpose.REHEARSAL:
            return ""
        several = len(self.trials) > 1 or self.search is not None or trial.cell.load.warmup_auto
        return f"{self.transaction_log}.{record_id(self.series, trial)}" if several else self.transaction_log

    def confirmation_trials(self, peak: Cell | None) -> tuple[Trial, ...]:
        if peak is None:
            return ()
        return tuple(Trial(peak, block, Purpose.CONFIRMATION) for block in range(self.confirmations))


def record_id(series: str, trial: Trial) -> str:
    """A folder name, unique in its series; in a lab it holds cell, block and attempt."""
    name = trial.cell.name
    if trial.purpose in (Purpose.LAB, *AUXILIARY):
        short = {Purpose.LAB: f"b{trial.block}", Purpose.PILOT: "pilot"}
        place = short.get(trial.purpose, f"{trial.purpose}{trial.block}")
        return f"{series}-{_slug(name)}-{place}-a{trial.attempt}"
    again = f"-a{trial.attempt}" if trial.attempt > 1 else ""
    return f"{series}-{_slug(name.replace('=', ''))}-{trial.purpose[0]}{trial.block}{again}"


LONGEST_SLUG = 100
"""A file name has at most 255 bytes (NAME_MAX), and the series and its suffixes want theirs."""


def _slug(name: str) -> str:
    """`log=memory clients=8` as `log-memory+clients-8`; other names get a hash."""
    plain = name.replace("=", "-").replace(" ", "+")
    safe = re.sub(r"[^A-Za-z0-9._+-]", "~", plain)[:LONGEST_SLUG]
    return safe if safe == plain else f"{safe}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
