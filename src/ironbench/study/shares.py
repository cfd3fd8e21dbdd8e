"""Computes shares of waits and shares of CPU time for each number of clients. Also breaks down the difference between
two configurations (waterfall chart).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.note import Note, note
from ironbench.model.observer import WAIT_CLASSES
from ironbench.model.record import Budget, Record
from ironbench.stats.intervals import LEVEL as LEVEL
from ironbench.stats.intervals import half_width, half_width_apart
from ironbench.study.bottleneck import TimeSpent, observed_trials, times, where_time_goes
from ironbench.study.comparability import complete_blocks
from ironbench.study.summarise import summarise

OTHER = "other"
_BUDGET = tuple(part.name for part in fields(Budget))
_WAIT = "wait_share{event="
MOST_EVENTS = 7
"""Maximum number of wait events in one chart, limited by the number of distinguishable colours. The remaining events
are summed as `other`."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of one stacked bar, in stacking order."""

    clients: int
    parts: dict[str, float]


def budgets(points: Sequence[tuple[int, Sequence[Record]]]) -> tuple[Shares, ...]:
    """Returns the mean CPU budget for each number of clients. Leaves out numbers of clients without a measured
    budget."""
    bars = []
    for clients, records in points:
        measured = [record.budget for record in records if record.budget.measured]
        if measured:
            means = {part: sum(getattr(one, part) for one in measured) / len(measured) for part in _BUDGET}
            bars.append(Shares(clients, means))
    return tuple(bars)


def waits(points: Sequence[tuple[int, Sequence[Record]]], events: Sequence[str]) -> tuple[Shares, ...]:
    """For each number of clients, returns the median share of backends in each of `events`. The rest is `other`."""
    bars = []
    for clients, records in points:
        shares = {part: value for part, value in _wait_shares(records).items() if value > 0}
        if shares:
            parts = {event: shares.get(event, 0.0) for event in events}
            rest = sum(value for event, value in shares.items() if event not in parts)
            bars.append(Shares(clients, {**parts, OTHER: rest} if rest > 0 else parts))
    return tuple(bars)


def main_events(records: Sequence[Record]) -> tuple[str, ...]:
    """Returns the wait events with the largest share in any trial, largest first."""
    most: dict[str, float] = {}
    for record in records:
        for name, value in record.metrics.items():
            if name.startswith(_WAIT) and value > most.get(name, 0.0):
                most[name] = value
    ranked = sorted(map(_event, most), key=lambda event: (-most[f"{_WAIT}{event}}}"], event))
    return tuple(ranked[:MOST_EVENTS])


