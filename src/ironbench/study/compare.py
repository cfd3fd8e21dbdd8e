"""Compares A with B metric by metric. For each metric, it computes the ratio, the range of the repeats, and whether the
ranges overlap. There is no verdict. `compare`, its breakdown, `report`, `lead` and `cost` all compute ratios by
`mean_ratio`: geometric means of the runs with Welch's interval. Medians are used only to describe a single system,
because a quotient of medians is not the centre of that interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ironbench.catalogue import base_name, better, metrics
from ironbench.model.described import LEADING
from ironbench.model.finding import GroupRatio
from ironbench.model.note import Note, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.sample import late
from ironbench.model.system import Load
from ironbench.stats.intervals import LEVEL
from ironbench.stats.ratio import unpaired
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.comparability import left_out, trial_warnings, unlike
from ironbench.study.curve import MOST_POOLED, NOT_POOLED, ThroughputCurve, curve, metrics_of
from ironbench.study.differences import Difference, differences, facts_of
from ironbench.study.rate import Rate, Ratios, clients_asked, starts_at_recorded_times, without_ratio
from ironbench.study.subjects import Subject, emulated, leading, streams
from ironbench.study.summarise import Repeats, Summary, overlap, repeats


@dataclass(frozen=True, slots=True)
class MeanRatio(GroupRatio):
    """B as a multiple of A, from geometric means. The 95% confidence interval is Welch's, because the trials of A and B
    are not paired."""

    centres: tuple[float, float]
    """Geometric means of A and B, whose quotient is the ratio."""
    trials: tuple[int, int]
    single_run: bool = False
    """Whether A or B has only a single run. The interval is then computed from trials, so it does not include the
    variation between runs."""


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """Comparison of one metric of A and B under one load."""

    metric: str
    better: str
    """Which values are better: `higher`, `lower` or `neither`."""
    a: Summary
    b: Summary
    no_ratio: Note | None = None
    """Reason why no ratio is shown (`ironbench.study.rate`), or None if a ratio is shown."""
    means: MeanRatio | None = None
    """The ratio with its confidence interval, or None if a value is not positive."""

    @property
    def ratio(self) -> float | None:
        """B as a multiple of A, or None if a value is not positive, or if `no_ratio` or `points` is set."""
        return None if self.no_ratio or self.points is not None or self.means is None else self.means.ratio

    @property
    def difference(self) -> Note:
        """A note on whether the trials show a difference, and if not, why. The trials show a difference if the ranges
        of the repeats do not overlap and the confidence interval of the ratio excludes 1.
        """
        if 1 in (self.a.n, self.b.n):
            return note("no-difference-one-trial", both=self.a.n == self.b.n, first=self.a.n == 1)
        if self.overlap:
            return note("no-difference-ranges-overlap")
        if self.means and self.means.known and not self.means.clear:
            return note("no-difference-within-interval")
        return note("difference-shown")

    @property
    def shown(self) -> bool:
        return self.difference.code == "difference-shown"

    @property
    def extremes(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio between a repeat of B and a repeat of A, or None if a value is not
        positive."""
        low, high = ratio(self.a.high, self.b.low), ratio(self.a.low, self.b.high)
        return None if low is None or high is None else (low, high)

    @property
    def points(self) -> float | None:
        """B minus A, if the metric is a fraction and A or B is close to zero. This difference is shown instead of a
        ratio. Otherwise None."""
        a, b = self.a.centre, self.b.centre
        return b - a if not self.no_ratio and without_ratio(self.metric, a, b) else None

    @property
    def overlap(self) -> bool:
        """Whether the ranges of the repeats overlap."""
        return overlap(self.a, self.b)

    @property
    def improves(self) -> bool | None:
        """Whether B's centre is better than A's, or None if the metric has no better direction or did not change."""
        if self.no_ratio or self.better == "neither" or self.a.centre == self.b.centre:
            return None
        more = self.ratio > 1 if self.ratio is not None else self.b.centre > self.a.centre
        return more == (self.better == "higher")


