"""Searches for the best load of each configuration of a lab, before the first block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import geometric_mean, median

from ironbench.errors import FailureError, written
from ironbench.model.lab import Lab
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.search import ChosenLoad, MeasuredLoad, Search
from ironbench.model.system import Setup, Trial
from ironbench.plan import sweep
from ironbench.records import progress
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.study.optimum import SearchResult
from ironbench.study.searched import load_of, step


def reopen(directory: LabDirectory, records: Sequence[Record], forgiven: Collection[str]) -> None:
    """Discards results of searches that include forgiven trials, so that these searches continue. If a configuration
    was already measured at the load that its search found, the result is kept."""
    measured = {record.cell.name for record in records if record.purpose != Purpose.SEARCH}
    cells = {record.cell.name for record in records if record.purpose == Purpose.SEARCH and record.id in forgiven}
    names = {setup.cell.name for setup in directory.frozen().lab.setups}
    directory.forget_best((cells & names) - measured)


def next_trial(
    directory: LabDirectory,
    records: Sequence[Record],
    say: Callable[[str], object],
    forgiven: Collection[str],
) -> tuple[Trial, str] | None:
    """Returns the next trial of a lab's searches, and the reason for it. Returns None when all searches are finished.
    Stores the results of searches, and reports them with `say`. Raises FailureError if too few configurations have a
    load that can be measured.
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
    """Raises FailureError if, after the searches, the lab has no baseline or nothing to compare with the baseline."""
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
    """Returns the next trial of a configuration's search, or the result of the search. If a trial fails, it is repeated
    once."""
    places: dict[int, list[Record]] = {}
    for record in sorted(records, key=lambda one: one.attempt):
        if (record.purpose, record.cell.name) == (Purpose.SEARCH, setup.cell.name):
            places.setdefault(record.block, []).append(record)
    for block, attempts in sorted(places.items()):
        if not progress.over([record for record in attempts if record.id not in forgiven]):
            trial = Trial(attempts[0].cell, block, Purpose.SEARCH, attempt=attempts[-1].attempt + 1)
            return trial, "again"
    tried = [next((one for one in tries if one.status.comparable), tries[-1]) for _, tries in sorted(places.items())]
    if tried and not tried[0].status.comparable:  # the trials at the lowest load failed
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
    # The search uses the planned warm-up. After it, a pilot at the load that was found chooses another warm-up.
    cell = replace(setup.cell, load=replace(load, warmup_auto=False))
    return Trial(cell, len(tried), Purpose.SEARCH), f"{search.of}={found.point}, {wording.text(found.why)}"


def _table(search: Search, tried: Sequence[Record]) -> tuple[MeasuredLoad, ...]:
    rows = []
    for point in sorted({load_of(search, record) for record in tried}):
        usable = [record for record in tried if load_of(search, record) == point and record.status.comparable]
        done = [record.metrics["throughput"] for record in usable]
        limited = [median(record.metrics[one.metric] for record in usable) for one in search.limits if usable]
        count = sum(load_of(search, record) == point for record in tried)
        rows.append(MeasuredLoad(point, count, geometric_mean(done) if all(done) and done else 0.0, tuple(limited)))
    return tuple(rows)
