"""Explains the difference between two systems from the top down.

The levels are throughput, response time, scripts and commands, the parts of a transaction's time, I/O, plans, and
configuration. Other modules compute the levels (`shares`, `statements`, `queries`, `inside`, `differences`); this
module combines them. Ratios and confidence intervals of measured values are computed in the same way. If both sides are
configurations of one lab, trials are paired by block (`stats.ratio.paired`). Otherwise, the interval is Welch's
interval of the runs (`study.compare.mean_ratio`). As in findings, a block of a lab is used only if both sides have a
usable trial in it (`study.comparability.complete_blocks`). These ratios are not verdicts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ironbench.catalogue import base_name, part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN, GroupRatio
from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.sample import listed
from ironbench.stats.intervals import LEVEL
from ironbench.stats.ratio import paired
from ironbench.study.archive import Archive
from ironbench.study.comparability import complete_blocks, work_apart
from ironbench.study.compare import mean_ratio
from ironbench.study.differences import Difference, differences, facts
from ironbench.study.inside import OtherPlan, other_plans, uses
from ironbench.study.io_cause import Cause, cause
from ironbench.study.profiled import ProfileComparison, is_profiled
from ironbench.study.queries import QueryRatio, queries
from ironbench.study.shares import Side, TimeDifference, Waterfall, half_width_of_difference, waterfall
from ironbench.study.statements import StatementTimings, TimedCommand, sure, times
from ironbench.study.subjects import leading
from ironbench.study.summarise import grouped
from ironbench.study.wait_parts import WaitPart, wait_parts

_RESPONSE = tuple(f"response_time_{name}_s" for name in ("mean", "p50", "p95", "p99"))
_PER_TRANSACTION = (
    *("device_reads_per_s", "device_read_bytes_per_s", "device_writes_per_s", "device_write_bytes_per_s"),
    *("device_flushes_per_s", "engine_reads_per_s", "engine_writes_per_s"),
)
"""Metrics of I/O per second. These metrics are divided by throughput, because more transactions need more I/O."""
_PER_IO = (
    *("device_read_latency_s", "device_write_latency_s", "device_flush_latency_s", "wal_bytes_per_transaction"),
    *("engine_read_latency_s", "engine_write_latency_s"),
)
_RARE = 0.01
"""Minimum number of I/Os per transaction. A ratio of fewer I/Os explains nothing."""


@dataclass(frozen=True, slots=True)
class Measure(GroupRatio):
    """A metric on both sides. The ratio is the value after divided by the value before."""

    metric: str
    per_transaction: bool
    """Whether the metric is a rate divided by throughput."""
    before: float
    after: float
    """`before` and `after`: geometric means of the runs or trials of each side, in base units."""
    whole_device: bool = False
    """Whether the metric is from the counters of a shared device. Such counters include the I/O of all programs, so the
    server may not have caused the I/O."""


@dataclass(frozen=True, slots=True)
class ScriptShare(TimeDifference):
    """The change of a script's contribution to the mean response time. The contribution is the script's share of
    transactions times its mean response time."""

    name: str
    before_s: float
    after_s: float
    """`before_s` and `after_s`: mean response times of the script on each side."""
    part_before_s: float
    part_after_s: float
    """`part_before_s` and `part_after_s`: contributions of the script on each side. Over all scripts, the contributions
    add up to the mean response time."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of the difference between B and A, level by level. A level that was not measured is empty."""

    before: Configuration
    after: Configuration
    in_blocks: bool
    """Whether the trials are paired by block."""
    throughput: tuple[Measure, ...]
    """The first of the work's leading metrics that both sides have. Empty if they have none in common."""
    response: tuple[Measure, ...]
    scripts: tuple[ScriptShare, ...]
    """Scripts, ordered by the change of their contribution, with the largest first."""
    statements: tuple[tuple[TimedCommand, QueryRatio], ...]
    """Commands whose time differs significantly, with the largest ratio first.

    If there is a single observed trial per side, no command has a confidence interval, and this list contains all
    commands, ordered by the change of their total time, with the largest first.
    """
    queries: tuple[QueryRatio, ...]
    """Queries whose time differs significantly, with the largest ratio first."""
    waterfall: Waterfall | None
    io: tuple[Measure, ...]
    """I/O metrics. Metrics with a significant ratio come first, ordered by the size of the ratio. Metrics of a shared
    device come last."""
    plans: tuple[OtherPlan, ...]
    differences: tuple[Difference, ...]
    work: tuple[Note, ...] = ()
    """How the work of the sides differs, for example in their scripts. Empty for equal work."""
    open_loop: bool = False
    """Whether both sides have a target rate, which then determines throughput."""
    observed: bool = False
    """Whether the breakdown of time, I/O and plans are from separate trials with observers, usually one per side. The
    times of commands are also from these trials, unless the other trials timed commands."""

    contradicted: float | None = None
    """Set if the observed trials contradict the other trials (`_contradicts`): the ratio of `throughput` in the
    observed trials. The levels from observed trials then do not explain the difference. Otherwise None."""
    profile: ProfileComparison | None = None
    """Comparison of the functions and waits in which time was spent, or None if one side was not profiled."""
    wait_parts: tuple[WaitPart, ...] = ()
    """Wait events and functions that make up the steps of `waterfall`."""

    @property
    def goes_down(self) -> bool:
        """Whether any level below response time was measured."""
        levels = (self.waterfall, self.scripts, self.statements, self.queries, self.io, self.profile, self.plans)
        return any(levels)