@dataclass(frozen=True, slots=True)
class ConfigurationComparison:
    """The metrics that A and B have in common under one load."""

    name: Note
    rows: tuple[ComparedMetric, ...]

    def row(self, metric: str) -> ComparedMetric | None:
        return next((row for row in self.rows if row.metric == metric), None)


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """The result of `compare A B`."""

    a: str
    b: str
    loads: tuple[Load, Load]
    """Load of A and load of B at the peak or target rate, each from one trial."""
    rates: tuple[Rate | None, Rate | None]
    """Target rates of A and B, and whether they were sustained. A rate is None for a closed loop."""
    peaks: ConfigurationComparison | None
    """Comparison of A at its peak or target rate with B at its peak or target rate. The value is None if a side has no
    throughput."""
    peak_basis: tuple[Note, Note]
    cells: tuple[ConfigurationComparison, ...]
    """Comparisons for each number of clients with which both sides were measured."""
    differences: tuple[Difference, ...]
    unlike: tuple[Note, ...]
    warnings: tuple[Note, ...]
    left_out: tuple[Note, ...]
    emulated: tuple[bool, bool] = (False, False)
    """Whether the storage of A and of B was emulated."""
    derived: tuple[str, ...] = ()
    """Statements that must accompany these results wherever they are shown, for example because of a benchmark's
    fair-use rules."""
    clients: int | None = None
    """The number of clients, if both sides were measured with this number only. The value is None if a side has a peak
    among several numbers."""
    trials: tuple[tuple[Record, ...], tuple[Record, ...]] = ((), ())
    """Usable trials at the peak or target rate. `peaks` is based on these trials."""
    leading: tuple[str, ...] = LEADING
    """Metrics that are shown at the top, starting with the most important. Some of them may not have been measured."""


def ratio(a: float, b: float) -> float | None:
    """Returns b / a, or None unless both are finite and positive."""
    if a <= 0 or b <= 0 or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return b / a


def compare(
    a: Subject,
    b: Subject,
    facts: Sequence[dict[str, str]] = (),
    derived: Sequence[str] = (),
    archive: Archive = EMPTY,
) -> SystemComparison:
    """Compares the usable trials of A and B. Invalid, failed and aborted trials are left out; flagged trials are
    included with their warnings.

    `facts`: flat facts of A and B (machine, engine) that their records do not contain. `archive`: source of the trials'
    histograms.
    """
    sides = (a, b)
    pooled = len(a.records) + len(b.records) <= MOST_POOLED
    curves = curve(a, archive, pool_points=pooled, names=None), curve(b, archive, pool_points=pooled, names=None)
    entered = (a.usable, b.usable)
    asked = zip(entered, clients_asked(entered), facts or ({}, {}), strict=True)
    known = [{**facts_of(side[0]), **clients, **extra} if side else {} for side, clients, extra in asked]
    of_a, of_b = (side.main.trials if side.main else of.usable for side, of in zip(curves, sides, strict=True))
    trials = tuple(of_a), tuple(of_b)
    return SystemComparison(
        a=a.name,
        b=b.name,
        loads=_loads(sides, curves),
        rates=(curves[0].rate, curves[1].rate),
        peaks=_peaks(*curves),
        peak_basis=(_basis(curves[0]), _basis(curves[1])),
        cells=_cells(*entered, *curves, archive if pooled else EMPTY),
        differences=differences(known) if all(known) else (),
        unlike=unlike(*entered),
        warnings=(
            *(
                note("of-subjects", subjects=side.name, note=one)
                for side in sides
                for one in trial_warnings(side.usable)
            ),
            *(() if pooled else (NOT_POOLED,)),
            *_ranges_by_chance(curves, trials),
        ),
        left_out=tuple(
            note("of-subjects", subjects=side.name, note=one) for side in sides for one in left_out(side.records)
        ),
        emulated=(any(map(emulated, a.records)), any(map(emulated, b.records))),
        derived=tuple(derived),
        clients=_only_clients(*curves),
        trials=trials,
        leading=leading(a.records[0]) if a.records else LEADING,
    )


def _ranges_by_chance(
    curves: tuple[ThroughputCurve, ThroughputCurve], trials: tuple[Sequence[Record], Sequence[Record]]
) -> tuple[Note, ...]:
    a, b = (side.main for side in curves)
    if a is None or b is None or trials[0][0].choice.workload != "storage":
        return ()
    # Only the storage workload needs this module, so other workloads do not load it.
    from ironbench.study.storage import ranges_by_chance

    return ranges_by_chance(a.metrics, b.metrics, trials)


def _basis(side: ThroughputCurve) -> Note:
    if side.main is None:
        return note("no-usable-trial")
    return note("side-basis", load=_load(side.main.clients, side.main.trials), basis=side.main.basis)


def _load(clients: int, trials: Sequence[Record]) -> Note:
    """Describes the concurrency: the number of clients, or the streams of a workload that uses streams."""
    known = streams(trials[0])
    return note("load-of-streams", streams=known[1]) if known else note("load-of-clients", clients=clients)


