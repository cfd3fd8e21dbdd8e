"""Searches for the best number of clients or the best rate. The functions are pure: they compute the next point, or the
result, from the trials so far.

Two assumptions are made. Throughput rises with the load, levels off, and then stays constant or falls. A limit, for
example of a percentile or of CPU time, is exceeded above some load. The search first doubles the load step by step (the
ladder). The search then repeats these points in descending order, so that a steady drift cancels out. Finally, the
search halves the gaps around the best point within the limits, on a logarithmic scale, until they are small. If a limit
ends the range, this is a bisection. Otherwise, it is a bracketing search for the maximum (Kiefer, Proc. AMS 4, 1953,
but without golden sections, because noise requires repeated points). Points that decide the result are repeated until
they differ significantly or are known well enough. A single variance on the logarithmic scale is estimated for all
points (pooled variance: Snedecor and Cochran, "Statistical Methods", section 6.8).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.model.note import Note, note
from ironbench.model.search import Limit, Search
from ironbench.stats.intervals import t_quantile

_LEVEL = 0.95
_FAR_OVER = 1.5
"""If a single trial exceeds a limit by this factor, the search tries no higher load."""
_COLLAPSED = 0.5
"""The search also tries no higher load if the throughput of two consecutive points is below this fraction of the best
throughput."""
RATE = "rate"
"""Value of `SearchResult.ended_by` for a rate that was not sustained."""
FAILED = "failed"
"""Value of `UnconfirmedLoad.by` for a load whose confirmation trial failed."""
_LEAST = 1e-12
_LOW = 0.1
"""Values below this fraction of a limit count as equal. Otherwise, a single value near zero would leave every point
undecided, because the logarithms of values near zero differ enormously.
"""


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """A trial of a search."""

    point: int
    throughput: float
    """Transactions per second. 0 if the system failed at this point."""
    limited: tuple[float, ...] = ()
    """Values of the metrics that have a limit, in the order of the limits."""
    behind: bool = False
    """Whether the trial did not sustain its rate. The rate is then too high, even if the trial meets all limits."""


@dataclass(frozen=True, slots=True)
class NextLoad:
    """Load of the next trial."""

    point: int
    why: Note


@dataclass(frozen=True, slots=True)
class UnconfirmedLoad:
    """A load for which confirmation trials exceeded a limit, did not sustain the rate, or failed."""

    point: int
    by: str
    """The cause: the limit's metric, `RATE` or `FAILED`."""
    value: float
    """The highest value of the metric that exceeded its limit. If the rate was not sustained, the lowest completed
    rate. 0 for a failed trial."""


