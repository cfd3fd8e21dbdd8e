"""Computes headroom: the highest rate at which a system keeps a response time limit. The rate has a confidence interval
over blocks.

Each block of a lab measures every system at the same rates in an open loop. Within a block, the rate at which the
response time would equal the limit is interpolated between the measured rates. Blocks are independent repeats, so the
confidence interval of that rate is Student's t interval over blocks. The interval is computed from logarithms, because
rates are compared as ratios. Two systems of one lab are compared within each block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from ironbench.errors import InputError
from ironbench.model.lab import Claim
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import Record, Status
from ironbench.model.sample import few, sampled
from ironbench.records.described import described
from ironbench.records.work import work
from ironbench.stats.intervals import half_width, half_width_apart
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.curve import metrics_of
from ironbench.study.subjects import machines_among, marked
from ironbench.study.summarise import Summary

LEAST_BLOCKS = 3
"""Minimum number of blocks for a confidence interval. With two blocks, Student's t has only one degree of freedom."""
LEAST_RATES = 2
"""Minimum number of rates, because the limit must be between two of them."""
_UNSUSTAINED = math.log(2)
"""Logarithm of 2. If a rate was not sustained, its response time counts as at least twice the limit. The measured
response time may be lower, because the queue grows with the length of the trial."""
_SAME_RATE = 0.01
"""Today's rate counts as measured if it differs from a measured rate by at most this fraction."""


@dataclass(frozen=True, slots=True)
class RateInterval:
    """A rate, or a ratio of two rates, with its 95% confidence interval."""

    value: float
    """Geometric mean over blocks."""
    low: float | None
    high: float | None
    """Upper end of the interval; `low` is the lower end. The value is None with fewer than `LEAST_BLOCKS` blocks."""
    blocks: int

    @property
    def known(self) -> bool:
        """Whether there is a confidence interval."""
        return self.low is not None and self.high is not None

    @property
    def clear(self) -> bool:
        """Whether the interval of a ratio excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    def over(self, rate: float) -> RateInterval:
        """Returns the ratio to a rate that is known exactly."""
        low, high = (None if end is None else end / rate for end in (self.low, self.high))
        return RateInterval(self.value / rate, low, high, self.blocks)


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The trials of a system at one rate."""

    rate: float
    """Transactions started per second."""
    summary: Summary | None
    """Summary of the limited metric. A percentile is computed over the transactions of all trials together. The value
    is None if no trial has enough transactions."""
    trials: int
    sustained: int
    """Number of trials that sustained the rate."""


@dataclass(frozen=True, slots=True)
class SystemHeadroom:
    """The highest rate of one system within the limit."""

    name: str
    highest: RateInterval | None
    """The highest rate, with its confidence interval. The value is None if there is no block in which the limit is
    between two measured rates."""
    rates: tuple[MeasuredRate, ...]
    """In ascending order."""
    above: int
    """Number of blocks in which even the highest measured rate was within the limit."""
    above_rate: float
    """The lowest of the highest measured rates of the blocks in `above`, or 0 if there is no such block."""
    below: int
    """Number of blocks in which even the lowest measured rate exceeded the limit."""
    below_rate: float
    """The highest of the lowest usable rates of the blocks in `below`, or 0 if there is no such block."""
    short: int
    """Number of trials that sustained their rate, but have too few transactions for the limited percentile, or too many
    that were still waiting at the end."""
    flagged: int
    """Number of trials that sustained their rate and are flagged."""

    @property
    def complete(self) -> bool:
        """Whether the limit is between two measured rates in every block, and there are enough blocks for a confidence
        interval."""
        return self.highest is not None and self.highest.known and not self.above and not self.below

    def at(self, rate: float) -> MeasuredRate | None:
        """Returns the trials at this rate, if it was measured."""
        return next((one for one in self.rates if abs(one.rate / rate - 1) <= _SAME_RATE), None)


@dataclass(frozen=True, slots=True)
class Headroom:
    """The headroom of several systems for the same work and the same limit."""

    limit: Claim
    """The limited metric and its highest permitted value, `limit.high`."""
    today: float | None
    """Today's rate in transactions per second, or None if not given."""
    systems: tuple[SystemHeadroom, ...]
    """The baseline first."""
    ratios: tuple[RateInterval | None, ...]
    """For each system except the baseline, its highest rate divided by the highest rate of the baseline. A value is
    None unless both rates are complete."""
    paired: bool
    """Whether the ratios are paired by block."""
    units: str
    """Name of the unit of work, such as `transactions`."""
    derived: tuple[str, ...]
    """Statements that must accompany results of this work."""

    left_out: tuple[str, ...] = ()
    """Systems that were measured at fewer than `LEAST_RATES` rates."""

    @property
    def decided(self) -> bool:
        """Whether every system has a highest rate with a confidence interval."""
        return all(system.complete and not system.flagged and self._decided_today(system) for system in self.systems)

    @property
    def exceeded(self) -> bool:
        """Whether at least one system significantly exceeds the limit at today's rate."""
        return any(
            system.complete and self.today is not None and high < self.today
            for system in self.systems
            if system.highest and (high := system.highest.high)
        )

    def _decided_today(self, system: SystemHeadroom) -> bool:
        return self.today is None or system.highest is None or system.highest.over(self.today).clear


