"""Formats one or several trials for the terminal. Status and warnings come before the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironbench.catalogue import base_name, better, metrics
from ironbench.model.purpose import Purpose
from ironbench.model.record import Check, Record
from ironbench.model.sample import IN_TABLES, late, sampled, too_few
from ironbench.records.work import work_name
from ironbench.report import text_layout, wording
from ironbench.report.cell import ABSENT, Missing, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.derived import sentences
from ironbench.report.facts import configuration
from ironbench.report.numbers import moment, quantity, unit_of
from ironbench.report.page import CAVEATS
from ironbench.report.text_layout import Column, fitted
from ironbench.study.comparability import left_out, trial_warnings
from ironbench.study.differences import chosen_settings, facts_of, flattened, load_facts
from ironbench.study.subjects import counted_in
from ironbench.words import counted

_ARROWS = {"higher": " ↑", "lower": " ↓"}
NOT_KEPT = (
    "Response times at a rate that was not sustained are left out, because they depend on the duration of the trial."
)
_MAIN = ("throughput", "response_time_mean_s", "response_time_p50_s", "response_time_p99_s", "failed")


def several(records: Sequence[Record], width: int | None) -> str:
    """Formats a table with a row for each trial. Caveats and a hint on commands that show more are also included.
    `width`: width of the terminal in characters."""
    first = records[0]
    blocks = [f"{text_layout.clean(first.system.label)}: {text_layout.clean(work_name(first.choice))}"]
    blocks += list(sentences(records).values())
    blocks.append(text_layout.bullets(CAVEATS, wording.texts((*left_out(records), *trial_warnings(records)))))
    names = [name for name in _MAIN if any(name in record.metrics for record in records)]
    columns = [
        Column("record", tuple(record.id for record in records)),
        Column("configuration", tuple(record.cell.name for record in records), rank=3),
        Column("purpose", tuple(record.purpose for record in records), rank=9),
        Column("status", tuple(record.status.word for record in records), rank=1),
    ]
    for place, name in enumerate(names):
        cells = tuple(ABSENT if late(record, name) else _value(record, name) for record in records)
        columns.append(Column(name, cells, right=True, rank=2 if name == "throughput" else 4 + place))
    text, out = fitted(columns, width)
    blocks.append(text)
    if out:
        blocks.append(f"Columns left out because the terminal is too narrow: {', '.join(out)}.")
    blocks.append(" ".join(wording.sentences(too_few(records, counted_in(records)[1], IN_TABLES))))
    blocks.append(NOT_KEPT if any(late(record, name) for record in records for name in names) else "")
    blocks.append("`ironbench show RECORD` shows a trial in full; `ironbench report` shows all trials.")
    return "\n\n".join(block for block in blocks if block)


def one(record: Record, machine: Mapping[str, str], engine: Mapping[str, Any], everything: bool = False) -> str:
    """Formats a single trial. `machine`: the facts about its machine that `machine_facts` returns. `engine`: the facts
    about its engine. `everything`: whether to include settings with default values."""
    head = [
        record.id,
        f"{record.system.label}: {work_name(record.choice)}, {record.cell.name}",
        f"{_place(record)}, {moment(record.started_at)}, {quantity(record.elapsed_s, 's')} measured",
        f"status: {record.status.word}" + (f", {why}" if (why := wording.cause(record)) else ""),
    ]
    warnings = [f"{wording.text(one)} [{one.code}]" for one in record.warnings]
    known = flattened("engine", engine)
    settings, rest = (known, 0) if everything else chosen_settings(known)
    facts = {
        **facts_of(record),
        **flattened("load", load_facts(record.cell.load)),
        **settings,
        **machine,
    }
    # `arrivals` has an effect only in an open loop, and `think_time_s` only in a closed loop. The other one is left
    # out.
    facts.pop("load.arrivals" if record.cell.load.rate is None else "load.think_time_s", None)
    blocks = [
        "\n".join(map(text_layout.clean, head)),
        *sentences([record]).values(),
        text_layout.bullets(CAVEATS, warnings),
        text_layout.bullets("Checks", [_check(check) for check in record.checks]),
        _metrics(record),
        " ".join(wording.sentences(too_few([record], counted_in([record])[1]))),
        _facts("Before the trial", wording.conditions(record)),
        *(f"{name}\n{text_layout.facts(table)}" for name, table in configuration(facts)),
    ]
    if rest:
        hidden = f"{counted(rest, 'setting')} with default values not shown"
        blocks.append(f"{hidden}; `ironbench show {record.id} --all` shows all settings")
    return "\n\n".join(block for block in blocks if block)


def _place(record: Record) -> str:
    """Describes a trial, for example as `lab trial of block 2` or `confirmation trial 1`. A trial of a sweep is called
    `trial 1` without the word sweep, because a sweep may have only one configuration."""
    if record.purpose == Purpose.LAB:
        return f"lab trial of block {record.block + 1}"
    return f"{'trial' if record.purpose == Purpose.SWEEP else f'{record.purpose} trial'} {record.block + 1}"


def _metrics(record: Record) -> str:
    """Formats metrics in the order of the metric reference. A metric of a part, such as `name{part}`, follows the
    metric `name`."""
    order = {name: place for place, name in enumerate(metrics())}
    names = sorted(record.metrics, key=lambda name: (order.get(base_name(name), len(order)), name))
    rows = tuple((name + _ARROWS.get(better(name), ""), _value(record, name)) for name in names)
    return f"Metrics (↑ higher is better, ↓ lower is better)\n{text_layout.facts(Table((), rows))}" if rows else ""


def _value(record: Record, name: str) -> TableCell | Missing:
    value = record.metrics.get(name)
    if value is None or not sampled(record, name):
        return ABSENT
    unit = unit_of(name)
    return count(value) if unit == "1" and float(value).is_integer() else TableCell(value, unit)


def _check(check: Check) -> str:
    outcome = "passed" if check.passed else "FAILED"
    return f"{outcome}: {check.name} (expected {check.expected}, found {check.actual})"


def _facts(title: str, facts: Mapping[str, str]) -> str:
    rows = tuple((name, value) for name, value in facts.items())
    return f"{title}\n{text_layout.facts(Table((), rows))}" if rows else ""