def _wait_shares(records: Sequence[Record]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.metrics.items():
            if name.startswith(_WAIT):
                values.setdefault(_event(name), []).append(value)
    summaries = {event: summarise(shares) for event, shares in values.items()}
    return {event: summary.centre for event, summary in summaries.items() if summary}


def _event(name: str) -> str:
    return name.removeprefix(_WAIT).removesuffix("}")


# The steps of a waterfall are differences in seconds per transaction, and not ratios, so that their sum is the whole
# difference. Each step is the difference of the two configurations' means. If both are configurations of one lab, only
# blocks with trials of both are used. The trials are paired by block, and the interval is Student's t interval of the
# differences (see `stats.ratio`). Otherwise, Welch's interval is used. With fewer than two trials of a configuration,
# there is no interval. The sampling error of one trial is known, but the variation between trials is larger and
# unknown.

_Trials = Mapping[int, Mapping[str, float]]
"""Seconds per transaction of each part, for each trial of one configuration. The keys are blocks of a lab, or indices
of trials."""


@dataclass(frozen=True, slots=True)
class TimeDifference:
    """A difference of two times; negative if the second configuration takes less time."""

    delta_s: float
    low_s: float
    high_s: float
    """Upper bound of the 95% confidence interval; `low_s` is the lower bound. Infinite if a side has too few
    repeats."""

    @property
    def clear(self) -> bool:
        """Whether the confidence interval excludes 0."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True, slots=True)
class ShareStep(TimeDifference):
    """Contribution of one part of a transaction's time to the difference."""

    part: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Breakdown of the difference between two configurations in client seconds per transaction."""

    before: Configuration
    after: Configuration
    before_s: float
    after_s: float
    low_s: float
    high_s: float
    """Bounds of the 95% confidence interval of the whole difference. Infinite if there are too few trials."""
    steps: tuple[ShareStep, ...]
    """Steps in the order of `WAIT_CLASSES`, without parts that are zero on both sides. The sum of the steps is the
    whole difference."""
    method: Note

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough trials for confidence intervals of the steps."""
        return any(math.isfinite(step.low_s) for step in self.steps)

    @property
    def note(self) -> Note:
        """Describes the whole difference and the largest significant step."""
        clear, whole_s = [step for step in self.steps if step.clear], self.after_s - self.before_s
        if self.steps and not self.has_intervals:
            most = max(self.steps, key=lambda step: abs(step.delta_s))
            return note("largest-step-without-interval", whole_s=whole_s, part=most.part, delta_s=most.delta_s)
        if not clear:
            return note("no-clear-step", before=self.before, after=self.after)
        most = max(clear, key=lambda step: abs(step.delta_s))
        step = {"part": most.part, "delta_s": most.delta_s, "low_s": most.low_s, "high_s": most.high_s}
        return note("largest-step", whole_s=whole_s, **step)


Side = tuple[Configuration, Sequence[Record]]
"""A configuration and its comparable trials. For runs, only the name of the system is known. There is at least one
trial."""


def waterfall(before: Side, after: Side, *, in_blocks: bool) -> Waterfall | None:
    """Breaks down the difference between two configurations. Returns None if the backends of one configuration were not
    observed, or, with `in_blocks`, if there is no block in which the backends of both were observed.

    `in_blocks`: whether both are configurations of one lab, so that trials of the same block are paired.
    """
    seen = [observed_trials(records)[0] for _, records in (before, after)]
    if in_blocks:
        seen = list(complete_blocks(*seen))
    spent = [where_time_goes(side) for side in seen]
    if spent[0] is None or spent[1] is None:
        return None
    # Block numbers of separate runs have no common meaning, so their trials are numbered instead.
    a, b = ({record.block if in_blocks else place: times(record) for place, record in enumerate(side)} for side in seen)
    few = min(len(a), len(b)) < (LEAST_BLOCKS_SHOWN if in_blocks else 2)
    steps = tuple(_steps(spent[0], spent[1], a, b, in_blocks, few))
    method = _method(a, b, in_blocks, few)
    whole_a, whole_b = ({block: sum(one.values()) for block, one in side.items()} for side in (a, b))
    half = math.inf if few else half_width_of_difference(whole_a, whole_b, in_blocks)
    of_a, of_b = spent[0].total_s, spent[1].total_s
    delta = of_b - of_a
    return Waterfall(before[0], after[0], of_a, of_b, delta - half, delta + half, steps, method)


def compared_blocks(comparisons: Sequence[tuple[str, str]], records: Sequence[Record]) -> dict[str, set[int]]:
    """Returns, for each configuration of a lab, the blocks that the waterfalls of its comparisons use. These are the
    blocks in which the backends of both sides were observed. Configurations without such a block have no waterfall and
    are left out. `comparisons`: pairs of configurations. `records`: one record for each configuration and block.
    """
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        by_cell.setdefault(record.cell.name, []).append(record)
    seen = {name: observed_trials(own)[0] for name, own in by_cell.items()}
    found: dict[str, set[int]] = {}
    for a, b in comparisons:
        if blocks := {one.block for one in complete_blocks(seen.get(a, []), seen.get(b, []))[0]}:
            for side in (a, b):
                found.setdefault(side, set()).update(blocks)
    return found


def _steps(
    before: TimeSpent, after: TimeSpent, a: _Trials, b: _Trials, in_blocks: bool, few: bool
) -> Iterator[ShareStep]:
    for name in WAIT_CLASSES:
        from_s, to_s = (_seconds(spent, name) for spent in (before, after))
        if from_s or to_s:
            # A difference caused by rounding counts as 0.
            delta = 0.0 if math.isclose(from_s, to_s) else to_s - from_s
            of_a, of_b = ({block: one.get(name, 0.0) for block, one in side.items()} for side in (a, b))
            half = math.inf if few else half_width_of_difference(of_a, of_b, in_blocks)
            yield ShareStep(delta, delta - half, delta + half, name)


def half_width_of_difference(a: Mapping[int, float], b: Mapping[int, float], in_blocks: bool) -> float:
    """Returns the half width of the 95% confidence interval of the difference of two means. `a`, `b`: values by block,
    or by index of the trial. `in_blocks`: whether the values are paired by block. If so, both sides must have the same
    blocks. Otherwise, Welch's interval is used."""
    if in_blocks:
        return half_width([b[block] - a[block] for block in a], LEVEL)
    return half_width_apart(list(a.values()), list(b.values()), LEVEL)


def _method(a: _Trials, b: _Trials, in_blocks: bool, few: bool) -> Note:
    if few:
        return note("no-step-intervals", least_blocks=LEAST_BLOCKS_SHOWN if in_blocks else None)
    if in_blocks:
        return note("t-intervals-of-differences", blocks=len(a))
    return note("welch-intervals", trials=(len(a), len(b)))


def _seconds(spent: TimeSpent, name: str) -> float:
    """Returns a part's seconds per transaction."""
    return next((part.time_s for part in spent.parts if part.name == name), 0.0)
