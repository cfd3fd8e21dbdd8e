"""Parses targets such as `p99 < 10ms at 5000 tps`, and checks which systems meet them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.errors import InputError
from ironbench.fields.lab import range_of
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import lacking, percentile, sampled, unresolved
from ironbench.model.system import Load
from ironbench.ranges import DAY_S, Range
from ironbench.stats.intervals import half_width
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.curve import metrics_of
from ironbench.study.subjects import counted_in, failed_share

_FORM = re.compile(r"(p50|p90|p95|p99|p999|mean|max)\s*(?:<=?|≤)\s*(\S+)\s+at\s+([\d.]+)\s*(?:tps|/s)?", re.IGNORECASE)
_RESPONSE_TIME = Range(0.0, DAY_S, "s", above=True, example="10ms")
_SAME_RATE = 0.01
"""A measured rate counts as the target's rate if it differs by at most this fraction."""
LEAST_TRIALS = 3
"""Minimum number of trials. With fewer trials there is no confidence interval, and therefore no upper bound."""


@dataclass(frozen=True, slots=True)
class Target:
    """A response time limit at a rate."""

    text: str
    metric: str
    limit_s: float
    rate: float
    """Target rate: transactions started per second."""


@dataclass(frozen=True, slots=True)
class RateResult:
    """Result of one system at the target's rate or at a higher rate."""

    rate: float
    trials: tuple[Record, ...]
    centre_s: float
    """Value of the target's metric. A percentile is computed over the transactions of all trials together. For a mean
    or maximum, it is the geometric mean over the trials."""
    bound_s: float | None
    """Upper bound of the trials' 95% confidence interval, which is at least `centre_s`. The value is None with too few
    trials."""
    least_s: float | None
    """Lower bound of the trials' 95% confidence interval, which is at most `centre_s`."""
    kept: bool
    """Whether every trial sustained the rate."""
    never_kept: bool
    """Whether no trial sustained the rate."""

    def meets(self, target: Target) -> bool:
        return self.kept and self.bound_s is not None and self.bound_s <= target.limit_s

    def misses(self, target: Target) -> bool:
        """Returns whether the trials show that the target is not met. If neither `meets` nor `misses` is true, more
        trials may show which of the two is true."""
        return self.never_kept or (self.least_s is not None and self.least_s > target.limit_s)


@dataclass(frozen=True, slots=True)
class Attained:
    """Result of checking one system against a target."""

    system: str
    best: RateResult | None
    """The measurement at the highest rate at which the target is met. If it is met at no rate, the measurement that
    comes closest to it. The value is None if there is no measurement."""
    meets: bool
    why: Note
    """If the target is met, by how much. If it is not met, why."""
    misses: bool = False
    """Whether all measurements at the target's rate show that the target is not met. If neither `misses` nor `meets` is
    true, the result is inconclusive."""

    @property
    def undecided(self) -> bool:
        """Whether it is inconclusive if the system meets the target. The system was measured, and more trials may show
        that it does."""
        return self.best is not None and not self.meets and not self.misses


