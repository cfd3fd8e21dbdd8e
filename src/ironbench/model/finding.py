"""The finding of a comparison of two configurations, and the run-to-run variation of a configuration on a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ironbench.model.lab import NOTHING_ELSE, Configuration
from ironbench.model.note import Note, note
from ironbench.model.record import TRIALS

NOT_AT_BOTH_ENDS = "no-verdict-at-both-ends"
"""Code of `Finding.barred` if the ratio drifted over the blocks. No single verdict is then true for all blocks."""

REPEAT_FAILED = "repeat-failed"
"""Code of `Finding.advice` if there is no verdict because trials failed. The blocks of these trials must then be
repeated."""


class Conclusion(StrEnum):
    """The outcome of a comparison. `FASTER` means better in the metric's own direction, even for a latency."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot tell"

    @property
    def word(self) -> str:
        """The outcome's name in reports. `value` is the outcome's name in lab files and JSON documents."""
        return "inconclusive" if self is Conclusion.CANNOT_TELL else self.value


LEAST_BLOCKS_SHOWN = 3
"""Minimum number of blocks for a page to show the confidence interval. With two blocks, the interval has one degree of
freedom and spans orders of magnitude."""


@dataclass(frozen=True, slots=True)
class GroupRatio:
    """A metric's value in one group as a multiple of its value in another group, with a confidence interval."""

    ratio: float
    """The ratio of the groups' geometric means."""
    low: float
    high: float
    """Upper bound of the ratio's confidence interval; `low` is its lower bound. With too few repeats for an interval,
    the bounds are 0 and infinity."""

    @property
    def known(self) -> bool:
        """Whether there are enough repeats for a confidence interval."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def clear(self) -> bool:
        """Whether the confidence interval excludes 1."""
        return self.low > 1 or self.high < 1


_NO_BLOCK = note("no-complete-block")


@dataclass(frozen=True, slots=True)
class Finding(GroupRatio):
    """The result of comparing two configurations by one metric, paired by block. Until `study.verdict.judged` has
    computed the ratio and the verdict, a finding contains only the facts of its blocks."""

    metric: str
    """Name of the metric in the catalogue."""
    cell: str
    """Full name of the configuration; `baseline` is the full name of the configuration that it is compared with."""
    baseline: str
    ratios: tuple[tuple[int, float], ...]
    """For every complete block: the number of the block, and the configuration's value divided by the baseline's."""
    confidence: float = 0.95
    """Confidence level of the interval: 0.95, or higher if alpha is divided among several interim analyses."""
    conclusion: Conclusion = Conclusion.CANNOT_TELL
    margin: float = 0.05
    detectable: float | None = None
    """Minimum detectable effect, as a relative difference. With this number of blocks and this variation, a difference
    of this size is detected with 90% power. None if unknown."""
    p: float | None = None
    """Two-sided p-value for the hypothesis that the ratio is 1, corrected for multiple comparisons. The value is None
    if there are too few blocks for a verdict."""
    method: Note = _NO_BLOCK
    """How the confidence interval was computed."""
    advice: Note | None = None
    """Advice on what to do to decide the comparison, or None if it is decided."""
    warnings: tuple[Note, ...] = ()
    dropped: tuple[Note, ...] = ()
    """Blocks that were excluded, with the reason."""
    decides: bool = True
    """Whether this comparison gets a verdict. A comparison has a verdict if the lab declared it, either as a comparison
    of the lab's metric or in a claim. Other comparisons have no verdict: their conclusion is `CANNOT_TELL` and their p
    is None."""
    barred: Note | None = None
    """Why the comparison must not get a verdict, whatever its confidence interval is. For example, one side lost more
    blocks than the other."""

    lost: tuple[int, int] = (0, 0)
    """Number of blocks without a usable trial of the configuration, and number of blocks without a usable trial of the
    baseline. Trials are unusable if they failed, are invalid, or have no value of the metric."""

    changed: Note | None = None
    """How the ratio drifted over the blocks."""
    ends: tuple[float, float] | None = None
    """The ratio at the start and at the end of the drift in `changed`, or None if the ratio did not drift."""

    shares: tuple[float, float] | None = None
    """Medians of the baseline and of the configuration. A report shows the two medians instead of a ratio if the metric
    is a fraction and one of the medians is close to 0."""

    sides: tuple[Configuration, Configuration] = (NOTHING_ELSE, NOTHING_ELSE)
    """The configuration and the baseline, named by the factor values that differ between them, for example
    `log=memory` and `log=disk`. Configurations that have names in the lab file keep these names."""
    where: Configuration = NOTHING_ELSE
    """Factors that have the same value on both sides, but vary in the lab, for example `clients=8`. At other values of
    these factors, the ratio may be different."""
    losses: tuple[Note, ...] = ()
    """Notes on settings with which data can be lost. Only settings that one of the two sides has and the other lacks
    are included."""
    slow_emulation: tuple[tuple[Configuration, int, int], ...] = ()
    """Sides on which emulation was slower than the device's model. For each side: the configuration, the number of
    trials in which emulation was too slow, and the number of all usable trials."""

    @property
    def blocks(self) -> int:
        return len(self.ratios)

    @property
    def unequal_losses(self) -> bool:
        """Whether one of the two sides lost more blocks than the other.

        The remaining blocks are then a biased sample. For example, a version that crashes under load would be compared
        only in blocks with little load.
        """
        return self.lost[0] != self.lost[1]

    @property
    def name(self) -> str:
        """Name of the comparison in one line, such as `log=memory over log=disk, at clients=8`."""
        at = f", at {self.where.name}" if self.where.values else ""
        return f"{self.sides[0].marked} over {self.sides[1].marked}{at}"

    @property
    def too_slow(self) -> tuple[tuple[Configuration, int, int], ...]:
        """The entries of `slow_emulation` that may affect the conclusion. If emulation slows down the faster side, the
        difference between real devices is even larger, so the conclusion is the same."""
        if self.conclusion is Conclusion.EQUIVALENT:
            return ()
        faster = {Conclusion.FASTER: self.sides[0], Conclusion.SLOWER: self.sides[1]}.get(self.conclusion)
        return tuple(one for one in self.slow_emulation if one[0] != faster)


def floor_of(spread: float) -> float:
    """Returns the noise floor. Two single runs of the same configuration differ by at most this relative difference in
    95% of cases. `spread` is the standard deviation of the log ratio between blocks.
    """
    return math.expm1(_NORMAL_95 * spread)


_NORMAL_95 = 1.96
"""Two-sided 95% quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Result of an A/A test, for one machine, workload and metric. The test shows how much runs of the same
    configuration vary."""

    machine: str
    """Content key of the machine's fingerprint."""
    work: str
    metric: str
    """Name of the metric in the catalogue."""
    blocks: int
    spread: float
    """Standard deviation of the log ratio from block to block."""
    floor: float
    """Two single runs of the same configuration differ by at most this relative difference in 95% of cases. This
    difference is a property of the machine and the workload, and does not depend on the number of blocks."""
    measured_at: str
    """Start of the first trial in UTC, ISO 8601."""
    trial_s: float = 30.0
    """Length of the trials' measured window in seconds. Longer trials vary less."""
    method: str = TRIALS
    """Method of measurement, as in `Record.method`. The variation depends on the method."""

    @property
    def source(self) -> str:
        """Where and how the noise was measured, in words."""
        by = "" if self.method == TRIALS else f" by {self.method}"
        return f"A/A test, {self.blocks} blocks of {self.work}{by} on {self.measured_at[:10]}"
