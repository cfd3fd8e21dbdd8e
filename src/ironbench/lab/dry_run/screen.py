"""`ironbench tune --plan`: shows the runs of a screen, the time of screen and confirmation, and the effects that the
screen can detect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbench import units
from ironbench.lab import screen_size
from ironbench.lab.dry_run import estimate
from ironbench.lab.dry_run.notes import commands_of, notes
from ironbench.lab.size import Planned
from ironbench.model.lab import Lab
from ironbench.plan import screen
from ironbench.report import text_layout
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity
from ironbench.words import THIN, counted, in_percent

_SHOWN_BLOCKS = 3


def pages(planned: Planned) -> Iterator[str]:
    """Yields the sections of a lab's plan that apply to a screen."""
    lab = planned.lab
    yield text_layout.clean(lab.question)
    yield _factors(lab)
    yield _runs(lab)
    yield _order(lab)
    if lab.every_command:
        yield "\n".join(["Commands", *commands_of(lab.every_command, lab.folder)])
    yield "Estimate\n" + "\n".join(f"  {line}" for line in (*_cost(planned), detectable_effect(planned)))
    if texts := notes(planned):
        yield "Before you run it\n" + "\n".join(f"  - {note}" for note in texts)


def fields(planned: Planned) -> dict[str, Any]:
    """Returns the fields that a screen adds to the plan's JSON document."""
    after = screen_size.confirming(planned.costs, planned.resolution.trial_s)
    return {
        "confirmation": {
            "factors": after.factors,
            "cells": after.cells,
            "blocks": [screen.FIRST_ANALYSIS, screen.MOST_CONFIRMING],
            "estimate_s": [after.least_s, after.most_s],
        }
    }


def _factors(lab: Lab) -> str:
    between = any(one.levels[1:-1] for one in lab.factors)
    rows: list[tuple[str, ...]] = [
        ("factor", "baseline value", "other value", *(["values in between (not screened)"] if between else []))
    ]
    for one in lab.factors:
        rest = [", ".join(one.levels[1:-1])] if between else []
        rows.append((one.name, one.levels[0], one.levels[-1], *rest))
    return f"{counted(len(lab.factors), 'factor')}\n" + text_layout.facts(Table(rows[0], tuple(rows)))


def _runs(lab: Lab) -> str:
    """Formats the runs as a table. A row is a run, and a sign represents each factor's value, because the values of
    many factors would not fit in a line."""
    rows = [("", *(str(number) for number, _ in enumerate(lab.factors, 1)))]
    for setup in lab.setups:
        levels = setup.cell.levels
        rows.append((setup.cell.name, *("·" if levels[one.name] == one.levels[0] else "+" for one in lab.factors)))
    text = (
        f"{counted(len(lab.setups), 'run')}: Plackett-Burman design with foldover (resolution IV)\n  '·' is the "
        "baseline value of a factor, '+' is the other value; the column numbers are the numbers of the factors "
        "above"
    )
    return f"{text}\n" + text_layout.facts(Table(rows[0], tuple(rows)))


def _order(lab: Lab) -> str:
    by_block: dict[int, list[str]] = {}
    for trial in lab.trials:
        by_block.setdefault(trial.block, []).append(trial.cell.name.removeprefix("run "))
    rows = [(f"block {block + 1}", " ".join(names)) for block, names in list(by_block.items())[:_SHOWN_BLOCKS]]
    more = len(by_block) - len(rows)
    rest = f"\n  and {counted(more, 'block')} more (--json shows all)" if more > 0 else ""
    if lab.method.why_trials:
        why = text_layout.clean(lab.method.why_trials)
        rest += f"\n  method: trials, one after another; slices are not possible: {why}"
    how = (
        "each run is next to the run with the opposite value of every factor; apart from that, the order is random "
        f"(seed {lab.method.seed})"
    )
    return f"{counted(len(by_block), 'block')}, {how}\n" + text_layout.facts(Table(rows[0], tuple(rows))) + rest


def _cost(planned: Planned) -> Iterator[str]:
    yield from estimate.cost(planned)
    after = screen_size.confirming(planned.costs, planned.resolution.trial_s)
    many = f"{screen.FIRST_ANALYSIS} to {screen.MOST_CONFIRMING} blocks"
    yield (
        "after the screen, the factors that matter are compared with the baseline: for "
        f"{counted(after.factors, 'factor')}, {after.cells} configurations in {many} take "
        f"{units.span(after.least_s)} to {units.span(after.most_s)}"
    )


def detectable_effect(resolution: Planned) -> str:
    """Describes the effects that the screen can detect, and the noise assumed for this."""
    one = resolution.resolution
    assert one.detectable is not None
    smaller = (
        "" if one.needed is None else f"; to detect {in_percent(one.target)}, it needs {counted(one.needed, 'block')}"
    )
    return (
        f"minimum detectable effect of the screen: {in_percent(one.detectable)}{smaller} (90{THIN}% power; SD of a "
        f"pair's ratio between blocks: {in_percent(one.varies)} in trials of {quantity(one.trial_s, 's')}, "
        f"{one.spread.source})"
    )
