"""The validated plan of a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ironbench.model.lab import Claim
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.search import Limit, Search
from ironbench.model.system import Cell, Choice, System, Trial

AT_STAKE = "power_cut_unflushed_writes"
"""Name of the metric that counts writes that were not yet flushed when the power was cut."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A system, a workload, and the trials in the order in which they run."""

    series: str
    system: System
    choice: Choice
    trials: tuple[Trial, ...]
    confirmations: int
    """Number of trials that confirm the best configuration after a sweep. 0 if there is only one configuration."""
    observe: bool = True
    search: Search | None = None
    """The search for the best load, if there is one. `trials` then contains only the first trials of the search. The
    search chooses each further trial from earlier results."""

    traces: str = ""
    """Directory for traces of emulated devices. Empty if no traces are written."""
    crash: str = ""
    """What happens to unflushed writes at the power cut after each trial: `lose`, `subset` or `torn`. Empty if there is
    none.
    """

    seed_given: bool = False
    """Whether the user chose the seed. If not, each run draws a random seed."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""
    progress_s: int | None = None
    """Interval in seconds between progress lines on stderr, or None if only a progress bar is shown."""

    transaction_log: str = ""
    """File to which one line per measured transaction is written. Empty for no log."""
    sampling_rate: float = 1.0
    """Fraction of the transactions that are logged."""

    profile: ProfileRequest | None = None
    """The stacks to sample during trials, or None if no stacks are sampled."""

    requirements: tuple[Claim, ...] = ()
    """See `Record.requirements`."""

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
        """Estimated time of all trials without engine start and loading. Trials that end after a number of transactions
        count as 0."""
        spans = [(trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s for trial in self.trials]
        return sum(spans) + self.confirmations * (max(spans) if spans else 0.0)

    def transaction_log_of(self, trial: Trial) -> str:
        """Returns the log file of a trial. If the run has several trials, the trial's id is appended to the file's
        name."""
        if not self.transaction_log or trial.purpose == Purpose.REHEARSAL:
            return ""
        several = len(self.trials) > 1 or self.search is not None or trial.cell.load.warmup_auto
        return f"{self.transaction_log}.{record_id(self.series, trial)}" if several else self.transaction_log

    def confirmation_trials(self, peak: Cell | None) -> tuple[Trial, ...]:
        if peak is None:
            return ()
        return tuple(Trial(peak, block, Purpose.CONFIRMATION) for block in range(self.confirmations))


def record_id(series: str, trial: Trial) -> str:
    """Returns the trial's id, which is also the name of its record's directory. The id is unique within the series. In
    a lab, it contains configuration, block and attempt."""
    name = trial.cell.name
    if trial.purpose in (Purpose.LAB, *AUXILIARY):
        short = {Purpose.LAB: f"b{trial.block}", Purpose.PILOT: "pilot"}
        place = short.get(trial.purpose, f"{trial.purpose}{trial.block}")
        return f"{series}-{_slug(name)}-{place}-a{trial.attempt}"
    again = f"-a{trial.attempt}" if trial.attempt > 1 else ""
    return f"{series}-{_slug(name.replace('=', ''))}-{trial.purpose[0]}{trial.block}{again}"


LONGEST_SLUG = 100
"""Maximum length of a slug. A slug, the series and the suffixes form a file name, which has at most 255 bytes
(NAME_MAX)."""


def _slug(name: str) -> str:
    """Converts a configuration's name to a part of a file name: `log=memory clients=8` to `log-memory+clients-8`. Names
    with other characters get a hash suffix."""
    plain = name.replace("=", "-").replace(" ", "+")
    safe = re.sub(r"[^A-Za-z0-9._+-]", "~", plain)[:LONGEST_SLUG]
    return safe if safe == plain else f"{safe}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
