"""Where the difference of two systems comes from, from the top down: throughput, response time, scripts and commands,
the time of a transaction, I/O, plans, configuration.

Every level is what its own module finds (`shares`, `statements`, `queries`, `inside`, `differences`); here they are put
in order, and what is measured gets one kind of ratio and interval: paired by block where both are cells of one lab
(`stats.ratio.paired`), else Welch's of two sets of trials (`stats.ratio.unpaired`). None of it carries a verdict.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench.catalogue import base_name, part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.sample import listed
from ironbench.stats.intervals import half_width, half_width_apart
from ironbench.stats.ratio import paired, unpaired
from ironbench.study.archive import Archive
from ironbench.study.differences import Difference, differences, facts
from ironbench.study.inside import OtherPlan, other_plans, uses
from ironbench.study.io_cause import Cause, cause
from ironbench.study.queries import QueryRatio, queries, shown_interval
from ironbench.study.shares import LEVEL, Waterfall, waterfall
from ironbench.study.statements import StatementTimings, Timed, sure, times
from ironbench.study.subjects import leading

_RESPONSE = tuple(f"response_time_{name}_s" for name in ("mean", "p50", "p95", "p99"))
_PER_TRANSACTION = (
    *("device_reads_per_s", "device_read_bytes_per_s", "device_writes_per_s", "device_write_bytes_per_s"),
    *("device_flushes_per_s", "engine_reads_per_s", "engine_writes_per_s"),
)
"""Rates of I/O, which are held against the throughput: more work alone needs more I/O."""
_PER_IO = (
    *("device_read_latency_s", "device_write_latency_s", "device_flush_latency_s", "wal_bytes_per_transaction"),
    *("engine_read_latency_s", "engine_write_latency_s"),
)
_RARE = 0.01
"""I/Os per transaction below which a ratio of them explains nothing."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric on both sides."""

    metric: str
    per_transaction: bool
    """Whether a rate was divided by the throughput."""
    before: float
    after: float
    """Geometric means of the trials, base units."""
    ratio: float
    low: float
    high: float
    """95 % interval; 0 and infinity where a side has a single trial, or a lab too few blocks."""
    whole_device: bool = False
    """Whether a shared device counted it for all programs on the machine, so that it may not be the server's."""

    @property
    def known(self) -> bool:
        return self.low > 0 and math.isfinite(self.high)

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 1 out."""
        return self.low > 1 or self.high < 1


@dataclass(frozen=True, slots=True)
class ScriptShare:
    """What one script contributes to the mean response time: its share of the transactions times its own mean."""

    name: str
    before_s: float
    after_s: float
    """Its own mean response time."""
    part_before_s: float
    part_after_s: float
    """Its contributions; those of all scripts sum to the mean response time."""
    delta_s: float
    """Of the contribution."""
    low_s: float
    high_s: float
    """95 % interval; infinite where a side has a single trial."""

    @property
    def clear(self) -> bool:
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """B against A, level by level; a level that was not measured is empty."""

    before: str
    after: str
    in_blocks: bool
    """Whether the trials are paired by block."""
    throughput: tuple[Measure, ...]
    """The work's leading metric, or the first of them that both have."""
    response: tuple[Measure, ...]
    scripts: tuple[ScriptShare, ...]
    """The largest contribution first."""
    statements: tuple[tuple[Timed, QueryRatio], ...]
    """Commands whose time surely differs, the farthest from 1 first; of a single observed trial per side, which has no
    interval, those that take longer or shorter, the largest change of time in all first."""
    queries: tuple[QueryRatio, ...]
    """The same of queries."""
    waterfall: Waterfall | None
    io: tuple[Measure, ...]
    """The farthest from 1 first, those whose interval leaves 1 out before the others; those of a whole device last."""
    plans: tuple[OtherPlan, ...]
    differences: tuple[Difference, ...]
    observed: bool = False
    """Whether the time of a transaction, I/O and plans, and commands that slices did not time, come from one observed
    trial of each side."""

    @property
    def goes_down(self) -> bool:
        """Whether any level below the response time was measured."""
        return bool(self.waterfall or self.scripts or self.statements or self.queries or self.io or self.plans)


Side = tuple[str, Sequence[Record]]
"""Name, and comparable trials, one at least."""


def observed_of(records: Sequence[Record]) -> list[Record]:
    """Trials that observers watched beside slices: they explain differences and enter no finding."""
    return [one for one in records if one.purpose == Purpose.OBSERVED and one.status.comparable]


def explain(
    before: Side, after: Side, archive: Archive, *, in_blocks: bool, observed: tuple[Side, Side] | None = None
) -> Explanation:
    """`in_blocks`: both are cells of one lab, and trials of one block pair. `observed`: the same sides' trials with
    observers, where the others have none."""
    sides = (before[1], after[1])
    groups = [before, after]
    watched = groups if observed is None else [*observed]
    seen, pair = [records for _, records in watched], in_blocks and observed is None
    by_slices = observed is not None and not any(one.statements for side in sides for one in side)
    timed = times(watched if by_slices else groups, archive, in_blocks=in_blocks and not by_slices)
    by_query = queries(groups, in_blocks=in_blocks)
    ratios = by_query.subjects[1].ratios if by_query and len(by_query.subjects) > 1 else ()
    return Explanation(
        before=before[0],
        after=after[0],
        in_blocks=in_blocks,
        throughput=tuple(_measures(sides, leading(before[1][0]), in_blocks))[:1],
        response=tuple(_measures(sides, _RESPONSE, in_blocks)),
        scripts=_scripts(*sides, in_blocks),
        statements=tuple(_changed(timed) if by_slices else ((one, ratio) for _, one, ratio in sure(timed))),
        queries=tuple(sorted((one for one in ratios if _apart(one)), key=lambda one: -abs(math.log(one.ratio)))),
        waterfall=waterfall(*seen, in_blocks=pair),
        io=_io(seen, pair),
        plans=other_plans(uses(watched, archive)),
        differences=differences([facts(side[0], archive) for side in sides]),
        observed=observed is not None,
    )