@dataclass(frozen=True, slots=True)
class TooFewTransactions:
    """Percentiles that cannot be compared with a limit because there are too few transactions."""

    units: str
    """Name of the unit of work, such as transactions."""
    percentiles: tuple[tuple[float, int], ...]
    """For each percentile, the number of transactions that it needs."""
    duration_s: float
    """Length in seconds of a trial that would have enough transactions. 0 if unknown."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search. `point` is None if even the lowest load exceeds a limit or cannot be measured, or if
    confirmation trials confirmed no load."""

    search: Search
    point: int | None
    throughput: float
    """Geometric mean of the throughput of the trials at `point`, in transactions per second."""
    alike: tuple[int, int]
    """Lowest and highest measured point within the limits whose throughput is indistinguishable from the best."""
    ended_by: str
    """Why the search chose no higher load. If a higher load exceeds a limit, the limit's metric. If a higher rate was
    not sustained, `rate`. If `point` is the highest load of the search, `range`. Empty if throughput levels off."""
    ended_at: int
    """Lowest load above `point` that exceeds the limit. The value is the lowest load of the search if even this load
    exceeds a limit or cannot be measured. 0 if there is no such load."""
    trials: int
    tried: tuple[int, ...] = ()
    """Measured points in ascending order."""
    exceeds_limit: bool = True
    """If the search has no result, whether the lowest load significantly exceeds a limit."""
    too_few: TooFewTransactions | None = None
    """Percentiles for which `point` or `ended_at` has too few transactions, so that they cannot be compared with their
    limits. The value is None if there are no such percentiles."""
    confirmations: int = 0
    """Number of confirmation trials at `point`, all of which sustained the rate and met every limit. 0 if there are
    none yet. Labs have no confirmation trials."""
    completed: float = 0.0
    """Median throughput of the confirmation trials, as in the table of target rates."""
    measured: tuple[tuple[str, float], ...] = ()
    """The metrics that have a limit, computed over all confirmation trials together."""
    refused: tuple[UnconfirmedLoad, ...] = ()
    """Higher loads that confirmation trials did not confirm, in descending order."""
    over_below: tuple[int, ...] = ()
    """Loads below `point` that exceeded a limit or did not sustain their rate."""
    unconfirmed: bool = False
    """Whether the search chose a load, but confirmation trials confirmed neither this load nor a lower load."""

    @property
    def inconclusive(self) -> bool:
        """Whether a load within the limits may exist although the search has no result."""
        return self.point is None and (self.unconfirmed or not self.exceeds_limit or self.too_few is not None)

    @property
    def note(self) -> Note:
        """The result as a code with values."""
        search = self.search
        if self.point is None and not self.ended_by and not self.unconfirmed:
            return note("search-failed", of=search.of, low=search.low, high=search.high, at=self.ended_at)
        found: dict[str, Any] = {"of": search.of, "tried": self.tried}
        if self.too_few:
            found |= {"too_few": self.too_few.units, "percentiles": self.too_few.percentiles}
            found |= {"longer_s": self.too_few.duration_s} if self.too_few.duration_s else {}
        if self.point is None and self.ended_by == RATE and not self.unconfirmed:
            return note("search-none-sustained", **found)
        # Every statement about a limit contains the limit's value.
        found |= {"limits": tuple((one.metric, one.most) for one in search.limits)} if search.limits else {}
        found |= {"refused": tuple((one.point, one.by, one.value) for one in self.refused)} if self.refused else {}
        if self.unconfirmed:
            return note("search-unconfirmed", **found)
        if self.point is None:
            return note("search-none-within-limit", **found, limit=self.ended_by, exceeds_limit=self.exceeds_limit)
        if self.confirmations:
            found |= {"confirmations": self.confirmations, "completed": self.completed, "measured": self.measured}
        found |= {"over_below": self.over_below} if self.over_below else {}
        return note(
            "search-best",
            **found,
            point=self.point,
            throughput=self.throughput,
            trials=self.trials,
            low=self.alike[0],
            high=self.alike[1],
            ended_by=self.ended_by,
            ended_at=search.high if self.ended_by == "range" else self.ended_at,
        )


def expected_trials(search: Search) -> int:
    """Estimates the number of trials of a search.

    Assumes that throughput saturates and limits are reached in the middle of the range, and that trials do not vary.
    """
    knee = math.sqrt(search.low * search.high)
    trials: list[SearchTrial] = []
    while isinstance(step := next_step(search, trials), NextLoad):
        share = step.point / knee
        trials.append(SearchTrial(step.point, min(1.0, share), tuple(share * limit.most for limit in search.limits)))
    return len(trials)


_POINTS_BETWEEN = 2
"""The search makes two bisections: one below the best load and one above it."""


def most_trials(search: Search) -> int:
    """Returns the maximum number of trials of a search, without confirmations, assuming that every load of the ladder
    and of both bisections is measured as often as the search permits."""
    points = search.high - search.low + 1
    if search.resolution > 1:
        halvings = max(0, math.ceil(math.log2(math.log(2) / math.log(search.resolution))))
        points = min(points, len(rungs(search)) + _POINTS_BETWEEN * halvings)
    return points * max(search.repeats, search.most_repeats)


def next_step(search: Search, trials: Sequence[SearchTrial]) -> NextLoad | SearchResult:
    """Returns the next load to measure. If the search has ended, returns its result. The same trials always give the
    same return value."""
    seen = _Seen(search, trials)
    lowest = seen.by.get(search.low, [])
    if lowest and not any(one.throughput > 0 for one in lowest):
        # If the lowest load cannot be measured, higher loads cannot be measured either.
        if len(lowest) < search.repeats:
            return NextLoad(search.low, note("search-repeat"))
        return SearchResult(search, None, 0.0, (0, 0), "", search.low, seen.total)
    if seen.total < most_trials(search):
        for rule in (_ladder, _repeat, _decide, _refine, _contend):
            if (step := rule(seen)) is not None:
                return step
    return _answer(seen)


MOST_CONFIRMED = 4
"""Maximum number of loads for which confirmation trials are made."""


def step_down(
    search: Search, trials: Sequence[SearchTrial], refused: Sequence[int], over: Collection[int] = ()
) -> int | None:
    """Returns the next lower load to confirm after the loads in `refused` were not confirmed. Returns None if the
    search is inconclusive. There is a region of loads in which trials sometimes meet the limit and sometimes exceed it.
    To leave it in a few steps, each step is twice as long as the previous one on a logarithmic scale. `over`: loads
    whose trials together exceed a limit.
    """
    if len(refused) >= MOST_CONFIRMED:
        return None
    seen, lowest = _Seen(search, trials), min(refused)
    lower = [point for point in seen.points if point < lowest and point not in over and seen.allowed(point)]
    gap = search.resolution ** (2 ** (len(refused) - 1))
    return max((point for point in lower if point * gap <= lowest), default=min(lower, default=None))


