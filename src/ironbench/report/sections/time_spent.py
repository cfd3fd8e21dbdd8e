"""How the time of a transaction is spent. Each configuration has a stacked bar of its wait classes, and waterfall
charts show the changes between configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ironbench.model.observer import WAIT_CLASSES
from ironbench.report.cell import CONFIDENCE, EMPTY, Missing, TableCell, cell_text
from ironbench.report.charts import waterfall
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.rows import RowBar, keys, stacked
from ironbench.report.numbers import quantity, scale
from ironbench.report.page import Section, with_rows
from ironbench.report.waits import wait_class
from ironbench.report.wording.answers.zero_latency import ceiling_sentence, limit_sentence, unexplained
from ironbench.report.wording.terms import label
from ironbench.report.wording.values import CI
from ironbench.words import counted, listed

if TYPE_CHECKING:
    from ironbench.study.study import Study

PLACE = 1600
_LEAD = (
    "The chart shows a client's time per transaction, by wait class. If a wait class takes 50% of the time, "
    "throughput would about double without that wait class, provided that everything else takes as long as "
    "before. This is only an estimate: waits caused by that wait class would also disappear, and queues "
    "elsewhere would grow. To measure the gain, add a configuration in which the corresponding part has zero "
    "latency (`ideal`)."
)


def sections(study: Study) -> Iterator[Section]:
    charts, tables = (*spent(study), *waterfalls(study)), (*with_rows(limits(study)), *with_rows(ceilings(study)))
    yield Section("time", "Where the time goes", f"{_LEAD} {_trials(study)}", charts, tables)


def _trials(study: Study) -> str:
    """States from which trials the times are means, such as `The times are means over all usable trials.`"""
    known = [(label(cell.configuration), cell.time) for cell in study.cells if cell.time]
    if all(time.trials == time.observed for _, time in known):
        return "The times are means over all usable trials."
    tally = (f"{time.trials} of {counted(time.observed, 'trial')} of {name}" for name, time in known)
    return (
        "The times are means over the trials of blocks in which both sides of a comparison have a usable trial: "
        f"{listed(list(tally))}."
    )


def limits(study: Study) -> Table:
    rows = tuple(
        (label(cell.configuration), limit_sentence(cell.time, study.ceilings)) for cell in study.cells if cell.time
    )
    return Table(("configuration", "bottleneck"), rows, words=True)


def ceilings(study: Study) -> Table:
    """Returns a row for each part of the system that had zero latency in some configuration, with the measured gain."""
    rows = tuple(
        (" and ".join(one.parts), " ".join(filter(None, (ceiling_sentence(one), unexplained(one)))))
        for one in study.ceilings
    )
    return Table(("what had zero latency", "measured gain"), rows, words=True)


_TOKENS = ("@p0", "@p7", "@p2", "@p8", "@p1", "@p3", "@p5", "@s6", "@p4", "@p6")
COLOURS = dict(zip(map(wait_class, WAIT_CLASSES), _TOKENS, strict=True))
"""Colours of the wait classes, which are the same in every chart of a lab."""


def spent(study: Study) -> list[Chart]:
    """Draws the time per transaction of each configuration, divided into wait classes. Returns an empty list if
    backends were not observed."""
    known = [(label(cell.configuration), cell.time) for cell in study.cells if cell.time]
    if not known:
        return []
    suffix, factor = scale("s", [time.total_s for _, time in known])
    drawn = {wait_class(part.name) for _, time in known for part in time.parts if part.share >= 0.0005}
    colours = {name: colour for name, colour in COLOURS.items() if name in drawn}
    bars = [
        RowBar(
            name,
            {
                wait_class(part.name): TableCell(part.time_s, "s", note=quantity(part.share, "share"))
                for part in time.parts
            },
            TableCell(time.total_s, "s"),
        )
        for name, time in known
    ]
    x = {"scale": {"zero": True, "nice": False}, "axis": {"title": suffix, "tickCount": 5, "format": ",~r"}}
    words = "; ".join(
        f"{bar.name}: {cell_text(bar.total or EMPTY)}, of which "
        + ", ".join(f"{part} {cell_text(cell)}" for part, cell in bar.parts.items())
        for bar in bars
    )
    return [
        Chart(
            "time",
            "Transaction time by wait class",
            f"A client's time per transaction by wait class. {words}.",
            stacked(bars, colours, x, factor),
            _table(study),
            f"{suffix} per transaction",
            keys(colours),
            wide=True,
        )
    ]


def _table(study: Study) -> Table:
    rows = []
    for cell in study.cells:
        for part in cell.time.parts if cell.time else ():
            known = TableCell(None, "share", part.low, part.high, CONFIDENCE)
            figures = (TableCell(part.time_s, "s"), TableCell(part.share, "share"))
            rows.append(
                (
                    f"{label(cell.configuration)}: {wait_class(part.name)}",
                    *figures,
                    known if part.low < part.high else Missing("exact"),
                )
            )
    return Table(("configuration and wait class", "time per transaction", "% of transaction time", CI), tuple(rows))


def waterfalls(study: Study) -> list[Chart]:
    """Draws a waterfall chart for each comparison, from the baseline to the compared configuration."""
    return [waterfall.chart(one, f"waterfall-{place}") for place, one in enumerate(study.waterfalls)]
