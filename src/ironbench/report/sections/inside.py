"""Statistics from inside the server: the cost of statements, their plans, and the use of tables and indexes. Also lists
statistics that the server did not provide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ironbench.model.inside import IndexUse, ServerStatement, StatementPlan
from ironbench.model.inside import TableUse as Used
from ironbench.report import wording
from ironbench.report.breakdown import OBSERVED
from ironbench.report.cell import ABSENT, EMPTY, Content, Missing, Row, TableCell, cell_text, count
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.rows import RowBar, keys, stacked
from ironbench.report.numbers import scale
from ironbench.report.page import EVERYWHERE, Section, by_value, with_rows
from ironbench.report.wording.terms import label
from ironbench.study.inside import ServerUse
from ironbench.study.queries import difference
from ironbench.study.study import Study
from ironbench.words import counted, cut

PLACE = 1650
_SHOWN = 10
_DRAWN = 6
_SIDE_BY_SIDE = 4
"""Maximum number of configurations for a table with a column for each configuration."""
_NAME = 44
"""Legends cut statements to this number of characters."""
_WIDTH = 100
"""Tables cut statements to this number of characters."""
_REST = "all other statements"
_COLOURS = ("@p0", "@p1", "@p3", "@p2", "@p8", "@p5")
_STATEMENTS = (
    "The values are counted by the server. Waits for the client and ironbench's own queries are not included. "
    "Planning and commits are included if the server counts these with the statement. Constants are replaced by "
    "placeholders."
)
_PLANS = (
    "The plans were made before the trials, for typical values, and were not executed. During the trials, a "
    "prepared statement may switch to a generic plan after several executions."
)
_TABLES = (
    "The values are counted by the server over the measured window. The server's counters lag by up to one second."
)


def sections(study: Study) -> Iterator[Section]:
    observed = f" {OBSERVED}" if study.details.observed else ""
    sentences = tuple(
        _with_names(
            (_label(study, one.name), text) for one in study.details.inside for text in wording.texts(one.notes)
        )
    )
    yield Section(
        "server-statements",
        _placed("Statement cost in the server", study),
        _STATEMENTS + observed,
        tuple(by_statement(study)),
        (*side_by_side(study), *statement_tables(study)),
        sentences=sentences,
    )
    yield Section(
        "server-plans",
        "Query plans of the scripts",
        _PLANS + observed,
        tables=(*plan_tables(study), *executed(study), *unplanned(study)),
        sentences=tuple(plan_sentences(study)),
        texts=tuple(plan_texts(study)),
    )
    tables = _placed("Use of tables and indexes", study)
    yield Section("server-tables", tables, _TABLES + observed, tables=tuple(use_tables(study)))
    yield Section("server-hides", "Statistics that the server did not provide", tables=with_rows(missing(study)))


def _label(study: Study, name: str) -> str:
    return label(study.configuration(name))


def _placed(title: str, study: Study) -> str:
    return f"{title}, {wording.text(study.place)}" if study.parts else title


def by_statement(study: Study) -> list[Chart]:
    """Draws the server time per transaction. Each system or configuration has a bar, which is divided into the times of
    its statements."""
    known = [one for one in study.details.inside if one.statements and one.counted.transactions]
    if not known:
        return []
    totals: dict[str, float] = {}
    for one in known:
        for statement in one.statements:
            totals[statement.text] = totals.get(statement.text, 0.0) + one.counted.per_transaction(statement.time_s)
    drawn = sorted(totals, key=lambda text: -totals[text])[:_DRAWN]
    labels = _labels(drawn)
    suffix, factor = scale("s", [one.counted.per_transaction(one.statements_s) for one in known])
    colours = dict(zip(labels.values(), _COLOURS, strict=False))
    bars = []
    for one in known:
        spent = {
            labels[own.text]: one.counted.per_transaction(own.time_s) for own in one.statements if own.text in labels
        }
        rest = max(0.0, one.counted.per_transaction(one.statements_s) - sum(spent.values()))
        parts = spent | ({_REST: rest} if rest > 0.005 * sum(spent.values()) else {})
        cells = {part: TableCell(time_s, "s") for part, time_s in parts.items()}
        bars.append(
            RowBar(_label(study, one.name), cells, TableCell(one.counted.per_transaction(one.statements_s), "s"))
        )
    if any(_REST in bar.parts for bar in bars):
        colours[_REST] = "@p4"
    rows: list[Row] = [(part, *(bar.parts.get(part, EMPTY) for bar in bars)) for part in colours]
    rows.append(("all", *(bar.total or EMPTY for bar in bars)))
    text = "; ".join(f"{bar.name}: {cell_text(bar.total or EMPTY)}" for bar in bars)
    x = {"scale": {"zero": True, "nice": False}, "axis": {"title": suffix, "tickCount": 5, "format": ",~r"}}
    return [
        Chart(
            "server-statements",
            "Server time per transaction, by statement",
            f"Execution time of statements in the server, per transaction. {text}.",
            stacked(bars, colours, x, factor),
            Table(("statement", *(bar.name for bar in bars)), tuple(rows)),
            f"{suffix} per transaction",
            keys(colours),
            wide=True,
        )
    ]


def _labels(texts: Sequence[str]) -> dict[str, str]:
    """Maps the text of each statement to a short, unique name."""
    labels: dict[str, str] = {}
    for text in texts:
        short = cut(text, _NAME)
        labels[text] = short if short not in labels.values() else f"{short} ({len(labels) + 1})"
    return labels


def statement_tables(study: Study) -> Iterator[tuple[str, Table]]:
    head = (
        *("statement", "% of time", "calls", "mean", "% I/O", "rows", "rows examined", "read"),
        *("temp files", "temp tables", "WAL"),
    )
    for one in study.details.inside:
        rows = tuple(_statement(one, statement) for statement in one.statements[:_SHOWN])
        if rows:
            yield f"{_label(study, one.name)} (rows and bytes per call)", _without_empty(head, rows)


def _statement(use: ServerUse, one: ServerStatement) -> Row:
    def each(amount: float | None, unit: str) -> TableCell | Missing:
        return TableCell(amount / one.calls, unit) if amount else EMPTY

    return (
        cut(one.text, _WIDTH),
        TableCell(one.time_s / use.statements_s, "share") if use.statements_s else EMPTY,
        TableCell(use.counted.per_second(one.calls), "1/s"),
        TableCell(one.time_s / one.calls, "s"),
        EMPTY if one.io_s is None or not one.time_s else TableCell(one.io_s / one.time_s, "share"),
        TableCell(one.rows / one.calls),
        each(one.examined, "1"),
        each(one.read_bytes, "bytes"),
        each(one.temp_bytes, "bytes"),
        each(one.temp_tables, "1"),
        each(one.log_bytes, "bytes"),
    )


def _without_empty(head: Sequence[str], rows: Sequence[Row]) -> Table:
    """Returns the table without its empty columns. Most servers do not count everything, so some columns have no
    values."""
    kept = [at for at, _ in enumerate(head) if any(row[at] != EMPTY for row in rows)]
    return Table(tuple(head[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in rows))


def side_by_side(study: Study) -> Iterator[tuple[str, Table]]:
    """Yields a table with the mean time of each statement. Each system or configuration has a column with the mean
    times. Every one except the first also has a column with the ratio to the first. Yields nothing if there are too
    many systems or configurations to show side by side."""
    known = [one for one in study.details.inside if one.statements]
    if not 1 < len(known) <= _SIDE_BY_SIDE:
        return
    means = [{own.text: own.time_s / own.calls for own in one.statements} for one in known]
    dearest = sorted(
        {text for one in means for text in one},
        key=lambda text: -max(own.time_s for one in known for own in one.statements if own.text == text),
    )
    rows = []
    for text in dearest[:_SHOWN]:
        first, rest = means[0].get(text), means[1:]
        cells: list[Content] = [ABSENT if first is None else TableCell(first, "s")]
        for one in rest:
            mean = one.get(text)
            ratio = TableCell(mean / first, "times") if mean is not None and first else ABSENT
            cells += [ABSENT if mean is None else TableCell(mean, "s"), ratio]
        rows.append((cut(text, _WIDTH), *cells))
    if rows:
        name = f"Mean time per call, and ratio to {_label(study, known[0].name)} (without verdict)"
        more = (head for one in known[1:] for head in (_label(study, one.name), "ratio"))
        yield name, Table(("statement", _label(study, known[0].name), *more), tuple(rows))


def plan_tables(study: Study) -> Iterator[tuple[str, Table]]:
    rows = tuple(
        (
            cut(one.plan.statement, _WIDTH),
            _label(study, one.name),
            f"{wording.text(one.words)} (compared with {_label(study, one.baseline_name)})",
        )
        for one in study.details.other_plans
    )
    if rows:
        yield "Plans that differ", Table(("command", "where", "difference"), rows, words=True)


def plan_sentences(study: Study) -> Iterator[str]:
    known = [one for one in study.details.inside if any(plan.steps for plan in one.plans)]
    if len(known) > 1 and not study.details.other_plans:
        yield "All plans have the same steps."
    for one in known:
        if one.varied:
            of = counted(one.trials, "trial")
            yield f"{_label(study, one.name)}: at least one plan was different in {one.varied} of {of}."


def executed(study: Study) -> Iterator[tuple[str, Table]]:
    """Yields a table of the plans that the server executed and wrote to its log."""
    rows = []
    for one in study.details.inside:
        asked = {(plan.script, plan.number): plan for plan in one.plans}
        for own in one.executed:
            before = asked.get((own.script, own.number))
            same = before is None or Counter(before.steps) == Counter(own.steps)
            words = "same as before the trials"
            if before is not None and not same:
                words = wording.text(difference(Counter(own.steps), Counter(before.steps)))
            figures = (count(own.count), TableCell(own.slowest_s, "s"))
            rows.append((cut(own.statement, _WIDTH), _label(study, one.name), *figures, words))
    if rows:
        head = ("command", "where", "logged plans", "slowest", "plan of the slowest execution")
        yield "Executed plans (auto_explain)", Table(head, tuple(rows), words=True)


def unplanned(study: Study) -> Iterator[tuple[str, Table]]:
    rows = (
        (_label(study, one.name), (cut(plan.statement, _WIDTH), plan.failed))
        for one in study.details.inside
        for plan in one.plans
        if plan.failed
    )
    refused = tuple((*value, names) for value, names in by_value(rows))
    if refused:
        yield "Commands without a plan", Table(("command", "reason", "where"), refused, words=True)


def plan_texts(study: Study) -> Iterator[tuple[str, str]]:
    """Yields pairs of a title and the text of plans: all plans of the first system, and the slowest executed plans of
    each system. For the other systems, also yields the plans that differ from the first system's."""
    known = [one for one in study.details.inside if any(plan.text for plan in one.plans)]
    if not known:
        return
    yield f"Plans, {_label(study, known[0].name)}", "\n\n".join(_plan(plan) for plan in known[0].plans if plan.text)
    for one in known:
        if slowest := [f"-- {own.script}, command {own.number}: {own.statement}\n{own.text}" for own in one.executed]:
            yield f"Slowest executed plans, {_label(study, one.name)}", "\n\n".join(slowest)
    for one in known[1:]:
        own = [_plan(other.plan) for other in study.details.other_plans if other.name == one.name]
        if own:
            yield f"Plans that differ, {_label(study, one.name)}", "\n\n".join(own)


