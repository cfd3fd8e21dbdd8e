"""`compare A B`, on the terminal and for programs."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironbench.analyse.compare import NO_VERDICT, CellComparison, Comparison, Row
from ironbench.analyse.differences import telling
from ironbench.analyse.rate import loop_words
from ironbench.model.record import SCHEMA
from ironbench.report import own, plain
from ironbench.report.as_json import encoded, plain_value
from ironbench.report.charts.base import Table
from ironbench.report.findings import effect_table, metric_tables, metric_words
from ironbench.report.numbers import measured, span, times, unit_of
from ironbench.report.plain import bullets
from ironbench.report.sections.differences import difference_rows
from ironbench.words import counted
from ironbench.workloads.base import LEADING

if TYPE_CHECKING:
    from ironbench.analyse.study import Effect

_MAIN = (
    *("throughput", "failed_fraction", "response_time_mean_s", "response_time_p50_s", "response_time_p90_s"),
    "response_time_p99_s",
)

_UNDECLARED = (
    "No verdict: the lab does not declare this comparison, and one that is chosen after the numbers were seen would "
    "find differences too easily. Ratios are paired by block."
)


def text(found: Comparison, everything: bool = False, pairs: Sequence[Effect] = ()) -> str:
    """`compare A B` on the terminal: the answer and what it is worth, the numbers, what differs (or all of that)."""
    if tables := own.compared(found):
        return _own_comparison(found, tables, everything, pairs)
    cautions = [*found.left_out, *found.warnings, *found.unlike]
    elsewhere = any(row.room == "machine" for row in found.differences)
    differing = _differences(found, everything)
    blocks = [
        f"A  {plain.clean(found.a)}\nB  {plain.clean(found.b)}",
        *found.derived,
        differing if elsewhere else "",  # of two machines a ratio means nothing before they are known
        _paired(pairs) if pairs else f"{_answer(found)}\n{NO_VERDICT}",
        bullets("Before you use these numbers", cautions),
        _peaks(found),
        _cells(found),
        "" if elsewhere else differing,
    ]
    return "\n\n".join(block for block in blocks if block)


def _own_comparison(
    found: Comparison, tables: Sequence[tuple[str, Table]], everything: bool, pairs: Sequence[Effect]
) -> str:
    """Before and after, line by line, of a workload whose result is not a throughput."""
    blocks = [
        f"A  {plain.clean(found.a)}\nB  {plain.clean(found.b)}",
        *found.derived,
        _paired(pairs) if pairs else NO_VERDICT,
        bullets("Before you use these numbers", [*found.left_out, *found.warnings, *found.unlike]),
        *(plain.table(table) for _, table in tables),
        _differences(found, everything),
    ]
    return "\n\n".join(block for block in blocks if block)


def _paired(effects: Sequence[Effect]) -> str:
    """Two cells of one lab, block by block: the verdict where the lab declared the comparison, then every metric."""
    # Answers of labs need statistics, whose import costs more than all else that a comparison without them does.
    from ironbench.report.answer import sentence

    deciding = [effect for effect in effects if effect.finding.decides]
    words = " ".join(map(sentence, deciding)) if deciding else _UNDECLARED
    tables = [plain.table(effect_table(deciding))] if deciding else []
    rest = [effect for effect in effects if not effect.finding.decides]
    tables += [f"{plain.clean(name)}, paired by block\n{plain.table(one)}" for name, one in metric_tables(rest)]
    return "\n\n".join([textwrap.fill(plain.clean(words), 100, break_on_hyphens=False), *tables])


def _answer(found: Comparison) -> str:
    """The figure that leads, at both peaks, in a sentence; of open loops whether they kept their rate."""
    if found.leading[0] != "throughput":
        return _leading_answer(found)
    a, b = found.loads
    if a.rate is not None or b.rate is not None:
        return _kept(found)
    row = found.peaks.row("throughput") if found.peaks else None
    if row is None or row.ratio is None:
        return "There is no throughput of both to compare."
    unit = unit_of("throughput")
    return (
        f"At its peak B has {times(row.ratio)} the throughput of A: "
        f"{measured(row.b, unit)} against {measured(row.a, unit)} ({_spread_words(row)})."
    )


def _leading_answer(found: Comparison) -> str:
    """Of work whose result is not a throughput of clients."""
    rows = [row for metric in found.leading if (row := found.peaks.row(metric) if found.peaks else None)]
    row = next((row for row in rows if row.ratio is not None), None)
    if row is None:
        return "There is no figure of both to compare."
    unit = unit_of(row.metric)
    return (
        f"B has {times(row.ratio)} the {metric_words(row.metric)} of A: "
        f"{measured(row.b, unit)} against {measured(row.a, unit)} ({_spread_words(row)})."
    )


def _spread_words(row: Row) -> str:
    single = "each a single trial" if row.a.n == row.b.n else f"{'A' if row.a.n == 1 else 'B'} is a single trial"
    ranges = {"no spread": single, "overlap": "ranges of repeats overlap", "apart": "ranges of repeats do not overlap"}
    return ranges[_ranges(row)]


def _kept(found: Comparison) -> str:
    a, b = found.loads
    said = "; ".join(f"{name}: {one.rate:g}/s {one.words}" for name, one in zip("AB", found.rates, strict=True) if one)
    if (a.rate, a.arrivals) != (b.rate, b.arrivals):
        loops = f"A was driven in {loop_words(a)}, B in {loop_words(b)}"
        return f"{loops}: neither throughput nor response times of the two can be compared ({said})."
    if not all(one and one.is_kept for one in found.rates):
        return f"Both were asked for {a.rate:g}/s: {said}. Response times of a rate that is not kept are not compared."
    row = found.peaks.row("response_time_p99_s") if found.peaks else None
    if row is None or row.ratio is None:
        return f"Both were asked for {a.rate:g}/s: {said}."
    unit = unit_of(row.metric)
    return (
        f"Both were asked for {a.rate:g}/s: {said}. At that rate the 99th percentile of B's response times is "
        f"{times(row.ratio)} that of A: {measured(row.b, unit)} against {measured(row.a, unit)}."
    )


def _differences(found: Comparison, everything: bool) -> str:
    told, rest = (found.differences, ()) if everything else telling(found.differences)
    lines = []
    if told:
        rows = difference_rows(told)
        lines.append("What differs\n" + plain.facts(Table((), (("", "A", "B"), *rows))))
    if rest:
        names = shlex.join([plain.clean(found.a), plain.clean(found.b)])
        lines.append(f"That is not all: ironbench compare {names} --all names {counted(len(rest), 'fact')} more")
    return "\n\n".join(lines)


def _peaks(found: Comparison) -> str:
    if found.peaks is None:
        sides = zip((found.a, found.b), found.peak_basis, strict=True)
        return "Nothing to compare: " + "; ".join(f"{plain.clean(side)}: {basis}" for side, basis in sides)
    opened = {load.rate is not None for load in found.loads}
    where = (
        "Each by itself" if len(opened) > 1 else "Each at the rate asked for" if True in opened else "Each at its peak"
    )
    basis = f"{where} (A: {found.peak_basis[0]}; B: {found.peak_basis[1]})"
    # A metric without a better direction cannot speak for A or B; all of them are in the JSON document.
    rows = [row for row in found.peaks.rows if "{" not in row.metric and row.better != "neither"]
    rows.sort(key=lambda row: row.metric not in found.leading)
    zero = [row.metric for row in rows if not (row.a.high or row.b.high)]
    closed = all(load.rate is None for load in found.loads)
    twice = [row.metric for row in rows if closed and row.metric.startswith("service_time")]
    shown = [row for row in rows if row.metric not in (*zero, *twice)]
    head = ("metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    lines = [basis, plain.table(Table(head, tuple(_row(row) for row in shown)))]
    lines += (
        [textwrap.fill(f"0 on both sides: {', '.join(zero)}", 100, initial_indent="  ", subsequent_indent="    ")]
        if zero
        else []
    )
    lines += ["  closed loops on both sides: the service time is the response time"] if twice else []
    return "\n".join(lines)


def _row(row: Row) -> tuple[str, ...]:
    unit = unit_of(row.metric)
    better = {"higher": " ↑", "lower": " ↓"}.get(row.better, "")
    return (
        row.metric + better,
        measured(row.a, unit),
        measured(row.b, unit),
        times(row.ratio) if row.ratio is not None else "–",
        span(row.a, unit),
        span(row.b, unit),
        _ranges(row),
    )


def _ranges(row: Row) -> str:
    if row.a.n == 1 or row.b.n == 1:
        return "no spread"
    return "overlap" if row.overlap else "apart"


def _cells(found: Comparison) -> str:
    rows, main = [], _MAIN if found.leading == LEADING else found.leading
    for cell in found.cells:
        for row in (cell.row(metric) for metric in main):
            if row is not None and (row.metric != "failed_fraction" or row.a.high or row.b.high):
                rows.append((cell.name, *_row(row)))
    if not rows:
        return "There is no number of clients that both were measured with."
    head = ("load", "metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    return "Load by load (↑ higher is better, ↓ lower is better)\n" + _grouped(head, rows, found.cells)


def _grouped(head: tuple[str, ...], rows: list[tuple[str, ...]], cells: Sequence[CellComparison]) -> str:
    """Each load named once."""
    seen: set[str] = set()
    shown = []
    for row in rows:
        shown.append(row if row[0] not in seen else ("", *row[1:]))
        seen.add(row[0])
    return plain.table(Table(head, tuple(shown)))


def document(found: Comparison, pairs: Sequence[Effect] = ()) -> str:
    """What `compare --json` prints; `pairs`: findings of two cells of one lab."""
    document = plain_value(found)
    for cell, source in zip(document["cells"], found.cells, strict=True):
        cell["rows"] = [_row_fields(row) for row in source.rows]
    if found.peaks is not None:
        document["peaks"]["rows"] = [_row_fields(row) for row in found.peaks.rows]
    document["findings"] = [plain_value(effect.finding) for effect in pairs]
    return encoded({"schema": SCHEMA, **document}).decode()


def _row_fields(row: Row) -> dict[str, Any]:
    return {**plain_value(row), "ratio": row.ratio, "overlap": row.overlap, "improves": row.improves}
