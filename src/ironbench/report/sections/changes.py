"""What changed between two replays of a capture. The statements that contribute most to the difference come first."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report import wording
from ironbench.report.breakdown import OBSERVED
from ironbench.report.cell import ABSENT, Row, TableCell
from ironbench.report.charts.base import Table
from ironbench.report.finding_tables import ratio_bounds
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.report.wording.values import CI
from ironbench.study.changes import StatementChange, StatementChanges, changes
from ironbench.study.study import Study
from ironbench.words import cut
from ironbench.workloads.capture.fidelity import DIVERGENCE, MIX

PLACE = 645
_WIDTH = 80
_LEAD = (
    "The time of a statement is the time that it adds to a transaction: its executions per transaction times its "
    "mean response time. The share is the absolute change of the statement divided by the sum of the absolute "
    "changes of all statements. The last columns compare mean response times. These ratios carry no verdict: with "
    "many ratios, some confidence intervals exclude 1 by chance."
)


def sections(study: Study) -> Iterator[Section]:
    if not _is_replay(study):
        return
    tables = tuple(
        (f"From {_name(study, one.before)} to {_name(study, one.after)}", _table(one)) for one in changes(study)
    )
    lead = f"{_LEAD} {OBSERVED}" if study.details.observed else _LEAD
    yield Section("changes", "What changed, by statement", lead, tables=tables)


def _is_replay(study: Study) -> bool:
    metric = f"{DIVERGENCE}{{of={MIX}}}"
    return any(metric in one.metrics for one in study.main)


def _name(study: Study, name: str) -> str:
    return label(study.configuration(name))


def _table(found: StatementChanges) -> Table:
    head = ("statement", "time before", "time after", "change", "% of changes", "ratio of means", CI, "plan")
    return Table(head, tuple(map(_row, found.statements)), ranks=(0, 1, 1, 0, 0, 2, 3, 2))


def _row(one: StatementChange) -> Row:
    ratio = one.ratio
    return (
        cut(one.command.text, _WIDTH),
        TableCell(one.before_s, "s"),
        TableCell(one.after_s, "s"),
        TableCell(one.delta_s, "s", signed=True),
        TableCell(one.share, "share"),
        ABSENT if ratio is None else TableCell(ratio.ratio, "times"),
        ABSENT if ratio is None else ratio_bounds(ratio.low, ratio.high, ratio.known),
        "" if one.plan is None else wording.text(one.plan),
    )