def parse(text: str) -> Target:
    """Parses a target. Raises InputError if its form is invalid."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--target {text!r}", "is not a target", 'e.g. "p99 < 10ms at 5000 tps"')
    if match[2][-1].isdigit():
        raise InputError("--target", f"{match[2]} has no unit", f"write {match[2]}ms or {match[2]}s")
    limit_s = _RESPONSE_TIME.read("--target", match[2])
    rate = range_of("load.rate").read("--target", match[3])
    return Target(text.strip(), f"response_time_{match[1].lower()}_s", limit_s, rate)


def attained(system: str, records: Sequence[Record], target: Target, archive: Archive = EMPTY) -> Attained:
    """Checks whether a system meets a target. The upper bound of its confidence interval decides.

    Only open-loop trials at the target's rate or above count. In a closed loop, a slow system gets fewer requests, so
    the response times are not those at a given rate.
    """
    usable = [record for record in records if record.status.comparable and target.metric in record.metrics]
    open_loop = [record for record in usable if record.cell.load.rate is not None and record.cell.load.curve is None]
    driven = [record for record in usable if may_count(record, target)]
    enough = [record for record in driven if sampled(record, target.metric)]
    if not enough:
        few, units = lacking(driven, [target.metric]), counted_in(driven)[1]
        if any(unresolved(record, target.metric) for record in driven):
            why = note("target-unresolved", units=units, metric=target.metric)
        elif few:
            why = note("target-of-too-few", units=units, needs=few)
        else:
            why = _why_not(records, usable, open_loop)
        return Attained(system, None, False, why)
    measured = [_measured(group[0].cell.load.rate or 0.0, group, target, archive) for group in _alike(enough)]
    met = [one for one in measured if one.meets(target)]
    if met:
        best = max(met, key=lambda one: one.rate)
        assert best.bound_s is not None
        why = note("target-met", bound_s=best.bound_s, rate=best.rate, failed=failed_share(best.trials) or 0.0)
        return Attained(system, best, True, why)
    # A system that misses the target at a higher rate may meet it at the target's rate.
    at_rate = [one for one in measured if math.isclose(one.rate, target.rate, rel_tol=_SAME_RATE)]
    best = min(at_rate or measured, key=lambda one: (not one.kept, one.bound_s is None, one.bound_s or one.centre_s))
    short = sum(one.cell.load.rate == best.rate for one in driven) - len(best.trials)
    why = (
        _missed(best, target, short) if at_rate else note("target-rate-higher", rate=best.rate, centre_s=best.centre_s)
    )
    return Attained(system, best, False, why, bool(at_rate) and all(one.misses(target) for one in at_rate))


def may_count(record: Record, target: Target) -> bool:
    """Returns whether the trial is an open loop at a constant rate that is at least the target's rate."""
    load = record.cell.load
    return load.curve is None and load.rate is not None and load.rate >= target.rate


def _missed(best: RateResult, target: Target, short: int) -> Note:
    """Returns why the target is not met. `short`: number of trials at that rate with too few transactions."""
    known = {"rate": best.rate, "centre_s": best.centre_s}
    if not best.kept:
        return note("target-rate-not-kept", **known)
    if best.bound_s is None:
        return note("target-of-few-trials", **known, trials=len(best.trials), least=LEAST_TRIALS, short=short)
    if not best.misses(target):
        return note("target-inconclusive", **known, bound_s=best.bound_s)
    return note("target-missed", **known, bound_s=best.bound_s, limit_s=target.limit_s)


def _measured(rate: float, trials: Sequence[Record], target: Target, archive: Archive) -> RateResult:
    """Computes the result at one rate.

    The bounds are from a t interval (Student, Biometrika 6, 1908) of logarithms, because response times are positive
    and skewed.
    """
    logs = [math.log(max(record.metrics[target.metric], 1e-12)) for record in trials]
    mean = statistics.fmean(logs)
    pooled = metrics_of(trials, [target.metric], archive).get(target.metric) if percentile(target.metric) else None
    centre_s = pooled.centre if pooled else math.exp(mean)
    bound = least = None
    if len(logs) >= LEAST_TRIALS:
        half = half_width(logs)
        bound, least = max(centre_s, math.exp(mean + half)), min(centre_s, math.exp(mean - half))
    kept = [bool(record.kept_rate) for record in trials]
    never = len(kept) >= LEAST_TRIALS and not any(kept)
    return RateResult(rate, tuple(trials), centre_s, bound, least, all(kept), never)


def _alike(records: Sequence[Record]) -> list[list[Record]]:
    """Groups repeats of one load, in ascending order of rates."""
    groups: dict[tuple[Load, int, int], list[Record]] = {}
    for record in records:
        load = record.cell.load
        groups.setdefault((load.shape, load.clients, load.threads), []).append(record)
    return sorted(groups.values(), key=lambda group: group[0].cell.load.rate or 0.0)


def _why_not(records: Sequence[Record], usable: Sequence[Record], open_loop: Sequence[Record]) -> Note:
    if not records:
        return note("target-no-records")
    if not usable:
        return note("target-none-usable")
    if not open_loop:
        return note("target-no-rate", curved=any(record.cell.load.curve for record in usable))
    return note("target-rate-lower", highest=max(record.cell.load.rate or 0.0 for record in open_loop))