def _plan(plan: StatementPlan) -> str:
    for_any = ", generic plan" if plan.generic else ""
    return f"-- {plan.script}, command {plan.number}{for_any}: {plan.statement}\n{plan.text}"


def use_tables(study: Study) -> Iterator[tuple[str, Table]]:
    time = "time per transaction"
    head = (
        "table",
        time,
        "sequential scans",
        "rows read by table scans",
        "index scans",
        "rows read through indexes",
        "changed rows",
    )
    more = ("HOT updates", "cache hits", "dead tuples before", "dead tuples after", "size", "growth", "vacuums")
    of_index = ("index", "table", time, "scans", "rows", "cache hits", "read")
    for one in study.details.inside:
        if tables := [_table(one, own) for own in one.tables[:_SHOWN]]:
            yield f"Tables, {_label(study, one.name)}", _without_empty((*head, *more), tables)
        if indexes := [_index(one, own) for own in one.indexes[:_SHOWN]]:
            yield f"Indexes, {_label(study, one.name)}", _without_empty(of_index, indexes)
        if one.vacuums:
            rows = tuple((own.table, TableCell(own.share, "share"), ", ".join(own.phases)) for own in one.vacuums)
            yield (
                f"Vacuum activity, {_label(study, one.name)}",
                Table(("table", "% of time", "phases"), rows, words=True),
            )