class _Seen:
    """The trials of a search by point, and conclusions about each point."""

    def __init__(self, search: Search, trials: Sequence[SearchTrial]) -> None:
        self.search = search
        self.total = len(trials)
        self.by: dict[int, list[SearchTrial]] = {}
        for trial in trials:
            self.by.setdefault(trial.point, []).append(trial)
        self.points = sorted(self.by)
        # Failed trials all have a throughput of 0, which would hide the variation of the other trials.
        groups = [own for group in self.by.values() if (own := [one for one in group if one.throughput > 0])]
        self._spread = self._pooled([[math.log(one.throughput) for one in group] for group in groups])
        self._spreads = [
            self._pooled([[_excess(limit, one.limited[i]) for one in group] for group in groups])
            for i, limit in enumerate(search.limits)
        ]

    def _log(self, trial: SearchTrial) -> float:
        failed = any(one.throughput <= 0 for one in self.by[trial.point])
        return math.log(_LEAST) if failed else math.log(trial.throughput)

    @staticmethod
    def _pooled(groups: list[list[float]]) -> tuple[float, int]:
        freedom = sum(len(group) - 1 for group in groups)
        squares = sum(sum((x - sum(g) / len(g)) ** 2 for x in g) for g in groups)
        return (math.sqrt(squares / freedom) if freedom else math.inf), freedom

    def level(self, point: int) -> float:
        """Returns the mean logarithm of throughput at a point."""
        return sum(self._log(trial) for trial in self.by[point]) / len(self.by[point])

    def count(self, point: int) -> int:
        return len(self.by[point])

    def kept(self, point: int) -> bool | None:
        """Returns True if the point significantly meets all limits. Returns False if it significantly exceeds a limit.
        Returns None otherwise."""
        if self.behind(point):
            return False
        verdicts = [self._keeps(i, limit, point) for i, limit in enumerate(self.search.limits)]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    def _keeps(self, i: int, limit: Limit, point: int) -> bool | None:
        excesses = [_excess(limit, trial.limited[i]) for trial in self.by[point]]
        mean, (spread, freedom) = sum(excesses) / len(excesses), self._spreads[i]
        margin = t_quantile(_LEVEL, freedom) * spread / math.sqrt(len(excesses)) if freedom else math.inf
        return True if mean + margin <= 0 else False if mean - margin > 0 else None

    def behind(self, point: int) -> bool:
        """Returns whether at least half of the trials at a point did not sustain their rate."""
        return 2 * sum(trial.behind for trial in self.by[point]) >= self.count(point)

    def allowed(self, point: int) -> bool:
        """Returns whether the search may choose the point. A point may be chosen if it is within the limits, or if this
        is undecided and the point can still be repeated."""
        kept = self.kept(point)
        return kept is True or (kept is None and self.count(point) < self.search.most_repeats)

    def broken(self, point: int) -> str:
        """Returns the metric whose limit the point exceeds most, or `RATE` if the rate was not sustained. Returns an
        empty text if there are no limits."""
        if self.behind(point):
            return RATE
        worst, name = -math.inf, ""
        for i, limit in enumerate(self.search.limits):
            mean = sum(_excess(limit, t.limited[i]) for t in self.by[point]) / self.count(point)
            if mean > worst:
                worst, name = mean, limit.metric
        return name

    def far_over(self, point: int) -> bool:
        return self.behind(point) or any(
            _excess(limit, trial.limited[i]) > math.log(_FAR_OVER)
            for i, limit in enumerate(self.search.limits)
            for trial in self.by[point]
        )

    def uncertainty(self, a: int, b: int) -> float:
        """Returns the half width of the confidence interval for the difference of two points' mean logarithms."""
        spread, freedom = self._spread
        if not freedom:
            return math.inf
        return t_quantile(_LEVEL, freedom) * spread * math.sqrt(1 / self.count(a) + 1 / self.count(b))

    @property
    def best(self) -> int | None:
        """The allowed point with the highest throughput."""
        return max((p for p in self.points if self.allowed(p)), key=self.level, default=None)

    def chosen(self, best: int) -> int:
        """Returns the lowest allowed point whose throughput is at most `Search.indifference` lower than at the best
        point."""
        enough = self.level(best) - self.search.indifference
        return min(p for p in self.points if p <= best and self.allowed(p) and self.level(p) >= enough)

    def neighbours(self, point: int) -> tuple[int | None, int | None]:
        at = self.points.index(point)
        return (
            self.points[at - 1] if at else None,
            self.points[at + 1] if at + 1 < len(self.points) else None,
        )