def observed_of(records: Sequence[Record]) -> list[Record]:
    """Returns the trials with observers that a lab with slices measures after its blocks. These trials explain
    differences, and no finding uses them."""
    return [one for one in records if one.purpose == Purpose.OBSERVED and one.status.comparable]


def explain(
    before: Side, after: Side, archive: Archive, *, in_blocks: bool, observed: tuple[Side, Side] | None = None
) -> Explanation:
    """Explains the difference between two sides.

    `in_blocks`: whether both are configurations of one lab, so that trials of one block are paired. Blocks in which one
    side has no usable trial are then left out. Without any complete block, the levels that are computed from blocks are
    empty. `observed`: separate trials of the same sides with observers, given if the other trials have no observers.
    """
    whole = (before[1], after[1])
    if in_blocks:
        a, b = complete_blocks(*whole)
        before, after = (before[0], a), (after[0], b)
    sides = (before[1], after[1])
    # Facts are compared even if there is no complete block.
    known = sides if all(sides) else whole
    watched, pair = observed or (before, after), in_blocks and observed is None
    groups, watched_groups = ([(one.name, records) for one, records in of] for of in ((before, after), watched))
    seen = [records for _, records in watched]
    by_slices = observed is not None and not any(one.statements for side in sides for one in side)
    timed = times(watched_groups if by_slices else groups, archive, in_blocks=in_blocks and not by_slices)
    by_query = queries(groups, in_blocks=in_blocks)
    ratios = by_query.subjects[1].ratios if by_query and len(by_query.subjects) > 1 else ()
    result = tuple(_measures(sides, leading(known[0][0]), in_blocks))[:1]
    return Explanation(
        before=before[0],
        after=after[0],
        in_blocks=in_blocks,
        throughput=result,
        response=tuple(_measures(sides, _RESPONSE, in_blocks)),
        scripts=_scripts(*sides, in_blocks),
        statements=tuple(_changed(timed) if by_slices else ((one, ratio) for _, one, ratio in sure(timed))),
        queries=tuple(sorted((one for one in ratios if one.clear), key=lambda one: -abs(math.log(one.ratio)))),
        waterfall=waterfall(*watched, in_blocks=pair),
        wait_parts=wait_parts(*watched, archive, in_blocks=pair),
        io=_io(seen, pair),
        plans=other_plans(uses(watched_groups, archive)),
        differences=differences([facts(side[0], archive) for side in known]),
        work=tuple(work_apart(*known)),
        open_loop=all(side[0].cell.load.rate is not None for side in known),
        observed=observed is not None,
        contradicted=_contradicts(result[0], seen) if observed is not None and result else None,
        profile=_profiles(before, after, archive, in_blocks),
    )


def _profiles(before: Side, after: Side, archive: Archive, in_blocks: bool) -> ProfileComparison | None:
    if not any(is_profiled(one) for _, records in (before, after) for one in records):
        return None
    from ironbench.study.profile import compare_profiles  # imports numpy, which `compare` does not need otherwise

    return compare_profiles(before, after, archive, in_blocks=in_blocks)


_MOST_APART = 2.0


def _contradicts(result: Measure, observed: Sequence[Sequence[Record]]) -> float | None:
    """Checks whether the observed trials contradict a significant `result`: whether the metric changed in the opposite
    direction in these trials, or the change (the logarithm of the ratio) is less than half or more than twice as large.
    Returns the ratio in the observed trials if they contradict, and otherwise None. This can happen because there is
    usually only one observed trial per configuration, and the machine may have been busy during that trial.
    """
    there = next(_measures(observed, [result.metric], in_blocks=False), None)
    if there is None or not result.clear:
        return None
    part = math.log(there.ratio) / math.log(result.ratio)
    return None if 1 / _MOST_APART <= part <= _MOST_APART else there.ratio


def _changed(timed: Sequence[StatementTimings]) -> list[tuple[TimedCommand, QueryRatio]]:
    """Returns commands of the second side with their ratios, largest change of total time first."""
    known = [(one, one.ratio) for side in timed[1:] for one in side.statements if one is not None and one.ratio]
    return sorted(known, key=lambda pair: -pair[0].count * abs(pair[0].mean_s - (pair[0].first_s or 0.0)))