def _table(use: ServerUse, one: Used) -> Row:
    changed = one.inserted + one.updated + one.deleted
    grown = 0.0 if one.bytes is None or one.bytes_before is None else one.bytes - one.bytes_before
    dead: Row = (EMPTY, EMPTY)
    if one.dead_before is not None and one.dead_rows is not None:
        dead = (count(one.dead_before), count(one.dead_rows))
    return (
        one.name,
        _time(use, one.time_s),
        _rate(use, one.scans),
        _rate(use, one.scanned_rows),
        _rate(use, one.index_scans),
        _rate(use, one.index_rows),
        _rate(use, changed),
        TableCell(one.hot_updated / one.updated, "share") if one.updated and one.hot_updated is not None else EMPTY,
        _hits(one.hit_bytes, one.read_bytes),
        *dead,
        EMPTY if one.bytes is None else TableCell(one.bytes, "bytes"),
        TableCell(grown, "bytes", signed=True) if grown > 0 else EMPTY,
        count(one.vacuums) if one.vacuums else EMPTY,
    )


def _index(use: ServerUse, one: IndexUse) -> Row:
    read = TableCell(use.used.per_second(one.read_bytes), "bytes/s") if one.read_bytes else EMPTY
    hits = _hits(one.hit_bytes, one.read_bytes)
    return (
        *(one.name, one.table, _time(use, one.time_s)),
        *(_rate(use, one.scans), _rate(use, one.rows), hits, read),
    )


def _time(use: ServerUse, time_s: float | None) -> TableCell | Missing:
    """Returns the cell with the server time per transaction."""
    return EMPTY if time_s is None else TableCell(use.used.per_transaction(time_s), "s")


def _rate(use: ServerUse, amount: float) -> TableCell | Missing:
    return TableCell(use.used.per_second(amount), "1/s") if amount else EMPTY


def _hits(hit: float, read: float) -> TableCell | Missing:
    return TableCell(hit / (hit + read), "share") if hit + read else EMPTY


def missing(study: Study) -> Table:
    reasons = (
        (_label(study, one.name), (own.what, own.why, own.remedy))
        for one in study.details.inside
        for own in one.missing
    )
    rows = [(*value, names) for value, names in by_value(reasons)]
    if all(names == EVERYWHERE for *_, names in rows):
        return Table(("missing", "reason", "how to enable it"), tuple(row[:3] for row in rows), words=True)
    return Table(("missing", "reason", "how to enable it", "where"), tuple(rows), words=True)


def _with_names(texts: Iterator[tuple[str, str]]) -> Iterator[str]:
    for text, names in by_value(texts):
        yield text[0].upper() + text[1:] + ("." if names == EVERYWHERE else f" ({names}).")
