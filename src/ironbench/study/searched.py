"""Continues a search for the best load. From the records, it computes the next trial, or the confirmed result. A search
makes many noisy trials and chooses the highest load that looks good, so its choice is too optimistic on average.
Therefore, a load is the result only if additional confirmation trials all sustain the rate and meet every limit. If
they do not, the search tries to confirm a lower load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import geometric_mean, median

from ironbench.errors import FailureError, written
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.sample import few, lacking, least_duration_s, sampled
from ironbench.model.search import Search
from ironbench.plan.sweep import CONFIRMATIONS
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.curve import metrics_of
from ironbench.study.optimum import (
    FAILED,
    RATE,
    NextLoad,
    SearchResult,
    SearchTrial,
    TooFewTransactions,
    UnconfirmedLoad,
    next_step,
    step_down,
)
from ironbench.study.subjects import counted_in


@dataclass(frozen=True, slots=True)
class Confirm:
    """A load that the search chose, and that becomes the result if confirmation trials confirm it."""

    point: int
    result: SearchResult
    """The result of the search so far, including the loads that were not confirmed."""


@dataclass(frozen=True, slots=True)
class RunSearch:
    """The result of the search of one run."""

    series: str
    started_at: str
    result: SearchResult


def of_runs(records: Sequence[Record], archive: Archive) -> tuple[RunSearch, ...]:
    """Returns the results of finished searches among the records of runs."""
    own = [one for one in records if one.search_range and one.purpose in (Purpose.SWEEP, Purpose.CONFIRMATION)]
    found = []
    for series, group in groupby(sorted(own, key=lambda one: (one.series, one.started_at)), lambda one: one.series):
        trials = list(group)
        if result := concluded(_search_of(trials), trials, archive):
            found.append(RunSearch(series, trials[-1].started_at, result))
    return tuple(found)


def _search_of(trials: Sequence[Record]) -> Search:
    """Returns the search to which the records belong. The number of repeats is not recorded, so the minimum is assumed.
    This does not change the result, because in a finished search every load has at least the minimum number of
    trials."""
    first = trials[0]
    assert first.search_range is not None
    of = "clients" if first.cell.load.rate is None else "rate"
    return Search(of, *first.search_range, first.limits)


def concluded(search: Search, records: Sequence[Record], archive: Archive = EMPTY) -> SearchResult | None:
    """Returns the result of a run's search. Returns None if the search was interrupted before its first confirmation
    trial. If some confirmation trials are missing, the result contains no confirmed load. Confirmation trials may be
    missing because of an interruption, or because an older version made none at lower loads.
    """
    if not of_run(records):
        return None
    found = run_step(search, records, archive)
    if isinstance(found, Confirm):
        fresh = any(record.purpose == Purpose.CONFIRMATION for record in records)
        return replace(found.result, point=None, unconfirmed=True) if fresh else None
    return found if isinstance(found, SearchResult) else None


def run_step(
    search: Search, records: Sequence[Record], archive: Archive = EMPTY, confirmations: int = CONFIRMATIONS
) -> NextLoad | Confirm | SearchResult:
    """Continues the search of a run. Returns the next load to try, the next load to confirm, or the result. Raises
    FailureError as `step` does."""
    tried = of_run(records)
    found = step(search, tried)
    if isinstance(found, NextLoad) or found.point is None:
        return found
    observed, over = _observed(search, tried), over_limit(search, tried, archive)
    point, refused = found.point, list[UnconfirmedLoad]()
    while True:
        fresh = [record for record in _confirmations(records) if load_of(search, record) == point]
        if (why := _refused(search, point, fresh, archive, confirmations)) is not None:
            refused.append(why)
            lower = step_down(search, observed, [one.point for one in refused], over)
            if lower is None:
                return replace(found, point=None, unconfirmed=True, refused=tuple(refused))
            point = lower
            continue
        at = [record for record in tried if load_of(search, record) == point]
        result = found if point == found.point else _lower(found, point, at)
        result = replace(result, refused=tuple(refused), over_below=tuple(one for one in over if one < point))
        if len(fresh) < confirmations:
            return Confirm(point, result)
        if (undecided := _undecided(search, fresh, archive)) is not None:
            return replace(result, point=None, unconfirmed=True, too_few=undecided)
        return _confirmed(result, fresh, archive)


def of_run(records: Sequence[Record]) -> list[Record]:
    """Returns the trials on which a run's search is based."""
    return [record for record in records if record.purpose == Purpose.SWEEP and record.status is not Status.CUT_SHORT]


def _confirmations(records: Sequence[Record]) -> list[Record]:
    return [one for one in records if one.purpose == Purpose.CONFIRMATION and one.status is not Status.CUT_SHORT]


def step(search: Search, tried: Sequence[Record]) -> NextLoad | SearchResult:
    """Returns the next load, or the result. Raises FailureError if a limit is on a metric that the trials lack."""
    found = next_step(search, _observed(search, tried))
    return replace(found, too_few=_too_few(found, tried)) if isinstance(found, SearchResult) else found


