"""What a search for a rate tried: one row per rate, where a curve over clients would have a system for each."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.archive import Archive
from ironbench.analyse.curve import metrics_of
from ironbench.analyse.summarise import Summary
from ironbench.model.record import Record
from ironbench.model.sample import lacking
from ironbench.model.search import Search
from ironbench.report import plain
from ironbench.report.charts.base import Table
from ironbench.report.numbers import measured, quantity, span, unit_of

_SHOWN = ("throughput", "response_time_p50_s", "response_time_p99_s")


def text(search: Search, records: Sequence[Record], archive: Archive) -> str:
    """A table for the terminal, and the warnings of its trials."""
    names = dict.fromkeys([*_SHOWN, *(limit.metric for limit in search.limits)])
    rates = sorted({record.cell.load.rate or 0.0 for record in records})
    rows = []
    for rate in rates:
        trials = [record for record in records if record.cell.load.rate == rate and record.purpose != "pilot"]
        usable = [record for record in trials if record.status.comparable]
        fresh = sum(record.purpose == "confirmation" for record in usable)
        count = f"{len(usable)} of {len(trials)}" + (f", {fresh} fresh" if fresh else "")
        found = metrics_of(usable, list(names), archive)
        rows.append((f"{rate:,.0f}/s", count, *(_said(name, found.get(name), usable) for name in names)))
    limits = [f"limit: {one.metric} at most {quantity(one.most, unit_of(one.metric))}" for one in search.limits]
    warnings = dict.fromkeys(warning.code for record in records for warning in record.warnings)
    said = [f"{sum(code in {w.code for w in r.warnings} for r in records)} trials: {code}" for code in warnings]
    table = plain.table(Table(("rate asked for", "usable trials", *names), tuple(rows)))
    few = lacking([record for record in records if record.status.comparable], list(names))
    said += [f"percentiles of too few transactions in a trial are not shown: {few}"] if few else []
    return "\n".join([*limits, table, *(f"  - {line}" for line in said)])


def _said(name: str, summary: Summary | None, records: Sequence[Record]) -> str:
    if summary is None:
        return "–" if any(name in record.metrics for record in records) else ""
    centre = measured(summary, unit_of(name))
    return centre if summary.n == 1 else f"{centre} ({span(summary, unit_of(name))})"
