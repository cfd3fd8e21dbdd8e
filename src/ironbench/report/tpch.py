"""Results of the TPC-H-derived workload. These are the metrics power and throughput, and the times of tests, refresh
functions and queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ironbench import engines
from ironbench.catalogue import base_name, part_of
from ironbench.report import wording
from ironbench.report.cell import ABSENT, EMPTY, Content, Row, TableCell, cell_text, centre, ratios, with_range
from ironbench.report.cell import spread as spread_of
from ironbench.report.charts.base import Table
from ironbench.report.charts.queries import by_query
from ironbench.report.finding_tables import against_trend_tables
from ironbench.report.numbers import unit_of
from ironbench.report.page import Section
from ironbench.study.study import Study, SubjectResults
from ironbench.study.subjects import leading, streams
from ironbench.study.summarise import Summary
from ironbench.words import counted, upper_first

WORKLOAD = "tpch"
_PLANNING = "planning_time_s"
_FACTS = 7
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
    "Power, throughput and composite are queries per hour times the scale factor (queries/h × SF). The TPC-H "
    "rules round times to a tenth of a second. Below scale factor 1, rounding hides differences, so the "
    "unrounded values come first."
)
_RANGES = " Parentheses contain the range of all trials."


def figures(part: SubjectResults) -> dict[str, str]:
    """Maps the names of the benchmark's figures (power, throughput, composite) to metrics. The workload's main metrics
    come first."""
    metrics = [f"{name}{suffix}" for suffix in ("", "_unrounded") for name in _WORDS]
    leads = leading(part.subject.records[0])
    ranked = sorted(metrics, key=lambda metric: metric not in leads)
    return {f"{_WORDS[_stem(metric)]}, {_how(metric)}": metric for metric in ranked}


def headline(study: Study) -> list[tuple[str, str]]:
    return [(part.name, _sentence(part)) for part in study.parts]


def _sentence(part: SubjectResults) -> str:
    """Returns the rest of a sentence that starts with the system's name: `reaches power 2,880, throughput 3,960
    queries/h × SF, unrounded; answers a query in 12.1 ms …`."""
    metrics, leads = part.metrics, leading(part.subject.records[0])
    merits = [metric for metric in leads if metric in metrics and _stem(metric) in _WORDS]
    texts = [", ".join(f"{_WORDS[_stem(metric)]} {_bare(metrics[metric], unit_of(metric))}" for metric in merits)]
    if merits:
        texts[0] = f"reaches {texts[0]} {unit_of(merits[0])}, {_how(merits[0])}"
    mean = metrics.get("query_time_geomean_s")
    if mean is not None:
        texts.append(f"answers a query in {cell_text(with_range(mean, 's'))} (geometric mean)")
    texts = [words for words in texts if words]
    trials = len(part.curve.peak.trials) if part.curve.peak else 0
    if not texts:
        return "did not answer all queries, so there is no overall result." if trials else "has no usable trial."
    texts.append(
        "n=1: no range" if trials == 1 else f"medians of {counted(trials, 'trial')}, with the range in parentheses"
    )
    return f"{'; '.join(texts)}."


def _stem(metric: str) -> str:
    return metric.removesuffix("_unrounded")


def _how(metric: str) -> str:
    return "unrounded" if metric.endswith("_unrounded") else "rounded as the TPC-H rules prescribe"


def _bare(summary: Summary, unit: str) -> str:
    """Formats a value without its unit, because the sentence names the unit only once, after the last value."""
    return cell_text(replace(with_range(summary, unit), bare=True))


def card(part: SubjectResults) -> tuple[Content, str, list[tuple[str, Content]]]:
    metrics, rows = part.metrics, [*figures(part).items(), *_TIMES.items()]
    known = [(words, metric) for words, metric in rows if metric in metrics]
    if not known:
        return EMPTY, "not all queries answered" if part.curve.peak else "no usable trial", []
    (words, first), rest = known[0], known[1:_FACTS]
    unit = unit_of(first)
    merit = _stem(first) in _WORDS
    figure = TableCell(metrics[first].centre, unit, bare=merit)
    spread: list[tuple[str, Content]] = [("range", spread_of(metrics[first], unit))]
    others = [(name, centre(metrics[metric], unit_of(metric))) for name, metric in rest]
    return figure, f"{unit} {words}" if merit else words, [*spread, *others]


def table(study: Study) -> Table:
    """Returns a row for each figure, with the value of each system, and its ratio to the first system."""
    names = [part.name for part in study.parts]
    head = ("", *names, *(f"{name} / {names[0]}" for name in names[1:]))
    return Table(head, tuple(_rows(study.parts)))


def _rows(parts: Sequence[SubjectResults]) -> list[Row]:
    columns = [part.metrics for part in parts]
    lines: list[Row] = []
    for name, metric in {**figures(parts[0]), **_TIMES}.items():
        if any(metric in column for column in columns):
            known = [column.get(metric) for column in columns]
            cells = [with_range(one, unit_of(metric)) if one else ABSENT for one in known]
            lines.append((name, *cells, *ratios(columns, metric)))
    ran = [streams(part.subject.records[0]) for part in parts]
    if any(ran):
        names = [one[1] if one else ABSENT for one in ran]
        lines.append(("streams in the throughput test", *names, *(ABSENT for _ in parts[1:])))
    return lines


def queries(part: SubjectResults) -> Table:
    """Returns a row for each query of one system, with the query's time. If planning times are known, they are in a
    second column. The query time includes the planning time."""
    metrics = part.metrics
    names = sorted(part_of(name) for name in metrics if base_name(name) == "query_time_s")
    columns = [("time", "query_time_s")]
    if any(base_name(name) == _PLANNING for name in metrics):
        columns.append(("of which planning", _PLANNING))
    rows = [
        (name.partition("=")[2], *(centre(metrics.get(f"{metric}{{{name}}}"), "s") for _, metric in columns))
        for name in names
    ]
    return Table(("query", *(head for head, _ in columns)), tuple(rows))


def _planning(study: Study) -> Iterator[str]:
    """Yields a sentence for each engine that does not report planning times."""
    for name in dict.fromkeys(part.subject.records[0].system.engine for part in study.parts):
        if not engines.get(name).can("plan times"):
            yield f"{name} does not report planning times."


def _answers(study: Study) -> Iterator[str]:
    """States whether the queries' answers were checked, or why they were not."""
    for part in study.parts:
        trials_by_note = Counter(record.answers for record in part.subject.records)
        for found, trials in trials_by_note.items():
            if found:
                whose = f" ({part.name})" if len(study.parts) > 1 else ""
                times = f" ({counted(trials, 'trial')})" if len(trials_by_note) > 1 else ""
                words = wording.text(found)
                yield f"{upper_first(words)}{times}{whose}."


def sections(study: Study) -> list[Section]:
    """Returns a section with the figures and a section with the queries. The queries of several systems are shown as
    charts, and those of a single system as a table."""
    alone = (("", queries(study.parts[0])),) if len(study.parts) == 1 else against_trend_tables(study.details.against)
    merits = (("", table(study)),)
    several = any(summary.n > 1 for part in study.parts for summary in part.metrics.values())
    lead = _LEAD + (_RANGES if several else "")
    return [
        Section("tpch", "Results", lead, tables=merits, sentences=tuple(_answers(study)), printed_at_end=True),
        Section(
            "tpch-queries",
            "Query by query",
            charts=tuple(by_query(study.details.queries)),
            tables=alone,
            sentences=tuple(_planning(study)),
            printed_at_end=True,
        ),
    ]