def _only_clients(a: ThroughputCurve, b: ThroughputCurve) -> int | None:
    peaks = (a.peak, b.peak)
    counts = {peak.clients if peak and peak.alone else None for peak in peaks}
    return counts.pop() if len(counts) == 1 else None


def _loads(sides: tuple[Subject, Subject], curves: tuple[ThroughputCurve, ThroughputCurve]) -> tuple[Load, Load]:
    a, b = (
        (of.main.trials if of.main else side.usable or side.records)[0] for side, of in zip(sides, curves, strict=True)
    )
    return a.cell.load, b.cell.load


def _peaks(a: ThroughputCurve, b: ThroughputCurve) -> ConfigurationComparison | None:
    if a.main is None or b.main is None:
        return None
    return ConfigurationComparison(
        note("load-of-peak"), _rows(a.main.metrics, b.main.metrics, a.main.trials, b.main.trials)
    )


def _cells(
    a: Sequence[Record], b: Sequence[Record], curve_a: ThroughputCurve, curve_b: ThroughputCurve, archive: Archive
) -> tuple[ConfigurationComparison, ...]:
    points = {point.clients: point for point in curve_b.points}
    cells = [
        ConfigurationComparison(
            _load(point.clients, point.trials),
            _rows(
                point.metrics,
                points[point.clients].metrics,
                point.trials,
                points[point.clients].trials,
            ),
        )
        for point in curve_a.points
        if point.clients in points
    ]
    if not cells and not (curve_a.points or curve_b.points):
        rows = _rows(metrics_of(a, None, archive), metrics_of(b, None, archive), a, b)
        cells = [ConfigurationComparison(note("load-of-all-trials"), rows)]
    return tuple(cells)


def _rows(
    a: dict[str, Summary], b: dict[str, Summary], of_a: Sequence[Record], of_b: Sequence[Record]
) -> tuple[ComparedMetric, ...]:
    """Compares the metrics that both sides have. The order is that of the built-in list of metrics, with totals before
    parts and unknown metrics last."""
    order = {name: place for place, name in enumerate(metrics())}
    unkept = [record for record in (*of_a, *of_b) if record.kept_rate is False][:1]
    both = [name for name in a if name in b and not any(late(record, name) for record in unkept)]
    reasons = Ratios(of_a, of_b)
    both.sort(key=lambda name: (order.get(base_name(name), len(order)), name))
    return tuple(
        ComparedMetric(name, better(name), a[name], b[name], reasons.lacking(name), ratio_of(of_a, of_b, name))
        for name in both
    )


def ratio_of(a: Sequence[Record], b: Sequence[Record], metric: str) -> MeanRatio | None:
    """Returns the metric of B as a multiple of the metric of A. Returns None if a value is missing or not positive."""
    if any(record.metrics.get(metric, 1.0) <= 0 for record in (*a, *b)):
        return None
    in_turns = {record.purpose for record in (*a, *b)} == {Purpose.LAB} and len({r.series for r in (*a, *b)}) == 1
    return mean_ratio(repeats(a, metric, in_turns), repeats(b, metric, in_turns))


def standing(own: ThroughputCurve, first: ThroughputCurve) -> ComparedMetric | None:
    """Compares the throughput at two peaks. `first` is A and `own` is B. Returns None if a side has no peak, for
    example in an open loop or for paced work."""
    if (
        own.peak is None
        or first.peak is None
        or any(map(starts_at_recorded_times, (*own.peak.trials, *first.peak.trials)))
    ):
        return None
    means = ratio_of(first.peak.trials, own.peak.trials, "throughput")
    return ComparedMetric("throughput", "higher", first.peak.throughput, own.peak.throughput, means=means)


def mean_ratio(a: Repeats, b: Repeats) -> MeanRatio | None:
    """Returns the ratio of B to A with Welch's interval. Returns None if a side has no value.

    Trials of one run vary less than runs do. If trials vary by 1% and runs by 3%, an interval from trials shows a
    difference between two runs of the same system in about 40% of cases. Therefore, the interval is computed from the
    means of runs, unless a side has a single run.
    """
    if not a.values or not b.values:
        return None
    single = 1 in (a.runs, b.runs)
    values = (a.of_trials, b.of_trials) if single else (a.values, b.values)
    centres = geometric_mean(values[0]), geometric_mean(values[1])
    return MeanRatio(*unpaired(*values, LEVEL), centres, (len(a.of_trials), len(b.of_trials)), single)
