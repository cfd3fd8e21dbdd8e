"""Searches for the best load, based on records: in a run, and for each configuration of a lab before its first
block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import geometric_mean, median

from ironbench.errors import FailureError, written
from ironbench.model.lab import Lab
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.sample import lacking
from ironbench.model.search import ChosenLoad, MeasuredLoad, Search
from ironbench.model.system import Setup, Trial
from ironbench.plan import sweep
from ironbench.records import progress
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.study.optimum import NextLoad, Observed, SearchResult, next_step
from ironbench.study.subjects import counted_in


def answer(search: Search, records: Sequence[Record]) -> SearchResult | None:
    """Returns the result of a run's search, from its records; None if it was interrupted."""
    found = step(search, of_run(records))
    return found if isinstance(found, SearchResult) else None


def of_run(records: Sequence[Record]) -> list[Record]:
    """Returns the trials that a run's search is based on."""
    return [record for record in records if record.purpose == Purpose.SWEEP and record.status is not Status.CUT_SHORT]


def step(search: Search, tried: Sequence[Record]) -> NextLoad | SearchResult:
    """Returns the next load, or the result. FailureError: a limit is on a metric that the trials lack."""
    found = next_step(search, _observed(search, tried))
    return replace(found, doubt=_too_few(found, tried)) if isinstance(found, SearchResult) else found


def reopen(directory: LabDirectory, records: Sequence[Record], forgiven: Collection[str]) -> None:
    """Restarts searches that depend on forgiven trials, unless their configuration was measured at the result."""
    measured = {record.cell.name for record in records if record.purpose != Purpose.SEARCH}
    cells = {record.cell.name for record in records if record.purpose == Purpose.SEARCH and record.id in forgiven}
    names = {setup.cell.name for setup in directory.frozen().lab.setups}
    directory.forget_best((cells & names) - measured)


def next_trial(
    directory: LabDirectory,
    records: Sequence[Record],
    say: Callable[[str], object],
    forgiven: Collection[str] = (),
) -> tuple[Trial, str] | None:
    """Returns the next trial of a search in a lab, with its reason; None when all searches are finished.

    Stores results and reports them by `say`. FailureError: too few configurations have a load that can be measured.
    """
    for setup in directory.frozen().lab.setups:
        if setup.search is None or setup.skipped or setup.cell.name in directory.best():
            continue
        found = _cell_step(setup, setup.search, records, forgiven)
        if not isinstance(found, ChosenLoad):
            return found
        directory.keep_best(setup.cell.name, found)
        say(f"{setup.cell.name}: {found.sentence}")
        require_cells(directory.lab())
    return None


def require_cells(lab: Lab) -> None:
    """FailureError: searches left the lab without its baseline, or with nothing to compare with it."""
    none = [setup for setup in lab.setups if setup.best and setup.best.point is None]
    if none and (lab.setup(lab.baseline).skipped or not lab.comparisons):
        why = none[0].skipped
        hint = f"relax {written('load.limit')} or search a lower range, and start a new lab"
        if none[0].best and none[0].best.failed:
            hint = "fix the cause, then repeat the search with `ironbench lab resume --failed`"
        raise FailureError(f"lab {lab.name}, configuration {none[0].cell.name}", f"cannot be measured: {why}", hint)


def _cell_step(
    setup: Setup, search: Search, records: Sequence[Record], forgiven: Collection[str]
) -> tuple[Trial, str] | ChosenLoad:
    """Returns the next trial of a configuration's search, or its result. A failed trial is repeated once before it
    counts."""
    places: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda one: one.attempt):
        if (record.purpose, record.cell.name) == (Purpose.SEARCH, setup.cell.name):
            places.setdefault(record.block, []).append(record)
    for block, attempts in sorted(places.items()):
        if not progress.over([record for record in attempts if record.id not in forgiven]):
            trial = Trial(attempts[0].cell, block, Purpose.SEARCH, attempt=attempts[-1].attempt + 1)
            return trial, "again"
    tried = [next((one for one in tries if one.status.comparable), tries[-1]) for _, tries in sorted(places.items())]
    if tried and not tried[0].status.comparable:  # the lowest load failed
        why = f"trials failed at the lowest load: {wording.cause(tried[0])}"
        return ChosenLoad(None, why, (), (tried[0].id,), failed=True)
    found = step(search, tried)
    if isinstance(found, SearchResult):
        return ChosenLoad(
            found.point,
            wording.text(found.note),
            _table(search, tried),
            tuple(record.id for record in tried),
            result=found.note,
        )
    load = sweep.load_at(search, setup.cell.load, setup.cell.load.threads, found.point)
    # A pilot chooses the warm-up at the final load; until then, use the planned one.
    cell = replace(setup.cell, load=replace(load, warmup_auto=False))
    return Trial(cell, len(tried), Purpose.SEARCH), f"{search.of}={found.point}, {wording.text(found.why)}"


def _table(search: Search, tried: Sequence[Record]) -> tuple[MeasuredLoad, ...]:
    rows = []
    for point in sorted({_point(search, record) for record in tried}):
        usable = [record for record in tried if _point(search, record) == point and record.status.comparable]
        done = [record.metrics["throughput"] for record in usable]
        limited = [median(record.metrics[one.metric] for record in usable) for one in search.limits if usable]
        count = sum(_point(search, record) == point for record in tried)
        rows.append(MeasuredLoad(point, count, geometric_mean(done) if all(done) and done else 0.0, tuple(limited)))
    return tuple(rows)


def _too_few(found: SearchResult, tried: Sequence[Record]) -> tuple[str, tuple[tuple[float, int], ...]] | None:
    """Returns the unit of work (such as transactions), and the limited percentiles for which the trials at the result
    have too few of them; None if they have enough."""
    at = [record for record in tried if _point(found.search, record) in (found.point, found.ended_at)]
    comparable = [record for record in at if record.status.comparable]
    missing = lacking(comparable, [one.metric for one in found.search.limits])
    return (counted_in(at)[1], missing) if missing else None


def _point(search: Search, record: Record) -> int:
    load = record.cell.load
    return load.clients if search.of == "clients" else round(load.rate or 0)


def _observed(search: Search, tried: Sequence[Record]) -> list[Observed]:
    """Converts trials for the search; throughput is 0 if the system failed."""
    found = []
    for record in tried:
        point = _point(search, record)
        if not record.status.comparable:
            found.append(Observed(point, 0.0, tuple(limit.most for limit in search.limits)))
            continue
        missing = [limit.metric for limit in search.limits if limit.metric not in record.metrics]
        lists = f"`ironbench show {record.id}` lists their metrics"
        if missing:
            raise FailureError(written("load.limit", missing[0]), "the trials do not have this metric", lists)
        if "throughput" not in record.metrics:
            raise FailureError(
                written(f"load.{search.of}"), "the trials have no throughput, which the search needs", lists
            )
        limited = tuple(record.metrics[limit.metric] for limit in search.limits)
        found.append(Observed(point, record.metrics["throughput"], limited, record.kept_rate is False))
    return found