def _changed(timed: Sequence[StatementTimings]) -> list[tuple[Timed, QueryRatio]]:
    """Commands of the second side with their ratios, the largest change of time in all first."""
    known = [(one, one.ratio) for side in timed[1:] for one in side.statements if one is not None and one.ratio]
    return sorted(known, key=lambda pair: -pair[0].count * abs(pair[0].mean_s - (pair[0].first_s or 0.0)))


def _apart(one: QueryRatio) -> bool:
    return one.known and (one.low > 1 or one.high < 1)


def _measures(sides: Sequence[Sequence[Record]], names: Sequence[str], in_blocks: bool) -> Iterator[Measure]:
    for name in names:
        values = [_by_block(side, name) for side in sides]
        if (found := _measure(name, values[0], values[1], in_blocks)) is not None:
            yield found


_Values = Sequence[tuple[int, float]]
"""Block and value of each trial."""


def _by_block(records: Sequence[Record], name: str) -> list[tuple[int, float]]:
    return [(one.block, one.metrics[name]) for one in records if one.metrics.get(name, 0.0) > 0 and listed(one, name)]


def _measure(name: str, a: _Values, b: _Values, in_blocks: bool, per_transaction: bool = False) -> Measure | None:
    if not a or not b:
        return None
    before, after = (statistics.geometric_mean(value for _, value in side) for side in (a, b))
    base = dict(a)
    common = [value / base[block] for block, value in b if block in base] if in_blocks else []
    if len(common) > 1:
        found = paired(common)
        return Measure(name, per_transaction, before, after, found.ratio, *shown_interval(found))
    return Measure(name, per_transaction, before, after, *unpaired([v for _, v in a], [v for _, v in b], LEVEL))


def _io(sides: Sequence[Sequence[Record]], in_blocks: bool) -> tuple[Measure, ...]:
    names = sorted({name for side in sides for one in side for name in one.metrics})
    found = list(_measures(sides, [name for name in names if base_name(name) in _PER_IO], in_blocks))
    for name in (name for name in names if base_name(name) in _PER_TRANSACTION):
        if (whose := cause(sides, name)) is Cause.OTHERS:
            continue
        values = [
            [(one.block, one.metrics[name] / one.metrics["throughput"]) for one in side if _has(one, name)]
            for side in sides
        ]
        one = _measure(name, values[0], values[1], in_blocks, per_transaction=True)
        if one is not None and max(one.before, one.after) >= _RARE:
            found.append(replace(one, whole_device=whose is Cause.UNKNOWN))
    return tuple(sorted(found, key=lambda one: (one.whole_device, not one.clear, -abs(math.log(one.ratio)))))


def _has(record: Record, name: str) -> bool:
    return record.metrics.get(name, 0.0) > 0 and record.metrics.get("throughput", 0.0) > 0


def _scripts(a: Sequence[Record], b: Sequence[Record], in_blocks: bool) -> tuple[ScriptShare, ...]:
    """Of scripts that both sides drove; () for a single one, which is the whole."""
    # Only blocks of one lab pair; each run of a label has a first block of its own.
    sides = [
        {one.block if in_blocks else place: _contributions(one) for place, one in enumerate(side)} for side in (a, b)
    ]
    names = dict.fromkeys(name for side in sides for trial in side.values() for name in trial)
    if len(names) < 2:
        return ()
    found = []
    for name in names:
        values = [{block: trial[name] for block, trial in side.items() if name in trial} for side in sides]
        if all(values):
            before, after = (statistics.fmean(mean for _, mean in side.values()) for side in values)
            parts = [{block: part for block, (part, _) in side.items()} for side in values]
            of_a, of_b = (statistics.fmean(side.values()) for side in parts)
            delta = of_b - of_a
            half = _half(parts[0], parts[1], in_blocks)
            found.append(ScriptShare(name, before, after, of_a, of_b, delta, delta - half, delta + half))
    return tuple(sorted(found, key=lambda one: -abs(one.delta_s)))


def _contributions(record: Record) -> dict[str, tuple[float, float]]:
    """Script → its part of the mean response time of all transactions, and its own mean; seconds."""
    metrics = record.metrics
    whole = metrics.get("throughput", 0.0)
    found = {}
    for name, mean_s in metrics.items():
        part = part_of(name)
        rate = metrics.get(f"throughput{{{part}}}", 0.0)
        if base_name(name) == "response_time_mean_s" and part.startswith("script=") and rate > 0 and whole > 0:
            found[part.partition("=")[2]] = (mean_s * rate / whole, mean_s)
    return found if listed(record, "response_time_mean_s") else {}


def _half(a: Mapping[int, float], b: Mapping[int, float], in_blocks: bool) -> float:
    if min(len(a), len(b)) < (LEAST_BLOCKS_SHOWN if in_blocks else 2):
        return math.inf
    if in_blocks and a.keys() == b.keys():
        return half_width([b[block] - a[block] for block in a], LEVEL)
    return half_width_apart(list(a.values()), list(b.values()), LEVEL)