def headroom(
    records: Sequence[Record],
    limit: Claim,
    today: float | None,
    archive: Archive = EMPTY,
    order: Sequence[str] = (),
) -> Headroom:
    """Finds the highest rate of each system within the limit. Raises InputError for trials of several kinds of work,
    and if no system was measured at several rates.

    `limit`: a requirement with an upper bound. Lower values of its metric must be better. `order`: names of
    configurations in the order in which a lab declares them, with the baseline first. Trials of a search are left out,
    because a search chooses rates by the results of earlier trials.
    """
    usable = [one for one in records if one.purpose not in AUXILIARY and _constant_rate(one)]
    usable = [one for one in usable if one.status.comparable and limit.metric in one.metrics]
    every = _systems(usable, order)
    groups = [group for group in every if len({one.cell.load.rate for one in group}) >= LEAST_RATES]
    if not groups:
        raise InputError(
            "headroom",
            f"no system was measured at {LEAST_RATES} or more rates with the metric {limit.metric}",
            "vary `load.rate` in a lab, or run with several values of --rate: see docs/how/headroom.md",
        )
    if len({work(one) for group in groups for one in group}) > 1:
        raise InputError(
            "headroom",
            "the trials belong to different workloads, so their rates cannot be compared",
            "select the trials of one workload",
        )
    found = [_system(name, group, limit, archive) for name, group in zip(_names(groups), groups, strict=True)]
    crossings, systems = [one[0] for one in found], tuple(one[1] for one in found)
    paired = len({one.series for group in groups for one in group}) == 1
    first = groups[0][0]
    return Headroom(
        limit=limit,
        today=today,
        systems=systems,
        ratios=tuple(
            _ratio(crossings[0], other, paired) if systems[0].complete and system.complete else None
            for other, system in zip(crossings[1:], systems[1:], strict=True)
        ),
        paired=paired,
        units=described(first).units[1],
        left_out=tuple(_names([group for group in every if group not in groups])),
        derived=tuple(filter(None, dict.fromkeys(described(group[0]).derived for group in groups))),
    )


def crossing(points: Iterable[tuple[float, float, bool]], limit: float) -> float:
    """Returns the rate at which a response time equals the limit, in one block.

    `points`: rate, response time, and whether the rate was sustained. Returns 0 if even the lowest rate exceeds the
    limit, and infinity if no rate exceeds it. The logarithms of the response times are first made non-decreasing with
    the rate by pooling adjacent violators (Ayer, Brunk, Ewing, Reid and Silverman, "An empirical distribution function
    for sampling with incomplete information", Annals of Mathematical Statistics 26, 1955).
    """
    ordered = sorted(points)
    over = _non_decreasing([_over(value, limit, sustained) for _, value, sustained in ordered])
    at = next((place for place, value in enumerate(over) if value > 0), None)
    if at is None:
        return math.inf
    if at == 0:
        return 0.0
    (low, *_), (high, _, sustained) = ordered[at - 1 : at + 1]
    return _interpolated_rate(low, over[at - 1], high, over[at], sustained)


def _over(value: float, limit: float, sustained: bool) -> float:
    """Returns the logarithm of the ratio of a response time to the limit."""
    over = math.log(max(value, 1e-9) / limit)
    return over if sustained else max(over, _UNSUSTAINED)


def _interpolated_rate(low: float, under: float, high: float, over: float, sustained: bool) -> float:
    """Interpolates between a rate within the limit and a higher rate that exceeds the limit. In a queue, the reciprocal
    of a response time percentile falls linearly with the rate, down to 0 at the capacity (exactly so for M/M/1:
    Kleinrock, Queueing Systems I, 1975, section 3.2). A rate that was not sustained is above the capacity, where this
    line does not exist. In that case, both scales are logarithmic, which gives a lower rate.
    """
    if sustained:
        first, second = math.exp(-under), math.exp(-over)
        return low + (high - low) * (first - 1) / (first - second)
    return low * math.exp(-under / (over - under) * math.log(high / low))


