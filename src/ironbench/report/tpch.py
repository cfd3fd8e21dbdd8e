"""The result of the TPC-H-derived workload: figures of merit, times of tests, refresh functions and queries."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.study import Part, Study
from ironbench.analyse.subjects import leading
from ironbench.analyse.summarise import Summary
from ironbench.catalogue import base_name, part_of
from ironbench.report import trend
from ironbench.report.charts.base import Table
from ironbench.report.charts.query_bars import by_query
from ironbench.report.numbers import between, measured, span, times, unit_of
from ironbench.report.section import Section
from ironbench.words import THIN, counted

WORKLOAD = "tpch"
_FACTS = 7
"""Figures on a card."""
HIDES = frozenset({"curves", "law", "latency", "scripts", "queries"})

_WORDS = {"power": "power", "stream_throughput": "throughput", "composite": "composite"}
_TIMES = {
    "geometric mean of the queries": "query_time_geomean_s",
    "stream": "stream_time_s{stream=0}",
    "throughput test": "throughput_test_s",
    "refresh function 1": "refresh_time_s{function=rf1}",
    "refresh function 2": "refresh_time_s{function=rf2}",
    "load": "load_elapsed_s",
}
_LEAD = (
    "Figures of merit are queries per hour, times the scale factor (queries/h × SF). By the rules times are rounded to "
    "a tenth of a second; below scale factor 1 that hides differences, so the unrounded figures lead there. In "
    "brackets: the range of all trials."
)


def metrics_of(part: Part) -> dict[str, Summary]:
    return part.curve.main.metrics if part.curve.main else {}


def figures(part: Part) -> dict[str, str]:
    """What figures of merit are called here → their metrics, those that lead first."""
    metrics = [f"{name}{suffix}" for suffix in ("", "_unrounded") for name in _WORDS]
    leads = leading(part.subject.records[0].choice)
    ranked = sorted(metrics, key=lambda metric: metric not in leads)
    return {f"{_WORDS[_stem(metric)]}, {_how(metric)}": metric for metric in ranked}


def headline(study: Study) -> list[tuple[str, str]]:
    return [(part.name, _sentence(part)) for part in study.parts]


def _sentence(part: Part) -> str:
    """`power 2 880, throughput 3 960, composite 3 380 queries/h × SF, unrounded; a query in 12.1 ms …`."""
    found, leads = metrics_of(part), leading(part.subject.records[0].choice)
    merits = [metric for metric in leads if metric in found and _stem(metric) in _WORDS]
    said = [", ".join(f"{_WORDS[_stem(metric)]} {_bare(found[metric], unit_of(metric))}" for metric in merits)]
    if merits:
        said[0] += f" {unit_of(merits[0])}, {_how(merits[0])}"
    mean = found.get("query_time_geomean_s")
    if mean is not None:
        said.append(f"a query in {_shown(mean, 's')} (geometric mean)")
    said = [words for words in said if words]
    trials = len(part.curve.peak.trials) if part.curve.peak else 0
    said.append("n=1: no spread" if trials == 1 else f"medians of {counted(trials, 'trial')}, in brackets their range")
    return f"{'; '.join(said)}." if len(said) > 1 else "has no usable trial."


def _stem(metric: str) -> str:
    return metric.removesuffix("_unrounded")


def _how(metric: str) -> str:
    return "unrounded" if metric.endswith("_unrounded") else "by the rules"


def _bare(summary: Summary, unit: str) -> str:
    """Without its unit, which is said once for all."""
    return _shown(summary, unit).replace(f"{THIN}{unit}", "")


def card(part: Part) -> tuple[str, str, list[tuple[str, str]]]:
    found, rows = metrics_of(part), [*figures(part).items(), *_TIMES.items()]
    known = [(words, metric) for words, metric in rows if metric in found]
    if not known:
        return "", "no usable trial", []
    (words, first), rest = known[0], known[1:_FACTS]
    unit = unit_of(first)
    figure = measured(found[first], unit).removesuffix(f"{THIN}{unit}")
    spread = [("range", _range(found[first], unit))]
    small = f"{unit} {words}" if figure != measured(found[first], unit) else words
    return figure, small, spread + [(name, measured(found[metric], unit_of(metric))) for name, metric in rest]


def table(study: Study) -> Table:
    """A row per figure, a column per system, and ratios to the first."""
    names = [part.name for part in study.parts]
    head = ("", *names, *(f"{name} / {names[0]}" for name in names[1:]))
    return Table(head, tuple(_rows(study.parts)), numbers=True)


def _rows(parts: Sequence[Part]) -> list[tuple[str, ...]]:
    columns = [metrics_of(part) for part in parts]
    found: list[tuple[str, ...]] = []
    for name, metric in {**figures(parts[0]), **_TIMES}.items():
        if any(metric in column for column in columns):
            cells = [_cell(column.get(metric), unit_of(metric)) for column in columns]
            found.append((name, *cells, *_ratios(columns, metric)))
    return found


def _cell(summary: Summary | None, unit: str) -> str:
    return "–" if summary is None else _shown(summary, unit)


def _shown(summary: Summary, unit: str) -> str:
    """With the range of the trials, where there is one."""
    return f"{measured(summary, unit)}" + (f" ({_range(summary, unit)})" if summary.n > 1 else "")


def _range(summary: Summary, unit: str) -> str:
    return between(summary.low, summary.high, unit) if summary.low < summary.high else span(summary, unit)


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
    return [
        Section("tpch", "What it came to", _LEAD, tables=(("", table(study)),), at_end=True),
        Section("tpch-queries", "Query by query", charts=tuple(by_query(study.queries)), tables=alone, at_end=True),
    ]
