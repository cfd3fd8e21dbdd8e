"""Rates asked for in open loops: whether systems kept them."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Table
from ironbench.report.numbers import measured, quantity
from ironbench.report.section import Section, some
from ironbench.report.sections.curves import failed_share

PLACE = 600


_LEAD = (
    "In an open loop transactions start at the rate asked for, whatever the system does: it keeps that rate or does "
    "not. Response times of a rate that is not kept grow as long as the trial lasts."
)


def sections(study: Study) -> Iterator[Section]:
    yield Section("rates", "Rates asked for, in open loops", _LEAD, tables=some(rates(study)), at_end=True)


def rates(study: Study) -> Table:
    """One row per rate and number of clients: whether the system kept it."""
    head = ("system", "rate asked for", "clients", "kept", "finished", "failed", "trials", "median", "99th percentile")
    rows: list[tuple[str, ...]] = []
    for part in study.parts:
        asked = part.subject.records[0].cell.load.rate
        if asked is None:
            continue
        if not part.curve.rates:
            rows.append((part.name, quantity(asked, "1/s"), "", "no usable trial", "", "", "", "", ""))
        for one in part.curve.rates:
            finished = one.metrics.get("throughput")
            slow = [one.metrics.get(f"response_time_{name}_s") for name in ("p50", "p99")]
            times_said = [measured(time, "s") if time and one.is_kept else "–" for time in slow]
            done = (one.words, measured(finished, "1/s"), failed_share(one.trials), str(len(one.trials)))
            rows.append((part.name, quantity(asked, "1/s"), str(one.clients), *done, *times_said))
    return Table(head, tuple(rows))