def _measures(sides: Sequence[Sequence[Record]], names: Sequence[str], in_blocks: bool) -> Iterator[Measure]:
    for name in names:
        values = [_values(side, name) for side in sides]
        if (found := _measure(name, values[0], values[1], in_blocks)) is not None:
            yield found


_Values = Sequence[tuple[Record, float]]
"""Pairs of a trial and its value."""


def _values(records: Sequence[Record], name: str) -> list[tuple[Record, float]]:
    return [(one, one.metrics[name]) for one in records if one.metrics.get(name, 0.0) > 0 and listed(one, name)]


def _measure(name: str, a: _Values, b: _Values, in_blocks: bool, per_transaction: bool = False) -> Measure | None:
    if in_blocks:  # a trial may lack this metric
        blocks = {one.block for one, _ in a} & {one.block for one, _ in b}
        a, b = ([(one, value) for one, value in side if one.block in blocks] for side in (a, b))
    of_a, of_b = (grouped([(one.series, value) for one, value in side], in_blocks) for side in (a, b))
    if (found := mean_ratio(of_a, of_b)) is None:
        return None
    bounds = found.ratio, found.low, found.high
    if in_blocks:
        base = {one.block: value for one, value in a}
        ratios = [value / base[one.block] for one, value in b]
        bounds = paired(ratios).with_interval(LEVEL, LEAST_BLOCKS_SHOWN)
    return Measure(*bounds, name, per_transaction, *found.centres)


def _io(sides: Sequence[Sequence[Record]], in_blocks: bool) -> tuple[Measure, ...]:
    names = sorted({name for side in sides for one in side for name in one.metrics})
    found = list(_measures(sides, [name for name in names if base_name(name) in _PER_IO], in_blocks))
    for name in (name for name in names if base_name(name) in _PER_TRANSACTION):
        if (whose := cause(sides, name)) is Cause.OTHERS:
            continue
        values = [
            [(one, one.metrics[name] / one.metrics["throughput"]) for one in side if _has(one, name)] for side in sides
        ]
        one = _measure(name, values[0], values[1], in_blocks, per_transaction=True)
        if one is not None and max(one.before, one.after) >= _RARE:
            found.append(replace(one, whole_device=whose is Cause.UNKNOWN))
    return tuple(sorted(found, key=lambda one: (one.whole_device, not one.clear, -abs(math.log(one.ratio)))))


def _has(record: Record, name: str) -> bool:
    return record.metrics.get(name, 0.0) > 0 and record.metrics.get("throughput", 0.0) > 0


def _scripts(a: Sequence[Record], b: Sequence[Record], in_blocks: bool) -> tuple[ScriptShare, ...]:
    """Compares the scripts that both sides ran. Returns nothing if there is a single script, because its change equals
    the change of the whole response time."""
    # Only trials of one lab are paired by block. Equal block numbers of separate runs mean nothing, so trials of runs
    # are numbered instead.
    sides = [
        {one.block if in_blocks else place: _contributions(one) for place, one in enumerate(side)} for side in (a, b)
    ]
    names = dict.fromkeys(name for side in sides for trial in side.values() for name in trial)
    if len(names) < 2:
        return ()
    found = []
    for name in names:
        values = [{block: trial[name] for block, trial in side.items() if name in trial} for side in sides]
        if in_blocks:
            blocks = sorted(values[0].keys() & values[1].keys())
            values = [{block: side[block] for block in blocks} for side in values]
        if all(values):
            before, after = (statistics.fmean(mean for _, mean in side.values()) for side in values)
            parts = [{block: part for block, (part, _) in side.items()} for side in values]
            of_a, of_b = (statistics.fmean(side.values()) for side in parts)
            delta = of_b - of_a
            few = min(map(len, parts)) < (LEAST_BLOCKS_SHOWN if in_blocks else 2)
            half = math.inf if few else half_width_of_difference(parts[0], parts[1], in_blocks)
            found.append(ScriptShare(delta, delta - half, delta + half, name, before, after, of_a, of_b))
    return tuple(sorted(found, key=lambda one: -abs(one.delta_s)))


def _contributions(record: Record) -> dict[str, tuple[float, float]]:
    """Returns, for each script, a pair in seconds: the script's contribution to the mean response time of all
    transactions, and the script's own mean response time."""
    metrics = record.metrics
    whole = metrics.get("throughput", 0.0)
    found = {}
    for name, mean_s in metrics.items():
        part = part_of(name)
        rate = metrics.get(f"throughput{{{part}}}", 0.0)
        if base_name(name) == "response_time_mean_s" and part.startswith("script=") and rate > 0 and whole > 0:
            found[part.partition("=")[2]] = (mean_s * rate / whole, mean_s)
    return found if listed(record, "response_time_mean_s") else {}
