"""Why a comparison is slower, from what was observed of both sides: the statement that grew most, and other plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ironbench.analyse.study import Study
from ironbench.model.finding import Finding

_GROWN = 1.02
"""Ratio from which a statement's time counts as grown."""


@dataclass(frozen=True, slots=True)
class SlowerStatement:
    """The statement that adds most time, of those that take longer than on the other side."""

    text: str
    before_s: float
    after_s: float
    """Mean time of one execution."""
    source: str
    """`clients` timed it, or the `server`."""


@dataclass(frozen=True, slots=True)
class OtherPlanSteps:
    """The server runs a statement in another way than on the other side."""

    statement: str
    more: tuple[str, ...]
    less: tuple[str, ...]
    """Steps that only the slower side has, and that only the other has."""


Cause = SlowerStatement | OtherPlanSteps


def causes(study: Study, finding: Finding) -> tuple[Cause, ...]:
    """Plan changes first: they explain times. Labs by slices have them from their observed trials; empty if nothing was
    observed."""
    statement = _by_clients(study, finding) or _by_server(study, finding)
    return (*_plans(study, finding), *((statement,) if statement else ()))


def _by_clients(study: Study, finding: Finding) -> SlowerStatement | None:
    sides = {one.name: one.statements for one in study.timed}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return None
    found: list[tuple[float, SlowerStatement]] = []
    for after, before in zip(sides[finding.cell], sides[finding.baseline], strict=True):
        if after is not None and before is not None and after.mean_s > before.mean_s * _GROWN:
            added_s = (after.mean_s - before.mean_s) * after.count
            found.append((added_s, SlowerStatement(after.text, before.mean_s, after.mean_s, "clients")))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _by_server(study: Study, finding: Finding) -> SlowerStatement | None:
    sides = {one.name: {own.text: own for own in one.statements if own.calls} for one in study.inside}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return None
    found: list[tuple[float, SlowerStatement]] = []
    for text, after in sides[finding.cell].items():
        before = sides[finding.baseline].get(text)
        if before is None:
            continue
        was_s, is_s = before.time_s / before.calls, after.time_s / after.calls
        if is_s > was_s * _GROWN:
            found.append(((is_s - was_s) * after.calls, SlowerStatement(text, was_s, is_s, "server")))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _plans(study: Study, finding: Finding) -> Iterator[OtherPlanSteps]:
    sides = {one.name: {(own.script, own.number): own for own in one.plans if own.steps} for one in study.inside}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return
    for key, after in sides[finding.cell].items():
        before = sides[finding.baseline].get(key)
        if before is None or before.statement != after.statement:
            continue
        more, less = list(after.steps), list(before.steps)
        for step in after.steps:
            if step in less:
                less.remove(step)
                more.remove(step)
        if more or less:
            yield OtherPlanSteps(after.statement, tuple(more), tuple(less))
