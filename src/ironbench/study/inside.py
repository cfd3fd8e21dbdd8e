"""Statistics from inside the database servers: statements, tables, indexes, vacuums and plans, combined over the trials
of each system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from ironbench.model.inside import (
    ExecutedPlan,
    IndexUse,
    NotShown,
    ServerStatement,
    ServerStatistics,
    StatementPlan,
    TableUse,
    VacuumRun,
)
from ironbench.model.note import Note, merged
from ironbench.model.record import Record
from ironbench.study.archive import Archive
from ironbench.study.commands import aligned, keyed
from ironbench.study.queries import difference

_T = TypeVar("_T", ServerStatement, TableUse, IndexUse)
_LAST = frozenset({"dead_rows", "bytes"})
"""Fields that are not summed over trials. The values of these fields are taken from the last trial. The values of the
corresponding `_before` fields are taken from the first trial."""


@dataclass(frozen=True, slots=True)
class TrialTotals:
    """Total time and number of transactions of several trials, over which an amount was summed. Trials without this
    amount are left out.
    """

    elapsed_s: float
    transactions: float

    def per_transaction(self, amount: float) -> float:
        return amount / self.transactions if self.transactions else 0.0

    def per_second(self, amount: float) -> float:
        return amount / self.elapsed_s if self.elapsed_s else 0.0


def trial_totals(records: Iterable[Record]) -> TrialTotals:
    """Adds up time and transactions of the trials."""
    known = list(records)
    return TrialTotals(sum(one.elapsed_s for one in known), sum(one.metrics.get("transactions", 0.0) for one in known))


@dataclass(frozen=True, slots=True)
class ServerUse:
    """Server statistics of one system or configuration, over all its trials."""

    name: str
    counted: TrialTotals
    """Time and transactions of the trials with statement statistics."""
    used: TrialTotals
    """Time and transactions of the trials with table or index statistics."""
    statements: tuple[ServerStatement, ...]
    """Statements by total time, the longest first."""
    statements_s: float
    tables: tuple[TableUse, ...]
    indexes: tuple[IndexUse, ...]
    vacuums: tuple[VacuumRun, ...]
    plans: tuple[StatementPlan, ...]
    """Plans of the first trial."""
    executed: tuple[ExecutedPlan, ...]
    """For each command, the plan of the slowest execution in all trials, and the number of executions."""
    varied: int
    """Number of trials whose plans differ from the plans of the first trial."""
    trials: int
    missing: tuple[NotShown, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class OtherPlan:
    """A command for which two systems have different plans."""

    plan: StatementPlan
    baseline: StatementPlan
    name: str
    baseline_name: str
    words: Note


def uses(groups: Sequence[tuple[str, Sequence[Record]]], archive: Archive) -> tuple[ServerUse, ...]:
    """Combines the server statistics of each group's trials. Groups without server statistics are left out. `groups`:
    name and comparable trials."""
    uses = []
    for name, records in groups:
        trials = [(record, inside) for record in records if (inside := archive.inside(record.id))]
        if trials:
            uses.append(_use(name, trials))
    return tuple(uses)


def other_plans(subjects: Sequence[ServerUse]) -> tuple[OtherPlan, ...]:
    """Compares the plans of each subject with the plans of the first subject whose plans are known."""
    first = next((one for one in subjects if any(plan.steps for plan in one.plans)), None)
    if first is None:
        return ()
    return tuple(
        OtherPlan(plan, other, one.name, first.name, difference(Counter(plan.steps), Counter(other.steps)))
        for one in subjects
        if one is not first
        for plan, other in same_commands(one.plans, first.plans)
        if Counter(plan.steps) != Counter(other.steps)
    )


def same_commands(
    own: Sequence[StatementPlan], first: Sequence[StatementPlan]
) -> Iterator[tuple[StatementPlan, StatementPlan]]:
    """Yields the plans of both sides for each command whose plan is known on both sides."""
    mine, theirs = (keyed((one.script, one.statement, one) for one in side) for side in (own, first))
    for key, shared in aligned(list(mine), list(theirs)).items():
        other = theirs.get(shared)
        if other is not None and mine[key].steps and other.steps:
            yield mine[key], other


def _use(name: str, trials: Sequence[tuple[Record, ServerStatistics]]) -> ServerUse:
    insides = [inside for _, inside in trials]
    steps = [[plan.steps for plan in inside.plans] for inside in insides]
    statements = _pooled((one for inside in insides for one in inside.statements), lambda one: one.text)
    return ServerUse(
        name,
        counted=trial_totals(record for record, inside in trials if inside.statements),
        used=trial_totals(record for record, inside in trials if inside.tables or inside.indexes),
        statements=tuple(sorted(statements, key=lambda one: -one.time_s)),
        statements_s=sum(inside.statements_s for inside in insides),
        tables=_pooled((one for inside in insides for one in inside.tables), lambda one: one.name),
        indexes=_pooled((one for inside in insides for one in inside.indexes), lambda one: one.name),
        vacuums=_vacuums(insides),
        plans=insides[0].plans,
        executed=_executed([one for inside in insides for one in inside.executed]),
        varied=sum(one != steps[0] for one in steps),
        trials=len(trials),
        missing=tuple(dict.fromkeys(one for inside in insides for one in inside.missing)),
        notes=tuple(merged(one for inside in insides for one in inside.notes)),
    )


def _executed(every: Sequence[ExecutedPlan]) -> tuple[ExecutedPlan, ...]:
    by_command: dict[tuple[str, int], list[ExecutedPlan]] = {}
    for one in every:
        by_command.setdefault((one.script, one.number), []).append(one)
    return tuple(
        replace(max(own, key=lambda one: one.slowest_s), count=sum(one.count for one in own))
        for own in by_command.values()
    )


def _pooled(every: Iterable[_T], key: Callable[[_T], str]) -> tuple[_T, ...]:
    """Merges entries with the same key. Amounts are added. Sizes and the like are taken from the first or the last
    trial."""
    by_name: dict[str, _T] = {}
    for one in every:
        before = by_name.get(key(one))
        by_name[key(one)] = one if before is None else replace(one, **_sums(before, one))
    return tuple(by_name.values())


def _sums(
    before: ServerStatement | TableUse | IndexUse, one: ServerStatement | TableUse | IndexUse
) -> Mapping[str, Any]:
    sums: dict[str, Any] = {}
    for field in fields(one):
        a, b = getattr(before, field.name), getattr(one, field.name)
        if field.name.endswith("_before"):
            sums[field.name] = a
        elif isinstance(a, float) and isinstance(b, float) and field.name not in _LAST:
            sums[field.name] = a + b
    return sums


def _vacuums(insides: Sequence[ServerStatistics]) -> tuple[VacuumRun, ...]:
    by_table: dict[str, list[VacuumRun]] = {}
    for one in (one for inside in insides for one in inside.vacuums):
        by_table.setdefault(one.table, []).append(one)
    return tuple(
        VacuumRun(
            table,
            sum(one.share for one in own) / len(insides),
            tuple(dict.fromkeys(phase for one in own for phase in one.phases)),
        )
        for table, own in by_table.items()
    )
