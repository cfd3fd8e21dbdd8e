"""Script by script, and where they were timed statement by statement: what each part of a mix gave; their texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ironbench.analyse.study import Study
from ironbench.catalogue import part_of
from ironbench.model.record import Record, Statement
from ironbench.report.charts.base import Table
from ironbench.report.numbers import NOT_KNOWN, measured, quantity
from ironbench.report.section import Section

PLACE = 1300
_BY_SCRIPT = (
    *(("throughput", "1/s"), ("response_time_mean_s", "s"), ("response_time_p50_s", "s")),
    ("response_time_p99_s", "s"),
)
_LEAD = "From sending a command to its answer; the time between commands is not in it."


def sections(study: Study) -> Iterator[Section]:
    by_statement = f"Statement by statement, {study.place}"
    yield Section("scripts", f"Script by script, {study.place}", tables=tuple(scripts(study)), at_end=True)
    yield Section("statements", by_statement, _LEAD, tables=tuple(statements(study)), at_end=True)


def scripts(study: Study) -> list[tuple[str, Table]]:
    """A table per system with what each script of its mix gave."""
    found = []
    for part in study.parts:
        metrics = part.curve.main.metrics if part.curve.main else {}
        names = dict.fromkeys(part_of(name) for name in metrics if part_of(name).startswith("script="))
        rows = []
        for script in names:
            cells = [measured(metrics.get(f"{metric}{{{script}}}"), unit) for metric, unit in _BY_SCRIPT]
            failed = _failed(script, part.curve.main.trials if part.curve.main else ())
            rows.append((script.removeprefix("script="), cells[0], failed, *cells[1:]))
        if len(rows) > 1:
            head = ("script", "throughput", "failed", "mean", "median", "99th percentile")
            found.append((part.name, Table(head, tuple(rows))))
    return found


def _failed(script: str, trials: Sequence[Record]) -> str:
    """Failed transactions of a script. A record that counts them names only scripts with some."""
    of_parts = [name for trial in trials for name in trial.metrics if name.startswith("failed{")]
    if not of_parts and any(trial.metrics.get("failed", 1) for trial in trials):
        return NOT_KNOWN
    return f"{sum(trial.metrics.get(f'failed{{{script}}}', 0.0) for trial in trials):,.0f}"


def statements(study: Study) -> list[tuple[str, Table]]:
    """A table per system with the time of every SQL command, all trials of its main point together."""
    found = []
    for part in study.parts:
        alike: dict[tuple[str, int, int], list[Statement]] = {}
        for trial in part.curve.main.trials if part.curve.main else ():
            for one in trial.statements:
                alike.setdefault((one.script, one.line, one.command), []).append(one)
        rows = []
        for (script, line, _), group in alike.items():
            count = sum(one.count for one in group)
            mean_s = sum(one.count * one.mean_s for one in group) / count
            squares = sum(one.count * (one.stdev_s**2 + (one.mean_s - mean_s) ** 2) for one in group)
            times_s = (quantity(mean_s, "s"), quantity(math.sqrt(squares / count), "s"))
            failed = sum(one.failed for one in group)
            rows.append((f"{script}:{line}  {group[0].text}", *times_s, f"{count:,}", f"{failed:,}"))
        if rows:
            head = ("statement", "mean", "standard deviation", "answers", "failed")
            found.append((part.name, Table(head, tuple(rows))))
    return found