def _non_decreasing(values: Sequence[float]) -> list[float]:
    """Returns the non-decreasing values that are closest to `values`. Distance is the sum of squares."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]


def _constant_rate(record: Record) -> bool:
    load = record.cell.load
    return load.rate is not None and load.curve is None and record.search_range is None


def _systems(records: Sequence[Record], order: Sequence[str]) -> list[list[Record]]:
    """Groups trials by system and load. Trials that differ only in the rate are in the same group. Groups are in the
    order of `order`."""
    places = {name: place for place, name in enumerate(order)}
    records = sorted(records, key=lambda one: places.get(one.cell.name, len(places)))
    machines, groups = machines_among(records), dict[str, list[Record]]()
    for record in records:
        load = replace(record.cell.load.shape, rate=None, rate_share=None)
        key = (record.system, load, record.cell.load.clients, machines(record))
        groups.setdefault(msgspec.json.encode(key, order="sorted").decode(), []).append(record)
    return list(groups.values())


def _names(groups: Sequence[Sequence[Record]]) -> list[str]:
    """Names each system. In a lab, the name consists of the factor values in which the systems differ. Otherwise, it is
    the label or the engine."""
    if not groups:
        return []
    levels = [_common(group) for group in groups]
    differing = [name for name in levels[0] if len({one.get(name) for one in levels}) > 1]
    names = list[str]()
    for group, own in zip(groups, levels, strict=True):
        values = ", ".join(own[name] for name in differing if name in own)
        name = marked(values or group[0].system.label or group[0].system.engine, group)
        names.append(f"{name} #{names.count(name) + 1}" if name in names else name)
    return names


def _common(group: Sequence[Record]) -> Mapping[str, str]:
    """Returns the factor values that all trials of a system share."""
    first = group[0].cell.levels
    return {name: value for name, value in first.items() if all(one.cell.levels.get(name) == value for one in group)}


def _system(
    name: str, records: Sequence[Record], limit: Claim, archive: Archive
) -> tuple[dict[int, float], SystemHeadroom]:
    """Computes the headroom of one system. Also returns the rate at which the response time equals the limit, for each
    block in which this rate is between measured rates."""
    assert limit.high is not None
    # Two runs may have measured the same rate in blocks of the same number.
    by_block: dict[int, dict[tuple[float, str], Record]] = {}
    # The percentile of a trial with many waiting transactions is a lower bound. This is enough if it exceeds the limit.
    short = [
        one
        for one in records
        if one.kept_rate
        and not sampled(one, limit.metric)
        and (few(one, limit.metric) or one.metrics[limit.metric] <= limit.high)
    ]
    for record in sorted(records, key=lambda one: one.attempt):
        if record in short:
            continue
        by_block.setdefault(record.block, {})[record.cell.load.rate or 0.0, record.series] = record
    found: dict[int, float] = {}
    for block, trials in sorted(by_block.items()):
        if len({rate for rate, _ in trials}) >= LEAST_RATES:
            points = [
                (rate, one.metrics[limit.metric], one.kept_rate is not False) for (rate, _), one in trials.items()
            ]
            found[block] = crossing(points, limit.high)
    inside = {block: rate for block, rate in found.items() if 0 < rate < math.inf}
    above = [max(by_block[block])[0] for block, rate in found.items() if rate == math.inf]
    below = [min(by_block[block])[0] for block, rate in found.items() if rate == 0]
    system = SystemHeadroom(
        name=name,
        highest=_interval([math.log(rate) for rate in inside.values()]),
        rates=_rates(records, limit, archive),
        above=len(above),
        above_rate=min(above, default=0.0),
        below=len(below),
        below_rate=max(below, default=0.0),
        short=len(short),
        flagged=sum(one.status is Status.SUSPECT and one.kept_rate is True for one in records),
    )
    return inside, system


def _rates(records: Sequence[Record], limit: Claim, archive: Archive) -> tuple[MeasuredRate, ...]:
    rates: dict[float, list[Record]] = {}
    for record in records:
        rates.setdefault(record.cell.load.rate or 0.0, []).append(record)
    return tuple(
        MeasuredRate(
            rate,
            metrics_of(trials, [limit.metric], archive).get(limit.metric),
            len(trials),
            sum(one.kept_rate is not False for one in trials),
        )
        for rate, trials in sorted(rates.items())
    )


def _interval(logs: Sequence[float]) -> RateInterval | None:
    """Returns the geometric mean and the 95% t interval (Student, Biometrika 6, 1908). Returns None without values."""
    if not logs:
        return None
    mean = statistics.fmean(logs)
    if len(logs) < LEAST_BLOCKS:
        return RateInterval(math.exp(mean), None, None, len(logs))
    half = half_width(logs)
    return RateInterval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs))


def _ratio(baseline: Mapping[int, float], other: Mapping[int, float], paired: bool) -> RateInterval | None:
    """Returns the ratio of `other` to `baseline`. If both are from one lab, the rates are paired by block. Otherwise,
    the interval is Welch's interval."""
    if paired:
        common = sorted(baseline.keys() & other.keys())
        return _interval([math.log(other[block] / baseline[block]) for block in common])
    first, second = ([math.log(rate) for rate in one.values()] for one in (baseline, other))
    mean = statistics.fmean(second) - statistics.fmean(first)
    half, blocks = half_width_apart(first, second), min(len(first), len(second))
    return RateInterval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), blocks)
