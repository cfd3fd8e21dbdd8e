"""The result of `compare A B`, as text and as JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ironbench import units
from ironbench.model.described import LEADING
from ironbench.model.record import SCHEMA
from ironbench.report import cell, plain, presentation, wording
from ironbench.report.as_json import encoded, plain_value
from ironbench.report.cell import ABSENT, TableCell, centre, spread
from ironbench.report.charts.base import Table
from ironbench.report.facts import difference_rows
from ironbench.report.findings import effect_table, metric_tables, metric_words
from ironbench.report.numbers import measured, times, unit_of
from ironbench.report.plain import bullets
from ironbench.report.wording.comparison import loop
from ironbench.study.compare import ComparedMetric, SystemComparison
from ironbench.study.differences import telling
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.report.section import Section
    from ironbench.study.study import Effect

_MAIN = (
    *("throughput", "failed_fraction", "response_time_mean_s", "response_time_p50_s", "response_time_p90_s"),
    "response_time_p99_s",
)

_WHOLE = {"throughput": "throughput of the whole trial"}
_VALUES = "  values are medians of the trials, percentiles pooled; `ironbench lead` takes geometric means"
NO_VERDICT = (
    "No verdict: the trials of A and B were not run in blocks, so only the ratio and the spread of repeats are given."
)
UNDECLARED = (
    "No verdict: the lab does not declare this comparison, and one that is chosen after the numbers were seen would "
    "find differences too easily. Ratios are paired by block."
)


def text(
    comparison: SystemComparison,
    everything: bool = False,
    pairs: Sequence[Effect] = (),
    explained: Section | None = None,
) -> str:
    """The answer and its caveats, the numbers, and what differs (`everything`: all of it). `explained`: the walk down
    to where the difference comes from."""
    if tables := presentation.comparison_tables(comparison):
        return _presented_comparison(comparison, tables, everything, pairs, explained)
    cautions = [*wording.texts((*comparison.left_out, *comparison.warnings)), *wording.sentences(comparison.unlike)]
    elsewhere = any(row.room == "machine" for row in comparison.differences)
    differing = _differences(comparison, everything)
    blocks = [
        _head(comparison),
        *comparison.derived,
        differing if elsewhere else "",  # of two machines a ratio means nothing before they are known
        _paired(pairs) if pairs else f"{_answer(comparison)}\n{NO_VERDICT}",
        bullets("Before you use these numbers", cautions),
        _peaks(comparison),
        _cells(comparison),
        *_walk(explained),
        "" if elsewhere else differing,
    ]
    return "\n\n".join(block for block in blocks if block)


def _head(comparison: SystemComparison) -> str:
    return "\n".join(f"{side}  {plain.clean(name)}" for side, name in zip("AB", _names(comparison), strict=True))


def _names(comparison: SystemComparison) -> list[str]:
    """With a mark where storage was emulated, which a name given on the command line need not have."""
    names = zip((comparison.a, comparison.b), comparison.emulated, strict=True)
    return [f"{name} (emulated)" if emulated and "emulated" not in name else name for name, emulated in names]


def _sides(comparison: SystemComparison) -> list[str]:
    return [
        f"{side} (emulated)" if emulated else side for side, emulated in zip("AB", comparison.emulated, strict=True)
    ]


def _presented_comparison(
    comparison: SystemComparison,
    tables: Sequence[tuple[str, Table]],
    everything: bool,
    pairs: Sequence[Effect],
    explained: Section | None,
) -> str:
    """Compares workloads whose result is not a throughput, line by line."""
    blocks = [
        _head(comparison),
        *comparison.derived,
        _paired(pairs) if pairs else NO_VERDICT,
        bullets(
            "Before you use these numbers",
            [*wording.texts((*comparison.left_out, *comparison.warnings)), *wording.sentences(comparison.unlike)],
        ),
        *(plain.table(table) for _, table in tables),
        *_walk(explained),
        _differences(comparison, everything),
    ]
    return "\n\n".join(block for block in blocks if block)


def _walk(explained: Section | None) -> list[str]:
    if explained is None or not explained.shows_something:
        return []
    return [*plain.section(explained), plain.folded(explained.lead)]


def _paired(effects: Sequence[Effect]) -> str:
    """Compares two cells of one lab block by block; a verdict only where the lab declared the comparison."""
    # Answers of labs need statistics, whose import costs more than all else that a comparison without them does.
    from ironbench.report.answer import sentence

    deciding = [effect for effect in effects if effect.finding.decides]
    words = " ".join(map(sentence, deciding)) if deciding else UNDECLARED
    tables = [plain.table(effect_table(deciding))] if deciding else []
    rest = [effect for effect in effects if not effect.finding.decides]
    tables += [f"{plain.clean(name)}, paired by block\n{plain.table(one)}" for name, one in metric_tables(rest)]
    return "\n\n".join([textwrap.fill(plain.clean(words), 100, break_on_hyphens=False), *tables])


def _answer(comparison: SystemComparison) -> str:
    """States the leading metric at both peaks; of open loops, whether they kept their rate."""
    if comparison.leading[0] != "throughput":
        return _leading_answer(comparison)
    a, b = comparison.loads
    if a.rate is not None or b.rate is not None:
        return _rate_answer(comparison)
    row = comparison.peaks.row("throughput") if comparison.peaks else None
    if row is None or row.ratio is None:
        return "There is no throughput of both to compare."
    unit = unit_of("throughput")
    only = comparison.clients
    where = "At its peak" if only is None else f"With {counted(only, 'client')}"
    one, other = _sides(comparison)
    return (
        f"{where} {other} has {times(row.ratio)} the throughput of {one}: "
        f"{measured(row.b, unit)} against {measured(row.a, unit)} ({_spread_words(row)})."
    )


def _leading_answer(comparison: SystemComparison) -> str:
    """States the leading metric of work whose result is not a throughput of clients."""
    rows = [row for metric in comparison.leading if (row := comparison.peaks.row(metric) if comparison.peaks else None)]
    row = next((row for row in rows if row.ratio is not None), None)
    if row is None:
        return "There is no figure of both to compare."
    unit = unit_of(row.metric)
    one, other = _sides(comparison)
    return (
        f"{other} has {times(row.ratio)} the {metric_words(row.metric)} of {one}: "
        f"{measured(row.b, unit)} against {measured(row.a, unit)} ({_spread_words(row)})."
    )


def _spread_words(row: ComparedMetric) -> str:
    single = "each a single trial" if row.a.n == row.b.n else f"{'A' if row.a.n == 1 else 'B'} is a single trial"
    ranges = {"no spread": single, "overlap": "ranges of repeats overlap", "apart": "ranges of repeats do not overlap"}
    return ranges[_ranges(row)]


def _rate_answer(comparison: SystemComparison) -> str:
    a, b = comparison.loads
    rates = [(name, one) for name, one in zip(_sides(comparison), comparison.rates, strict=True) if one]
    outcomes = "; ".join(f"{name}: {units.rate(one.rate)} {wording.text(one.outcome)}" for name, one in rates)
    if (a.rate, a.arrivals) != (b.rate, b.arrivals):
        loops = f"A was driven in {loop(a.rate)}, B in {loop(b.rate)}"
        return f"{loops}: neither throughput nor response times of the two can be compared ({outcomes})."
    both = f"Both were driven at {units.rate(rates[0][1].rate)}: {outcomes}."
    if not all(one and one.is_kept for one in comparison.rates):
        return f"{both} Response times of a rate that is not kept are not compared."
    row = comparison.peaks.row("response_time_p99_s") if comparison.peaks else None
    if row is None or row.ratio is None:
        return both
    unit = unit_of(row.metric)
    return (
        f"{both} At that rate the 99th percentile of B's response times is "
        f"{times(row.ratio)} that of A: {measured(row.b, unit)} against {measured(row.a, unit)}."
    )


def _differences(comparison: SystemComparison, everything: bool) -> str:
    shown, rest = (comparison.differences, ()) if everything else telling(comparison.differences)
    lines = []
    if shown:
        rows = difference_rows(shown)
        lines.append("What differs\n" + plain.facts(Table((), (("", "A", "B"), *rows))))
    if rest:
        names = shlex.join([plain.clean(comparison.a), plain.clean(comparison.b)])
        lines.append(f"That is not all: ironbench compare {names} --all names {counted(len(rest), 'fact')} more")
    return "\n\n".join(lines)


def _peaks(comparison: SystemComparison) -> str:
    if comparison.peaks is None:
        sides = zip((comparison.a, comparison.b), comparison.peak_basis, strict=True)
        known = [f"{plain.clean(side)}: {wording.text(basis)}" for side, basis in sides]
        return f"Nothing to compare: {'; '.join(known)}"
    opened = {load.rate is not None for load in comparison.loads}
    where = (
        "Each by itself"
        if len(opened) > 1
        else "Each at the requested rate"
        if True in opened
        else "Each at its peak"
        if comparison.clients is None
        else "Side by side"
    )
    basis_a, basis_b = map(wording.text, comparison.peak_basis)
    basis = f"{where} (A: {basis_a}; B: {basis_b})"
    # A metric without a better direction cannot speak for A or B; all of them are in the JSON document.
    rows = [row for row in comparison.peaks.rows if "{" not in row.metric and row.better != "neither"]
    rows.sort(key=lambda row: row.metric not in comparison.leading)
    zero = [row.metric for row in rows if not (row.a.high or row.b.high)]
    closed = all(load.rate is None for load in comparison.loads)
    twice = [row.metric for row in rows if closed and row.metric.startswith("service_time")]
    shown = [row for row in rows if row.metric not in (*zero, *twice)]
    head = ("metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    if comparison.leading[0] != "throughput":  # work with a throughput of its own kind leads with that
        shown = [replace(row, metric=_WHOLE.get(row.metric, row.metric)) for row in shown]
    lines = [basis, plain.table(Table(head, tuple(_row(row) for row in shown)))]
    lines += [_VALUES] if any(row.a.n > 1 or row.b.n > 1 for row in shown) else []
    lines += (
        [textwrap.fill(f"0 on both sides: {', '.join(zero)}", 100, initial_indent="  ", subsequent_indent="    ")]
        if zero
        else []
    )
    for why in dict.fromkeys(row.no_ratio for row in shown if row.no_ratio):
        names = ", ".join(row.metric for row in shown if row.no_ratio == why)
        text = f"no ratio of {names}: {wording.text(why)}"
        lines.append(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="    "))
    lines += ["  closed loops on both sides: the service time is the response time"] if twice else []
    return "\n".join(lines)


def _row(row: ComparedMetric) -> cell.Row:
    unit = "1/s" if row.metric in _WHOLE.values() else unit_of(row.metric)
    better = {"higher": " ↑", "lower": " ↓"}.get(row.better, "")
    return (
        row.metric + better,
        centre(row.a, unit),
        centre(row.b, unit),
        ABSENT if row.ratio is None and row.points is None else _change(row),
        spread(row.a, unit),
        spread(row.b, unit),
        _ranges(row),
    )


def _change(row: ComparedMetric) -> TableCell:
    return TableCell(row.ratio, "times") if row.points is None else TableCell(row.points, "points")


def _ranges(row: ComparedMetric) -> str:
    if row.a.n == 1 or row.b.n == 1:
        return "no spread"
    return "overlap" if row.overlap else "apart"


def _cells(comparison: SystemComparison) -> str:
    rows: list[cell.Row] = []
    main = _MAIN if comparison.leading == LEADING else comparison.leading
    for one in comparison.cells:
        for row in (one.row(metric) for metric in main):
            if row is not None and (row.metric != "failed_fraction" or row.a.high or row.b.high):
                rows.append((wording.text(one.name), *_row(row)))
    if not rows:
        return "There is no number of clients that both were measured with."
    head = ("load", "metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    return "Load by load (↑ higher is better, ↓ lower is better)\n" + _grouped(head, rows)


def _grouped(head: tuple[str, ...], rows: list[cell.Row]) -> str:
    """Names each load once."""
    seen: set[cell.Content] = set()
    shown: list[cell.Row] = []
    for row in rows:
        shown.append(row if row[0] not in seen else ("", *row[1:]))
        seen.add(row[0])
    return plain.table(Table(head, tuple(shown)))


def document(comparison: SystemComparison, pairs: Sequence[Effect] = ()) -> str:
    """Returns what `compare --json` prints; `pairs`: findings of two cells of one lab."""
    document = plain_value(comparison)
    for fields, source in zip(document["cells"], comparison.cells, strict=True):
        fields["rows"] = [_row_fields(row) for row in source.rows]
    if comparison.peaks is not None:
        document["peaks"]["rows"] = [_row_fields(row) for row in comparison.peaks.rows]
    document["findings"] = [plain_value(effect.finding) for effect in pairs]
    return encoded({"schema": SCHEMA, **document}).decode()


def _row_fields(row: ComparedMetric) -> dict[str, Any]:
    return {**plain_value(row), "ratio": row.ratio, "overlap": row.overlap, "improves": row.improves}
