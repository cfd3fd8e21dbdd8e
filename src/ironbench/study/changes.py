"""Compares the statements of the first configuration with those of another one. Changes are ranked by their share of
the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ironbench.model.note import Note
from ironbench.study.commands import file_name
from ironbench.study.queries import QueryRatio
from ironbench.study.statements import StatementTimings, TimedCommand
from ironbench.study.study import Study


@dataclass(frozen=True, slots=True)
class StatementChange:
    """The change of the time that one statement contributes to a transaction."""

    command: TimedCommand
    before_s: float
    after_s: float
    """Seconds per transaction in the other configuration, that is, executions per transaction times mean time.
    `before_s` is the same for the first configuration."""
    share: float
    """Size of this change as a fraction of the total size of all changes."""
    ratio: QueryRatio | None
    """Mean time as a multiple of the mean time in the first configuration. The value is None if one side lacks the
    statement."""
    plan: Note | None
    """How the plan differs, or None if the plan does not differ or is not known."""

    @property
    def delta_s(self) -> float:
        return self.after_s - self.before_s


@dataclass(frozen=True, slots=True)
class StatementChanges:
    before: str
    after: str
    """Names of both configurations."""
    statements: tuple[StatementChange, ...]
    """Changes of all statements, the largest change first."""


def changes(study: Study) -> Iterator[StatementChanges]:
    """Yields the changes of each configuration whose statements were timed, relative to the first configuration."""
    for other in study.details.timed[1:]:
        yield StatementChanges(
            study.details.timed[0].name, other.name, tuple(_changes(study, study.details.timed[0], other))
        )


def _changes(study: Study, first: StatementTimings, other: StatementTimings) -> list[StatementChange]:
    plans = {
        (file_name(one.plan.script), one.plan.number): one.words
        for one in study.details.other_plans
        if one.name == other.name
    }
    pairs = [pair for pair in zip(first.statements, other.statements, strict=True) if pair != (None, None)]
    times = [(_per_transaction(first, before), _per_transaction(other, after)) for before, after in pairs]
    whole = math.fsum(abs(after_s - before_s) for before_s, after_s in times) or 1.0
    found = []
    for (before, after), (before_s, after_s) in zip(pairs, times, strict=True):
        command = after or before
        assert command is not None
        plan = plans.get((command.script, command.line))
        ratio = after.ratio if after is not None else None
        found.append(StatementChange(command, before_s, after_s, abs(after_s - before_s) / whole, ratio, plan))
    return sorted(found, key=lambda one: -one.share)


def _per_transaction(side: StatementTimings, one: TimedCommand | None) -> float:
    return 0.0 if one is None else side.counted.per_transaction(one.count) * one.mean_s
