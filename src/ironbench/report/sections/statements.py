"""Response times of each statement, as measured by the clients, and their ratios to the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.report import wording
from ironbench.report.breakdown import OBSERVED
from ironbench.report.cell import ABSENT, Missing, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.finding_tables import ratio_bounds
from ironbench.report.numbers import percent_change
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.report.wording.values import CI
from ironbench.study.queries import QueryRatio
from ironbench.study.statements import StatementTimings, TimedCommand, sure
from ironbench.study.study import Study
from ironbench.words import cut, listed

PLACE = 1250
_WIDTH = 80
"""Tables cut statements to this number of characters."""
_SIDE_BY_SIDE = 4
"""Maximum number of configurations for a table with a column for each configuration."""
_NAMED = 3
"""Maximum number of commands named in a sentence. The table contains all commands."""
_HEADS = {"p50_s": "median", "p95_s": "95th percentile", "p99_s": "99th percentile"}
_LEAD = (
    "The response time of a statement is the time from sending the statement to receiving its result, without "
    "the time between statements. Percentiles are computed from all trials together."
)
_NO_VERDICT = f"Each ratio has its own {CI} and carries no verdict: among many ratios, some CIs exclude 1 by chance."


def sections(study: Study) -> Iterator[Section]:
    title = f"Response time by statement, {wording.text(study.place)}" if study.parts else "Response time by statement"
    tables = (
        *side_by_side(study),
        *((label(study.configuration(one.name)), _table(one)) for one in study.details.timed),
    )
    by_slices = any(record.statements for cell in study.cells for record in cell.usable)
    lead = f"{_LEAD} {OBSERVED}" if study.details.observed and not by_slices else _LEAD
    yield Section("statements", title, lead, tables=tables, sentences=tuple(sentences(study)), printed_at_end=True)


def sentences(study: Study) -> Iterator[str]:
    if not study.details.timed:
        return
    names = [one.name for one in study.details.timed]
    every = [part.name for part in study.parts] or [cell.name for cell in study.cells if cell.usable]
    if untimed := [name for name in every if name not in names]:
        where = listed([label(study.configuration(name)) for name in untimed])
        yield f"The statements of {where} were not timed, because report_per_statement is off."
    apart = list(sure(study.details.timed))
    for name in dict.fromkeys(name for name, _, _ in apart):
        own = [f"{_title(one, 60)} {_ratio(ratio)}" for other, one, ratio in apart if other == name]
        more = f"; and {len(own) - _NAMED} more" if len(own) > _NAMED else ""
        sides = " relative to ".join(label(study.configuration(one)) for one in (name, names[0]))
        yield f"Response times of {sides}: {'; '.join(own[:_NAMED])}{more}."
    if any(one is not None and one.ratio is not None for subject in study.details.timed for one in subject.statements):
        yield _NO_VERDICT


def side_by_side(study: Study) -> Iterator[tuple[str, Table]]:
    """Yields a table with the mean time of each command in each system, and the ratio to the first system. If 99th
    percentiles are known, also yields a table of them. Yields nothing if there are too many systems to show side by
    side."""
    subjects = study.details.timed
    if not 1 < len(subjects) <= _SIDE_BY_SIDE:
        return
    rows = []
    for own in zip(*(one.statements for one in subjects), strict=True):
        first, *others = own
        figures = (cell for one in others for cell in (_mean(one), *_ratio_cells(one)))
        rows.append((_titles(own), _mean(first), *figures))
    names = [label(study.configuration(one.name)) for one in subjects]
    more = (head for name in names[1:] for head in (name, "ratio", CI))
    yield "Mean response time", Table(("statement", names[0], *more), tuple(rows))
    slow = [
        (
            _titles(own),
            *(ABSENT if one is None else _percentile(one, "p99_s") for one in own),
        )
        for own in zip(*(one.statements for one in subjects), strict=True)
        if any(one is not None and "p99_s" in one.percentiles for one in own)
    ]
    if slow:
        yield "99th-percentile response time", Table(("statement", *names), tuple(slow))


def _percentile(one: TimedCommand, name: str) -> TableCell | Missing:
    return TableCell(one.percentiles[name], "s") if name in one.percentiles else ABSENT


def _mean(one: TimedCommand | None) -> TableCell | Missing:
    return ABSENT if one is None else TableCell(one.mean_s, "s")


def _ratio_cells(one: TimedCommand | None) -> tuple[TableCell | Missing, TableCell | Missing]:
    """Returns a cell with the ratio to the baseline, and a cell with the ratio's confidence interval."""
    if one is None or one.ratio is None:
        return ABSENT, ABSENT
    return TableCell(one.ratio.ratio, "times"), ratio_bounds(one.ratio.low, one.ratio.high, one.ratio.known)


def _ratio(one: QueryRatio) -> str:
    change = percent_change(one.ratio)
    return f"{change} ({CI} {percent_change(one.low)} to {percent_change(one.high)})" if one.known else change


def _table(subject: StatementTimings) -> Table:
    compared = any(one is not None and one.ratio is not None for one in subject.statements)
    shown = [name for name in _HEADS if any(one is not None and name in one.percentiles for one in subject.statements)]
    rows = []
    for one in subject.statements:
        if one is not None:
            times = (
                TableCell(one.mean_s, "s"),
                TableCell(one.stdev_s, "s"),
                *(_percentile(one, name) for name in shown),
            )
            ratio = _ratio_cells(one) if compared else ()
            rows.append((_title(one), *times, *ratio, count(one.count), count(one.failed)))
    percentiles = (_HEADS[name] for name in shown)
    ratio_head = ("ratio", CI) if compared else ()
    head = ("statement", "mean", "standard deviation", *percentiles, *ratio_head, "calls", "failed")
    return Table(head, tuple(rows))


def _titles(own: Sequence[TimedCommand | None]) -> str:
    """Returns the text of a command. If the systems run different commands at this position of the script, returns all
    their texts."""
    by_text: dict[str, TimedCommand] = {}
    for one in own:
        if one is not None:
            by_text.setdefault(one.text, one)
    return " → ".join(_title(one, _WIDTH // len(by_text)) for one in by_text.values())


def _title(one: TimedCommand, most: int = _WIDTH) -> str:
    return cut(f"{one.script}:{one.line}  {one.text}", most)