def over_limit(search: Search, tried: Sequence[Record], archive: Archive) -> list[int]:
    """Returns the loads that are too high, in ascending order. At such a load, most trials did not sustain the rate, or
    the trials together exceed a limit. Because of noise, such a load may be lower than the result of the search.
    """
    found = []
    for point in sorted({load_of(search, record) for record in tried}):
        at = [record for record in tried if load_of(search, record) == point and record.status.comparable]
        known = metrics_of(at, [limit.metric for limit in search.limits], archive)
        beyond = any(limit.metric in known and known[limit.metric].centre > limit.most for limit in search.limits)
        if beyond or 2 * sum(record.kept_rate is False for record in at) > len(at):
            found.append(point)
    return found


def _refused(
    search: Search, point: int, fresh: Sequence[Record], archive: Archive, confirmations: int
) -> UnconfirmedLoad | None:
    """Returns why the confirmation trials at a load do not confirm it. Returns None if all trials so far confirm it."""
    usable = [record for record in fresh if record.status.comparable]
    for limit in search.limits:
        values = [record.metrics[limit.metric] for record in usable if not few(record, limit.metric)]
        if len(fresh) >= confirmations and (pooled := metrics_of(usable, [limit.metric], archive).get(limit.metric)):
            values.append(pooled.centre)
        if values and max(values) > limit.most:
            return UnconfirmedLoad(point, limit.metric, max(values))
    if missed := [record for record in usable if record.kept_rate is False]:
        return UnconfirmedLoad(point, RATE, min(record.scheduled_throughput for record in missed))
    return UnconfirmedLoad(point, FAILED, 0.0) if len(usable) < len(fresh) else None


def _undecided(search: Search, fresh: Sequence[Record], archive: Archive) -> TooFewTransactions | None:
    """Returns the percentiles that have too few transactions to be compared with their limits, even if all confirmation
    trials are taken together. Returns None if there are none."""
    pooled = metrics_of(fresh, [limit.metric for limit in search.limits], archive)
    open_limits = [
        limit.metric
        for limit in search.limits
        if limit.metric not in pooled and not all(sampled(record, limit.metric) for record in fresh)
    ]
    return _too_few_for(fresh, open_limits) if open_limits else None


def _confirmed(result: SearchResult, fresh: Sequence[Record], archive: Archive) -> SearchResult:
    known = metrics_of(fresh, [limit.metric for limit in result.search.limits], archive)
    return replace(
        result,
        confirmations=len(fresh),
        completed=median(record.scheduled_throughput for record in fresh),
        measured=tuple((name, summary.centre) for name, summary in known.items()),
    )


def _lower(found: SearchResult, point: int, at: Sequence[Record]) -> SearchResult:
    """Returns the result for a load below the choice of the search."""
    done = [record.metrics["throughput"] for record in at if record.status.comparable]
    level = geometric_mean(done) if done and min(done) > 0 else 0.0
    return replace(found, point=point, throughput=level, alike=(point, point), ended_by="", ended_at=0)


def _too_few(found: SearchResult, tried: Sequence[Record]) -> TooFewTransactions | None:
    """Returns the percentiles that have too few transactions, in the trials at the result, to be compared with their
    limits. Returns None if there are none."""
    at = [record for record in tried if load_of(found.search, record) in (found.point, found.ended_at)]
    return _too_few_for(
        [record for record in at if record.status.comparable], [one.metric for one in found.search.limits]
    )


def _too_few_for(records: Sequence[Record], metrics: Sequence[str]) -> TooFewTransactions | None:
    missing = lacking(records, list(metrics))
    if not missing:
        return None
    return TooFewTransactions(counted_in(records)[1], tuple(missing), least_duration_s(records, list(metrics)))


def load_of(search: Search, record: Record) -> int:
    """Returns the load of a trial: clients or rate, depending on what the search varies."""
    load = record.cell.load
    return load.clients if search.of == "clients" else round(load.rate or 0)


def _observed(search: Search, tried: Sequence[Record]) -> list[SearchTrial]:
    """Converts trials for the search. Throughput is 0 if the system failed."""
    found = []
    for record in tried:
        point = load_of(search, record)
        if not record.status.comparable:
            found.append(SearchTrial(point, 0.0, tuple(limit.most for limit in search.limits)))
            continue
        missing = [limit.metric for limit in search.limits if limit.metric not in record.metrics]
        if missing:
            raise FailureError(
                written("load.limit", missing[0]),
                "the trials do not have this metric",
                f"`ironbench show {record.id}` lists their metrics",
            )
        if "throughput" not in record.metrics:
            raise FailureError(
                written(f"load.{search.of}"),
                "the trials have no throughput, which the search needs",
                f"`ironbench show {record.id}` lists their metrics",
            )
        limited = tuple(record.metrics[limit.metric] for limit in search.limits)
        found.append(SearchTrial(point, record.metrics["throughput"], limited, record.kept_rate is False))
    return found
