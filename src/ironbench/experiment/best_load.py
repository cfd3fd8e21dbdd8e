"""The search for the best load as trials: each is chosen when those before it are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ironbench.analyse.optimum import Answer, Observed, Probe, next_step
from ironbench.analyse.study import SEARCH
from ironbench.errors import FailureError
from ironbench.model.plan import Plan
from ironbench.model.prepared import NOTHING, Prepared
from ironbench.model.record import Record, Status
from ironbench.model.sample import lacking
from ironbench.model.search import Search
from ironbench.model.system import Cell, Trial
from ironbench.plan.searching import cell_at
from ironbench.printer import Printer

Measure = Callable[[Sequence[Trial], Sequence[Record]], list[Record]]
"""Measures trials; the second argument is what was measured before."""


def searched(
    plan: Plan, search: Search, measure: Measure, over: Callable[[Sequence[Record]], bool], printer: Printer
) -> tuple[list[Record], Cell | None]:
    """All records of the search, and the cell that it found; None when it was interrupted or no load keeps the limits.

    FailureError when a limit is on a metric that the trials do not have.
    """
    records: list[Record] = []
    while True:
        step = _step(search, records)
        if isinstance(step, Answer):
            printer.say(step.sentence)
            return records, None if step.point is None else cell_at(plan, step.point)
        cell = cell_at(plan, step.point)
        printer.say(f"  {cell.name}: {step.why}")
        block = sum(record.cell.name == cell.name and record.purpose == "sweep" for record in records)
        records += measure([Trial(cell, block)], records)
        if over(records):
            return records, None


def answer(search: Search, records: Sequence[Record]) -> Answer | None:
    """What a search found, by its records alone; None when it was interrupted."""
    step = _step(search, records)
    return step if isinstance(step, Answer) else None


def _step(search: Search, records: Sequence[Record]) -> Probe | Answer:
    step = next_step(search, observed(search, records))
    return replace(step, doubt=_doubt(step, records)) if isinstance(step, Answer) else step


def _doubt(found: Answer, records: Sequence[Record]) -> str:
    """Which limits the answer hangs on by percentiles of too few transactions."""
    at = [record for record in _counting(records) if _point(found.search, record) in (found.point, found.ended_at)]
    said = lacking([record for record in at if record.status.comparable], [one.metric for one in found.search.limits])
    return f"the limit was held against percentiles of too few transactions, {said}" if said else ""


def _counting(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose == "sweep" and record.status is not Status.CUT_SHORT]


def _point(search: Search, record: Record) -> int:
    load = record.cell.load
    return load.clients if search.of == "clients" else round(load.rate or 0)


def told(search: Search | None, records: Sequence[Record]) -> Prepared:
    """What the fresh trials of the best load say of the search that chose it."""
    found = answer(search, records) if search else None
    return Prepared({SEARCH: found.sentence}) if found else NOTHING


def observed(search: Search, records: Sequence[Record]) -> list[Observed]:
    """The trials as the search sees them; where the system failed its throughput is 0."""
    found = []
    for record in _counting(records):
        point = _point(search, record)
        if not record.status.comparable:
            found.append(Observed(point, 0.0, tuple(limit.most for limit in search.limits)))
            continue
        missing = [limit.metric for limit in search.limits if limit.metric not in record.metrics]
        if missing:
            raise FailureError(
                f"--limit {missing[0]}",
                "these trials do not have that metric",
                f"`ironbench show {record.id}` lists those that they have",
            )
        limited = tuple(record.metrics[limit.metric] for limit in search.limits)
        found.append(Observed(point, record.metrics["throughput"], limited))
    return found
