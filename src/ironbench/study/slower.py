"""Explains why a configuration is slower. The explanation is the statement that adds the most time to a transaction,
and changed plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ironbench.model.finding import Finding
from ironbench.study.inside import ServerUse, TrialTotals, same_commands
from ironbench.study.statements import StatementTimings
from ironbench.study.study import Study

_GROWN = 1.02
"""Minimum ratio at which a statement's time counts as increased. The same limit applies to its number of executions per
transaction."""
_SIGMAS = 4.0
"""Executions per transaction count as increased only if the increase is at least this many standard errors. Scripts are
chosen at random, so the standard deviation of a number of executions is its square root (Poisson).
"""
_UNLISTED = 0.001
"""The server's list of statements counts as complete if it lacks at most this fraction of the total statement time."""


@dataclass(frozen=True, slots=True)
class SlowerStatement:
    """A statement that takes longer than on the other side."""

    text: str
    before_s: float
    after_s: float
    """Mean execution time on this side, in seconds; `before_s` is the mean execution time on the other side."""
    source: str
    """Where the statement was timed: `clients` or the `server`."""
    replaced: str = ""
    """Text of the statement on the other side, if it differs."""


@dataclass(frozen=True, slots=True)
class RepeatedStatement:
    """A statement that runs more often per transaction than on the other side."""

    text: str
    before: float
    after: float
    """Executions per transaction on this side; `before` is the number on the other side."""
    after_s: float
    source: str


@dataclass(frozen=True, slots=True)
class NewStatement:
    """A statement that the other side does not run."""

    text: str
    per_transaction: float
    """Executions per transaction."""
    after_s: float
    source: str


@dataclass(frozen=True, slots=True)
class OtherPlanSteps:
    """A statement for which the server uses a different plan than on the other side."""

    statement: str
    more: tuple[str, ...]
    less: tuple[str, ...]
    """Steps of the plan that only the other side has; `more` contains the steps that only the slower side has."""


AddedTime = SlowerStatement | RepeatedStatement | NewStatement
Cause = AddedTime | OtherPlanSteps


def causes(study: Study, finding: Finding) -> tuple[Cause, ...]:
    """Lists causes of a slowdown. Returns nothing if nothing was observed. Plan changes are first, because they explain
    changes of times. In labs with slices, the plans are from the trials with observers.
    """
    statement = _by_clients(study, finding) or _by_server(study, finding)
    return (*_plans(study, finding), *((statement,) if statement else ()))


@dataclass(frozen=True, slots=True)
class _Executions:
    """Executions of one statement on one side."""

    text: str
    count: float
    mean_s: float
    counted: TrialTotals
    """Time and transactions of the trials in which the executions were counted."""

    @property
    def per_transaction(self) -> float:
        return self.counted.per_transaction(self.count)


def _by_clients(study: Study, finding: Finding) -> AddedTime | None:
    sides = {one.name: one for one in study.details.timed}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return None
    own, other = sides[finding.cell], sides[finding.baseline]
    pairs = list(zip(_timed(own), _timed(other), strict=True))
    return _most_added(pairs, other.complete, "clients")


def _timed(side: StatementTimings) -> Iterator[_Executions | None]:
    for one in side.statements:
        yield None if one is None else _Executions(one.text, one.count, one.mean_s, side.counted)


def _by_server(study: Study, finding: Finding) -> AddedTime | None:
    sides = {one.name: one for one in study.details.inside}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return None
    own, other = _called(sides[finding.cell]), _called(sides[finding.baseline])
    pairs = [(own.get(text), other.get(text)) for text in own]
    return _most_added(pairs, _lists_all(sides[finding.baseline]), "server")


def _called(side: ServerUse) -> dict[str, _Executions]:
    return {
        one.text: _Executions(one.text, one.calls, one.time_s / one.calls, side.counted)
        for one in side.statements
        if one.calls
    }


def _lists_all(side: ServerUse) -> bool:
    """Returns whether the server's list of statements is complete, so that a missing statement did not run. Servers
    list only the statements with the most time."""
    return math.fsum(one.time_s for one in side.statements) >= (1 - _UNLISTED) * side.statements_s


def _most_added(
    pairs: Sequence[tuple[_Executions | None, _Executions | None]], complete: bool, source: str
) -> AddedTime | None:
    """Returns the statement that adds the most time per transaction.

    `pairs`: executions of each statement on the slower side and on the other side. `complete`: whether all statements
    of the other side are known.
    """
    found = [
        one
        for after, before in pairs
        if after is not None and (before is not None or complete)
        for one in _added(after, before, source)
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _added(after: _Executions, before: _Executions | None, source: str) -> Iterator[tuple[float, AddedTime]]:
    """Yields the seconds that a statement adds to a transaction, with the cause."""
    if before is None:
        if after.per_transaction * after.mean_s > 0:
            new = NewStatement(after.text, after.per_transaction, after.mean_s, source)
            yield after.per_transaction * after.mean_s, new
        return
    if after.mean_s > before.mean_s * _GROWN:
        replaced = before.text if before.text != after.text else ""
        slower = SlowerStatement(after.text, before.mean_s, after.mean_s, source, replaced)
        yield (after.mean_s - before.mean_s) * after.per_transaction, slower
    if _runs_more_often(after, before):
        more = RepeatedStatement(after.text, before.per_transaction, after.per_transaction, after.mean_s, source)
        yield (after.per_transaction - before.per_transaction) * after.mean_s, more


def _runs_more_often(after: _Executions, before: _Executions) -> bool:
    if not before.per_transaction or not after.count:
        return False
    by_chance = _SIGMAS * math.sqrt(1 / after.count + 1 / before.count)
    return after.per_transaction > before.per_transaction * max(_GROWN, math.exp(by_chance))


def _plans(study: Study, finding: Finding) -> Iterator[OtherPlanSteps]:
    sides = {one.name: one.plans for one in study.details.inside}
    if not {finding.cell, finding.baseline} <= sides.keys():
        return
    for after, before in same_commands(sides[finding.cell], sides[finding.baseline]):
        more, less = list(after.steps), list(before.steps)
        for step in after.steps:
            if step in less:
                less.remove(step)
                more.remove(step)
        if more or less:
            yield OtherPlanSteps(after.statement, tuple(more), tuple(less))
