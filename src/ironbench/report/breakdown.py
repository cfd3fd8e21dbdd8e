"""The breakdown of the difference between two systems, level by level. Every comparison has this section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ironbench.catalogue import base_name, part_of
from ironbench.model.profile import ENGINE
from ironbench.report import wording
from ironbench.report.cell import CONFIDENCE, EMPTY, Missing, Row, TableCell
from ironbench.report.charts import waterfall
from ironbench.report.charts.base import Table
from ironbench.report.facts import fact_name, values
from ironbench.report.finding_tables import NO_INTERVAL, ratio_bounds
from ironbench.report.numbers import confidence, unit_of
from ironbench.report.page import Section, with_rows
from ironbench.report.waits import wait_class
from ironbench.report.wording.answers.ratios import change_bounds, metric_words
from ironbench.report.wording.profile import area_name, function_name, part_rest
from ironbench.report.wording.values import CI
from ironbench.study.differences import most_relevant
from ironbench.study.explain import Explanation, Measure, ScriptShare
from ironbench.study.profiled import REST
from ironbench.study.wait_parts import EVENT, FUNCTION
from ironbench.words import counted, cut

ID, TITLE = "explain", "Breakdown of the difference"
FEW = 3
"""Maximum number of rows in the breakdown for each kind of row, such as scripts, commands or plans. The sections below
the breakdown contain all of them."""
_FACTS = 6
WIDTH = 60
"""Statements are cut to this number of characters."""
_LEAST = 0.02
"""A wait class gets a separate row if it changed by at least this fraction of the transaction time."""
LEAD = (
    f"Each level of the breakdown is part of the level above it. The confidence intervals are at "
    f"{confidence(CONFIDENCE)} and carry no verdict: with many intervals, some exclude zero difference by chance."
)
OBSERVED = (
    "Slices do not measure waits, I/O, plans and statement times. These values come from one observed trial of "
    "each configuration after the blocks, and no verdict uses them."
)
CONTRADICTED = (
    "In at least one comparison, the observed trials show another difference in throughput than the blocks, so their "
    "values do not explain the difference that the blocks show."
)
WITH_PROFILE = (
    "Wait classes and wait events come from samples of the server's wait events and from the kernel's CPU counters. "
    "Functions below a wait class come from the profile. If the profile contains more time than the wait class, the "
    "times of the functions are reduced in proportion."
)
_HEAD = ("level", "", "before", "after", "change", CI)


def section(one: Explanation, id: str = ID, title: str = TITLE, *, chart: bool = True) -> Section:
    """Returns the section with the breakdown. If `chart` is true, the section also contains the waterfall chart. The
    section is empty if nothing more detailed than the response time was measured."""
    if not one.goes_down:
        return Section(id, title)
    charts = (waterfall.chart(one.waterfall, f"{id}-waterfall"),) if chart and one.waterfall else ()
    return Section(id, title, lead(one), charts, with_rows(breakdown_table(one)))


def lead(*several: Explanation) -> str:
    """Explains how to read the breakdown. Also names the sources of its more detailed levels, if some come from
    observed trials or from a profile."""
    parts = [LEAD]
    parts += [OBSERVED] if any(one.observed for one in several) else []
    parts += [WITH_PROFILE] if any(part.kind == FUNCTION for one in several for part in one.wait_parts) else []
    parts += [CONTRADICTED] if any(one.contradicted for one in several) else []
    return " ".join(parts)


def breakdown_table(one: Explanation) -> Table:
    """Returns the breakdown as a table, from throughput down to single functions, plans and settings."""
    return Table(_HEAD, tuple(_rows(one)), words=True)


def _rows(one: Explanation) -> Iterator[Row]:
    for level, known in (("throughput", one.throughput), ("response time", one.response)):
        yield from ((level, *_changed(measure)) for measure in known)
    for script in one.scripts[:FEW]:
        parts = (TableCell(script.part_before_s, "s"), TableCell(script.part_after_s, "s"))
        yield ("script", f"{script.name}, contribution to the mean response time", *parts, *_change(script))
    if others := one.scripts[FEW:]:
        of_a, of_b = sum(s.part_before_s for s in others), sum(s.part_after_s for s in others)
        name = f"{counted(len(others), 'other script')}, contribution to the mean response time"
        yield ("script", name, TableCell(of_a, "s"), TableCell(of_b, "s"), _delta_cell(of_b - of_a), EMPTY)
    for command, found in one.statements[:FEW]:
        yield (
            "command",
            cut(command.text, WIDTH),
            EMPTY if command.first_s is None else TableCell(command.first_s, "s"),
            TableCell(command.mean_s, "s"),
            TableCell(found.ratio - 1, "change"),
            _change_bounds(found.low, found.high, found.known),
        )
    for query in one.queries[:FEW]:
        yield (
            "query",
            query.query,
            EMPTY,
            EMPTY,
            TableCell(query.ratio - 1, "change"),
            _change_bounds(query.low, query.high),
        )
    if one.waterfall:
        whole = (TableCell(one.waterfall.before_s, "s"), TableCell(one.waterfall.after_s, "s"))
        delta = one.waterfall.after_s - one.waterfall.before_s
        interval = Missing(NO_INTERVAL) if one.observed else _interval(one.waterfall.low_s, one.waterfall.high_s)
        yield ("transaction time", "total", *whole, _delta_cell(delta), interval)
        least = _LEAST * max(one.waterfall.before_s, one.waterfall.after_s)
        others_s = delta
        for step in sorted(one.waterfall.steps, key=lambda step: -abs(step.delta_s)):
            if abs(step.delta_s) >= least:
                interval = Missing(NO_INTERVAL) if one.observed else _interval(step.low_s, step.high_s)
                yield ("wait class", wait_class(step.part), EMPTY, EMPTY, _delta_cell(step.delta_s), interval)
                yield from _wait_parts(one, step.part, least)
                others_s -= step.delta_s
        if any(abs(step.delta_s) < least for step in one.waterfall.steps):
            yield ("wait class", "all others", EMPTY, EMPTY, _delta_cell(others_s), EMPTY)
    for measure in [measure for measure in one.io if measure.clear][:FEW]:
        yield ("I/O", *_changed(measure))
    # The functions of the engine are listed below their wait classes.
    divided = any(part.kind == FUNCTION for part in one.wait_parts)
    frames = [frame for frame in (one.profile.frames if one.profile else ())[:FEW] if frame.called]
    for frame in (frame for frame in frames if not (divided and frame.area.startswith(ENGINE))):
        times = (TableCell(frame.before_s, "s"), TableCell(frame.after_s, "s"))
        name = f"{function_name(frame)} ({area_name(frame.area)})"
        yield ("function", name, *times, _delta_cell(frame.delta_s), _interval(frame.low_s, frame.high_s))
    for plan in one.plans[:FEW]:
        yield ("plan", cut(plan.plan.statement, WIDTH), "", "", wording.text(plan.words), "")
    main, rest = most_relevant(one.differences)
    for row in main[:_FACTS]:
        before, after = values(row)
        yield ("configuration", f"{row.group}: {fact_name(row.name)}", before, after, "", "")
    if (more := len(main) + len(rest) - len(main[:_FACTS])) > 0:
        yield ("configuration", f"and {counted(more, 'other fact')}", "", "", "", "")


def _wait_parts(one: Explanation, of: str, least: float) -> Iterator[Row]:
    """Returns the wait events and functions of a wait class. Parts that changed by less than `least` seconds are added
    to the rest."""
    for kind, level in ((EVENT, "wait event"), (FUNCTION, "function")):
        parts = [part for part in one.wait_parts if (part.wait_class, part.kind) == (of, kind)]
        listed = [part for part in parts if part.name != REST and abs(part.delta_s) >= least]
        for part in listed:
            interval = Missing(NO_INTERVAL) if one.observed else _interval(part.low_s, part.high_s)
            times = (TableCell(part.before_s, "s"), TableCell(part.after_s, "s"))
            yield (level, f"{wait_class(of)}: {part.name}", *times, _delta_cell(part.delta_s), interval)
        rest_s = sum(part.delta_s for part in parts if part not in listed)
        if listed and abs(rest_s) >= least:
            name = f"{wait_class(of)}: {part_rest(kind)}"
            yield (level, name, EMPTY, EMPTY, _delta_cell(rest_s), EMPTY)


def measure_table(found: Sequence[Measure]) -> Table:
    return Table(("metric", "before", "after", "ratio", CI), tuple(map(_measured, found)))


def scripts(one: Explanation) -> Table:
    head = (
        "script",
        "mean before",
        "mean after",
        "contribution before",
        "contribution after",
        "change in contribution",
        CI,
    )
    rows = (
        tuple(TableCell(value, "s") for value in (s.before_s, s.after_s, s.part_before_s, s.part_after_s))
        for s in one.scripts
    )
    return Table(head, tuple((s.name, *row, *_change(s)) for s, row in zip(one.scripts, rows, strict=True)))


def _changed(measure: Measure) -> Row:
    """Returns the cells of a measured value, with the ratio as a change in percent."""
    name, before, after, *_ = _measured(measure)
    change = TableCell(measure.ratio - 1, "change")
    return (name, before, after, change, _change_bounds(measure.low, measure.high, measure.known))


def _change_bounds(low: float, high: float, known: bool = True) -> TableCell | Missing:
    """Returns the 95% confidence interval of a ratio as changes in percent."""
    return TableCell(None, "change", low - 1, high - 1, CONFIDENCE) if known else Missing(NO_INTERVAL)


_PER_TRANSACTION = {"1/s": "1", "bytes/s": "bytes"}
"""Maps the unit of a rate to the unit of the same quantity per transaction."""


def _measured(measure: Measure) -> Row:
    unit = unit_of(measure.metric)
    unit = _PER_TRANSACTION.get(unit, unit) if measure.per_transaction else unit
    values = (TableCell(measure.before, unit), TableCell(measure.after, unit))
    known = ratio_bounds(measure.low, measure.high, measure.known)
    return (measure_name(measure), *values, TableCell(measure.ratio, "ratio"), known)


def measure_name(measure: Measure) -> str:
    if not measure.per_transaction:
        return metric_words(measure.metric)
    part = part_of(measure.metric).partition("=")[2]
    words = base_name(measure.metric).removesuffix("_per_s").replace("_", " ")
    whose = " (of the whole device, all programs)" if measure.whole_device else ""
    return f"{words} per transaction" + (f", {part}" if part else "") + whose


def _change(one: ScriptShare) -> tuple[TableCell, TableCell | Missing]:
    return _delta_cell(one.delta_s), _interval(one.low_s, one.high_s)


def _delta_cell(delta_s: float) -> TableCell:
    return TableCell(delta_s, "s", signed=True)


def _interval(low_s: float, high_s: float) -> TableCell | Missing:
    return TableCell(None, "s", low_s, high_s, CONFIDENCE) if math.isfinite(low_s) else Missing(NO_INTERVAL)


def within(measure: Measure) -> str:
    return (
        f" ({CI} {change_bounds(measure.low, measure.high, measure.ratio)})"
        if measure.known
        else " (no confidence interval: too few trials)"
    )
