"""The user's own commands. The section shows how often each command ran, how long it took, and which commands
failed."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ironbench.model.commands import CONTROL, CommandRun, manual_step_text
from ironbench.report.cell import Row, TableCell, count
from ironbench.report.charts.base import Depth, Table
from ironbench.report.page import Section
from ironbench.study.study import Study

PLACE = 2450
_HEAD = ("scope", "when", "command", "runs", "failed", "median time", "longest")
_LEAD = (
    "ironbench runs these commands, which the lab file or the options contain, before and after trials. The file "
    "commands.log in the record of each trial contains the output of the commands. The file commands.jsonl in "
    "the lab's directory lists all commands, including the final cleanup."
)
BY_US = (
    "ironbench sends the commands named `control` over SSH to the server's machine, as `--control ssh` allows. "
    "The server's machine reverts every change when the trial or the connection ends."
)
BY_HAND = (
    "If a person makes a change by hand, all trials of a block that need the change run one after another, and "
    "the person makes the change again in each block. The ratio of two such configurations therefore includes "
    "the variation from making the change again, and the blocks stay independent. Compared trials are further "
    "apart in time than in a fully random order, so changes in the machine's speed within a "
    "block make the result less precise."
)


def sections(study: Study) -> Iterator[Section]:
    runs = _runs(study)
    parts = ((_LEAD, any(one.of != CONTROL for one in runs)), (BY_US, any(one.of == CONTROL for one in runs)))
    lead = "\n\n".join(
        text for text, holds in (*parts, (BY_HAND, any(manual_step_text(one.command) for one in runs))) if holds
    )
    table = Table(_HEAD, tuple(_rows(runs)), words=True)
    yield Section("commands", "Commands", lead, tables=(("", table),), depth=Depth.DOCUMENT)


def _runs(study: Study) -> list[CommandRun]:
    trials = [*(cell.trials for cell in study.cells), *(part.subject.records for part in study.parts)]
    return [run for records in trials for record in records for run in record.commands]


def _rows(runs: list[CommandRun]) -> Iterator[Row]:
    groups: dict[tuple[str, str, str], list[CommandRun]] = {}
    for run in runs:
        groups.setdefault((run.of, run.when, run.command), []).append(run)
    for (of, when, command), group in sorted(groups.items()):
        times = [run.took_s for run in group]
        failed = [run.cause for run in group if run.cause]
        words = f"{len(failed)}: {failed[0]}" if failed else ""
        took = (TableCell(median(times), "duration"), TableCell(max(times), "duration"))
        yield of, when, command, count(len(group)), words, *took