def _excess(limit: Limit, value: float) -> float:
    """Returns the logarithm of a value divided by its limit. The logarithm is negative within the limit."""
    return math.log(max(value / limit.most, _LOW))


def rungs(search: Search) -> list[int]:
    """Returns the loads from the lowest to the highest point, each twice the previous one. The last step may be
    smaller."""
    doubled = itertools.takewhile(lambda n: n < search.high, (search.low << k for k in itertools.count()))
    return [*doubled, search.high]


def _ladder(seen: _Seen) -> NextLoad | None:
    best = -math.inf
    low = 0
    for rung in rungs(seen.search):
        if rung not in seen.by:
            return NextLoad(rung, note("search-ladder"))
        level = seen.level(rung)
        best, low = max(best, level), low + 1 if level < best + math.log(_COLLAPSED) else 0
        if seen.far_over(rung) or low > 1:
            return None
    return None


def _repeat(seen: _Seen) -> NextLoad | None:
    """Repeats points in descending order, so that a steady drift of the machine cancels out."""
    lacking = [point for point in seen.points if seen.count(point) < seen.search.repeats]
    return NextLoad(max(lacking), note("search-repeat")) if lacking else None


def _decide(seen: _Seen) -> NextLoad | None:
    best = seen.best
    if best is not None and seen.kept(best) is None:
        return NextLoad(best, note("search-near-limit"))
    return None


def _refine(seen: _Seen) -> NextLoad | None:
    best = seen.best
    if best is None:
        lowest = seen.points[0]
        return None if lowest <= seen.search.low else NextLoad(seen.search.low, note("search-ladder"))
    chosen = seen.chosen(best)
    gaps = [(seen.neighbours(chosen)[0], chosen), (best, seen.neighbours(best)[1])]
    wide = [(low, high) for low, high in gaps if low is not None and high is not None and _middle(seen, low, high)]
    if not wide:
        return None
    low, high = max(wide, key=lambda gap: gap[1] / gap[0])
    middle = _middle(seen, low, high)
    assert middle is not None
    return NextLoad(middle, note("search-between", low=low, high=high))


def _middle(seen: _Seen, low: int, high: int) -> int | None:
    """Returns the geometric middle of a gap. Returns None if the gap is small enough."""
    middle = round(math.sqrt(low * high))
    if high / low <= seen.search.resolution or not low < middle < high:
        return None
    return middle


def _contend(seen: _Seen) -> NextLoad | None:
    """Repeats the points that decide two questions: whether the chosen point is within the limits, and whether it is as
    good as the best point."""
    best = seen.best
    if best is None:
        return None
    chosen = seen.chosen(best)
    if seen.kept(chosen) is None:
        return NextLoad(chosen, note("search-near-limit"))
    for point in sorted({chosen, best}, key=seen.count):
        undecided = chosen != best and seen.uncertainty(chosen, best) > seen.search.indifference
        if seen.count(point) < seen.search.most_repeats and (undecided or seen.count(point) <= seen.search.repeats):
            return NextLoad(point, note("search-best-undecided"))
    return None


def _answer(seen: _Seen) -> SearchResult:
    best = seen.best
    if best is None:
        lowest = seen.points[0]
        return SearchResult(
            seen.search,
            None,
            throughput=0.0,
            alike=(0, 0),
            ended_by=seen.broken(lowest),
            ended_at=lowest,
            trials=seen.total,
            tried=tuple(seen.points),
            exceeds_limit=seen.kept(lowest) is False,
        )
    chosen = seen.chosen(best)
    alike = [
        point
        for point in seen.points
        if seen.allowed(point)
        and seen.level(best) - seen.level(point) <= max(seen.search.indifference, seen.uncertainty(best, point))
    ]
    above = next((point for point in seen.points if point > chosen and not seen.allowed(point)), None)
    ended_by, ended_at = "", 0
    if max(alike) == seen.search.high and best == seen.search.high and chosen == best:
        ended_by = "range"
    elif above is not None and all(point >= above for point in seen.points if point > max(alike)):
        ended_by, ended_at = seen.broken(above), above
    return SearchResult(
        seen.search,
        chosen,
        throughput=math.exp(seen.level(chosen)),
        alike=(min(alike), max(alike)),
        ended_by=ended_by,
        ended_at=ended_at,
        trials=seen.total,
        tried=tuple(seen.points),
    )
