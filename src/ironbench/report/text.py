"""The terminal: tables and small charts."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ironbench.analyse.archive import Archive
from ironbench.analyse.compare import NO_VERDICT, CellComparison, Comparison, Row
from ironbench.analyse.differences import telling
from ironbench.analyse.rate import loop_words
from ironbench.analyse.study import Study, studies
from ironbench.model.record import Record, Status
from ironbench.model.sample import too_few
from ironbench.printer import Printer
from ironbench.report import figures, own, plain
from ironbench.report.charts.base import Table
from ironbench.report.charts.curves import curves
from ironbench.report.charts.latency import latency
from ironbench.report.derived import sentences
from ironbench.report.findings import metric_words
from ironbench.report.numbers import count, measured, moment, quantity, span, times, unit_of
from ironbench.words import counted
from ironbench.workloads.base import LEADING

if TYPE_CHECKING:
    from ironbench.analyse.labstudy import Effect

_MAIN = (
    *("throughput", "failed_fraction", "response_time_mean_s", "response_time_p50_s", "response_time_p90_s"),
    "response_time_p99_s",
)


def render(found: Sequence[Study]) -> bytes:
    overview = figures.overview(found)
    first = [f"Contents: {figures.contents(found)}\n\n{plain.table(overview)}"] if overview else []
    return ("\n\n".join([*first, *(_study(study) for study in found)]) + "\n").encode()


def _own_tables(study: Study) -> str:
    """Of a workload whose result is not a throughput: its table, and the others that belong to it."""
    shown = own.presentation(study)
    if shown is None:
        return ""
    tables = [shown.peaks(study), *(table for section in shown.sections(study)[1:] for _, table in section.tables)]
    return "\n\n".join(plain.table(table) for table in tables if table.rows)


def run_summary(records: Sequence[Record], archive: Archive, printer: Printer) -> None:
    """What a run gave: curve, peak and what to know before using it."""
    if not records:
        return
    for study in studies(records, archive, sentences(records)):
        figures = [_own_tables(study)] if own.presentation(study) else [*_curves(study), _rates(study), _few(study)]
        blocks = [study.derived, _statuses(study), *figures, *_parts(study), _headline(study), _scaling(study)]
        blocks.append(_cautions(study))
        printer.data("\n\n".join(block for block in blocks if block))


def comparison(found: Comparison, everything: bool = False, pairs: Sequence[Effect] = ()) -> str:
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
        _bullets("Before you use these numbers", cautions),
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
        _bullets("Before you use these numbers", [*found.left_out, *found.warnings, *found.unlike]),
        *(plain.table(table) for _, table in tables),
        _differences(found, everything),
    ]
    return "\n\n".join(block for block in blocks if block)


def _paired(pairs: Sequence[Effect]) -> str:
    # Labs need statistics, whose import costs more than all else that a comparison without them does.
    from ironbench.report.lab_text import paired

    return paired(pairs)


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
    said = "; ".join(f"{name} {one.words} {one.rate:g}/s" for name, one in zip("AB", found.rates, strict=True) if one)
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
        rows = figures.difference_rows(told)
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


def _study(study: Study) -> str:
    trials = counted(study.trials, "trial")
    heading = f"{plain.clean(figures.title(study))}\n{plain.clean(study.work)}\n{moment(study.started_at)}, {trials}"
    figures_first = [_own_tables(study)] if own.presentation(study) else _curves(study)
    blocks = [heading, study.derived, _headline(study), _cautions(study), *figures_first, _scaling(study)]
    blocks += (
        [] if own.presentation(study) else [f"{chart.title}\n{plain.table(chart.table)}" for chart in latency(study)]
    )
    for section in figures.sections(study):
        if section.id in ("scripts", "statements"):
            blocks += [f"{section.title}: {plain.clean(name)}\n{plain.table(table)}" for name, table in section.tables]
        elif section.id == "rates":
            blocks.append(_rates(study))
        elif section.id in ("balance", "differences"):
            for name, table in section.tables:
                if name == figures.REST:
                    more = counted(len(table.rows), "fact")
                    blocks.append(f"That is not all: the HTML and JSON reports name {more} more.")
                else:
                    blocks.append(f"{section.title}\n{plain.facts(Table((), (table.head, *table.rows)))}")
        elif section.id in ("cpu", "waits"):
            charts = [
                f"{section.title}: {plain.clean(chart.title)}\n{plain.table(chart.table)}" for chart in section.charts
            ]
            blocks += charts
    commands = "\n".join(f"  {plain.clean(part.command)}" for part in study.parts)
    blocks += [f"How to reproduce\n{commands}", _bullets("Notes", study.footnotes)]
    return "\n\n".join(block for block in blocks if block)


def _parts(study: Study) -> list[str]:
    """Script by script and, where they were timed, statement by statement."""
    found = []
    for title, tables in (
        ("Script by script", figures.scripts(study)),
        ("Statement by statement", figures.statements(study)),
    ):
        for name, table in tables:
            found.append(f"{title}, {study.place}: {plain.clean(name)}\n{plain.table(table)}")
    return found


def _few(study: Study) -> str:
    return too_few([trial for part in study.parts for trial in part.subject.records], study.counts[1])


def _curves(study: Study) -> list[str]:
    found = [f"{chart.title}\n{plain.table(chart.table)}" for chart in curves(study)]
    rows = []
    for clients in sorted({point.clients for part in study.closed for point in part.curve.points}):
        for part in study.closed:
            for point in part.curve.points:
                if point.clients == clients and "throughput" in point.metrics:
                    centre = point.metrics["throughput"].centre
                    rows.append((f"{count(clients):>6}  {part.name}", centre, quantity(centre, "1/s")))
    return [*found, f"clients, throughput\n{plain.bars(rows)}"] if len(rows) > 1 else found


def _rates(study: Study) -> str:
    rows = figures.rates(study)
    return f"Rates asked for, in open loops\n{plain.table(rows)}" if rows.rows else ""


def _scaling(study: Study) -> str:
    said = (f"{plain.clean(one.name)}: {text}" for one in study.scalings for text in one.sentences)
    return "\n".join(said)


def _headline(study: Study) -> str:
    return plain.answer(figures.answer(study))


def _cautions(study: Study) -> str:
    return _bullets("Before you use these numbers", figures.cautions(study))


def _statuses(study: Study) -> str:
    records = [record for part in study.parts for record in part.subject.records]
    tally = [(status, sum(record.status is status for record in records)) for status in Status]
    return ", ".join(f"{number} {status.value}" for status, number in tally if number)


def _bullets(title: str, rows: Sequence[str]) -> str:
    return "\n".join([title, *(f"  - {plain.clean(row)}" for row in rows)]) if rows else ""
