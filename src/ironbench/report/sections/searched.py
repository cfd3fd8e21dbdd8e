"""Loads that searches tried and chose for the configurations of a lab."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.model.note import text_note
from ironbench.model.search import ChosenLoad, Search
from ironbench.report import wording
from ironbench.report.cell import Content, Missing, Row, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity, unit_of
from ironbench.report.page import Section, with_rows
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.study.study import Study

PLACE = 620

_LEAD = (
    "Before the first block, a search chose the load of each configuration. The blocks measured every "
    "configuration again at that load. The findings use only the blocks and not the trials of the search, "
    "because a search tends to choose a trial that was fast by chance."
)


def sections(study: Study) -> Iterator[Section]:
    found = ((one.cell.name, one.best.result or text_note(one.best.sentence)) for one in study.searched if one.best)
    sentences = tuple(f"{name}: {wording.text(result)}." for name, result in found)
    tables = with_rows(tried(study))
    yield Section(
        "searched", "Best load of each configuration", _LEAD, tables=tables, sentences=sentences, printed_at_end=True
    )


def tried(study: Study) -> Table:
    """Returns a row for each load that a search tried."""
    rows: list[Row] = []
    searches = [one.search for one in study.searched if one.search]
    limits = searches[0].limits if searches else ()
    for one in study.searched:
        if one.search and one.best:
            rows += _rows(one.cell.name, one.search, one.best)
    of = searches[0].of if searches else ""
    bounds = (f"{metric_words(limit.metric)} (limit {quantity(limit.most, unit_of(limit.metric))})" for limit in limits)
    return Table(("configuration", of, "", "trials", "throughput", *bounds), tuple(rows))


def _rows(cell: str, search: Search, best: ChosenLoad) -> Iterator[Row]:
    for one in best.tried:
        point = TableCell(one.point, "rate" if search.of == "rate" else "count")
        values: list[Content] = [
            TableCell(value, unit_of(limit.metric)) for value, limit in zip(one.limited, search.limits, strict=False)
        ]
        values += [Missing("failed")] * (len(search.limits) - len(values))
        chosen = "chosen" if one.point == best.point else ""
        throughput = TableCell(one.throughput, "1/s") if one.throughput else Missing("failed")
        yield cell, point, chosen, count(one.trials), throughput, *values
