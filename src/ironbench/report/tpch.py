"""The result of the TPC-H-derived workload: figures of merit, times of tests, refresh functions and queries."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.study import Part, Study
from ironbench.analyse.summarise import Summary
from ironbench.catalogue import base_name, part_of
from ironbench.report import trend
from ironbench.report.charts.base import Table
from ironbench.report.charts.queries import by_query
from ironbench.report.numbers import measured, number, quantity, span, times
from ironbench.report.section import Section

WORKLOAD = "tpch"
HIDES = frozenset({"curves", "law", "latency", "scripts", "queries"})

_FIGURES = {
    "power": "power",
    "power, unrounded": "power_unrounded",
    "throughput": "stream_throughput",
    "throughput, unrounded": "stream_throughput_unrounded",
    "composite": "composite",
    "composite, unrounded": "composite_unrounded",
}
_TIMES = {
    "geometric mean of the queries": "query_time_geomean_s",
    "stream": "stream_time_s{stream=0}",
    "throughput test": "throughput_test_s",
    "refresh function 1": "refresh_time_s{function=rf1}",
    "refresh function 2": "refresh_time_s{function=rf2}",
    "load": "load_elapsed_s",
}
_LEAD = (
    "Figures of merit are queries per hour, times the scale factor. By the rules times are rounded to a tenth of a "
    "second, which hides differences below scale factor 1: compare the unrounded ones there. In brackets: the range of "
    "all trials."
)


def metrics_of(part: Part) -> dict[str, Summary]:
    return part.curve.peak.metrics if part.curve.peak else {}


def headline(study: Study) -> list[tuple[str, str]]:
    return [(part.name, _sentence(metrics_of(part))) for part in study.parts]


def _sentence(found: dict[str, Summary]) -> str:
    said = [
        f"{words} {number(found[metric].centre, 4)}"
        for words, metric in _FIGURES.items()
        if metric in found and metric.endswith("_unrounded")
    ]
    mean = found.get("query_time_geomean_s")
    if mean is not None:
        said.append(f"a query in {quantity(mean.centre, 's')} (geometric mean)")
    return f"{'; '.join(said)}." if said else "has no usable trial."


def card(part: Part) -> tuple[str, str, list[tuple[str, str]]]:
    found = metrics_of(part)
    facts = _rows([found])
    return (
        (facts[0][1], facts[0][0], [(row[0], row[1]) for row in facts[1:7]]) if facts else ("", "no usable trial", [])
    )


def table(study: Study) -> Table:
    """A row per figure, a column per system, and ratios to the first."""
    names = [part.name for part in study.parts]
    head = ("", *names, *(f"{name} / {names[0]}" for name in names[1:]))
    return Table(head, tuple(_rows([metrics_of(part) for part in study.parts])), numbers=True)


def _rows(columns: Sequence[dict[str, Summary]]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for rows, unit in ((_FIGURES, "1"), (_TIMES, "s")):
        for name, metric in rows.items():
            if any(metric in column for column in columns):
                cells = [_cell(column.get(metric), unit) for column in columns]
                found.append((name, *cells, *_ratios(columns, metric)))
    return found


def _cell(summary: Summary | None, unit: str) -> str:
    if summary is None:
        return "–"
    if unit == "1":
        ends = f" ({number(summary.low, 4)} to {number(summary.high, 4)})" if summary.low < summary.high else ""
        return f"{number(summary.centre, 4)}{ends}"
    ends = f" ({span(summary, unit)})" if summary.low < summary.high else ""
    return f"{measured(summary, unit)}{ends}"


def _ratios(columns: Sequence[dict[str, Summary]], metric: str) -> list[str]:
    first = columns[0].get(metric)
    return [
        times(other.centre / first.centre) if first and first.centre and (other := column.get(metric)) else "–"
        for column in columns[1:]
    ]


def queries(part: Part) -> Table:
    """Of a single system: each query's time and how much of it was planning."""
    found = metrics_of(part)
    names = sorted(part_of(name) for name in found if base_name(name) == "query_time_s")
    rows = [
        (
            name.partition("=")[2],
            measured(found.get(f"query_time_s{{{name}}}"), "s"),
            measured(found.get(f"planning_time_s{{{name}}}"), "s"),
        )
        for name in names
    ]
    return Table(("query", "time", "of it planning"), tuple(rows), numbers=True)


def sections(study: Study) -> list[Section]:
    """Figures, then each query: charts where systems stand beside each other, a table for one alone."""
    alone = (("", queries(study.parts[0])),) if len(study.parts) == 1 else trend.tables(study.against)
    found = [
        Section("tpch", "What it came to", _LEAD, tables=(("", table(study)),)),
        Section("tpch-queries", "Query by query", charts=tuple(by_query(study.queries)), tables=alone),
    ]
    return [section for section in found if section.charts or any(rows.rows for _, rows in section.tables)]
