"""Parts of a whole against clients: where backends waited, and where the CPU time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ironbench.analyse.summarise import summarise
from ironbench.model.record import Budget, Record

OTHER = "other"
_BUDGET = tuple(part.name for part in fields(Budget))
_WAIT = "wait_share{event="
MOST_EVENTS = 7
"""More colours than this cannot be told apart in one chart; the rest is summed as `other`."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of one bar, in the order to be stacked."""

    clients: int
    parts: dict[str, float]


def budgets(points: Sequence[tuple[int, Sequence[Record]]]) -> tuple[Shares, ...]:
    """The mean CPU budget of the trials of each number of clients; nothing where none was measured."""
    found = []
    for clients, records in points:
        measured = [record.budget for record in records if record.budget.idle < 1.0]
        if measured:
            means = {part: sum(getattr(one, part) for one in measured) / len(measured) for part in _BUDGET}
            found.append(Shares(clients, means))
    return tuple(found)


def waits(points: Sequence[tuple[int, Sequence[Record]]], events: Sequence[str]) -> tuple[Shares, ...]:
    """Median share of backends in each of `events`, the rest as `other`."""
    found = []
    for clients, records in points:
        shares = {part: value for part, value in _wait_shares(records).items() if value > 0}
        if shares:
            parts = {event: shares.get(event, 0.0) for event in events}
            rest = sum(value for event, value in shares.items() if event not in parts)
            found.append(Shares(clients, {**parts, OTHER: rest} if rest > 0 else parts))
    return tuple(found)


def main_events(records: Sequence[Record]) -> tuple[str, ...]:
    """The waits with the largest share in any trial, largest first."""
    most: dict[str, float] = {}
    for record in records:
        for name, value in record.metrics.items():
            if name.startswith(_WAIT) and value > most.get(name, 0.0):
                most[name] = value
    ranked = sorted(map(_event, most), key=lambda event: (-most[f"{_WAIT}{event}}}"], event))
    return tuple(ranked[:MOST_EVENTS])


def _wait_shares(records: Sequence[Record]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.metrics.items():
            if name.startswith(_WAIT):
                values.setdefault(_event(name), []).append(value)
    summaries = {event: summarise(found) for event, found in values.items()}
    return {event: summary.centre for event, summary in summaries.items() if summary}


def _event(name: str) -> str:
    return name.removeprefix(_WAIT).removesuffix("}")
