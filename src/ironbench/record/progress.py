"""How far a lab has come, read from nothing but the records that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ironbench.model.record import Record, Status
from ironbench.model.system import Trial

TRIES = 2
"""A failed trial is tried once more, then kept as failed."""

Place = tuple[str, int]
"""A cell's name and a block."""


def missing(trials: Sequence[Trial], records: Iterable[Record], forgiven: Collection[str] = ()) -> tuple[Trial, ...]:
    """The trials still to be measured, in the planned order, each with the number of its next attempt.

    A trial is over when a record of it may be compared, or when it failed as often as it is tried. One that was cut
    short or killed is not over. `forgiven`: ids of failed records that do not count.
    """
    there = by_place(records)
    trials_left = []
    for trial in trials:
        attempts = there.get((trial.cell.name, trial.block), [])
        if not over([record for record in attempts if record.id not in forgiven]):
            last = max((record.attempt for record in attempts), default=0)
            trials_left.append(replace(trial, attempt=last + 1))
    return tuple(trials_left)


def over(attempts: Sequence[Record]) -> bool:
    """Whether the records of one place settle it."""
    return any(record.status.comparable for record in attempts) or len(_failed(attempts)) >= TRIES


def given_up(records: Iterable[Record]) -> tuple[Record, ...]:
    """The failed records of every trial that will not be tried again."""
    return tuple(record for tries in by_place(records).values() if _lost(tries) for record in _failed(tries))


def given_up_of_all(records: Iterable[Record]) -> tuple[Record, ...]:
    """The same of searches and the peak as well: what is tried again when somebody asks for it."""
    places: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        places.setdefault((record.purpose, record.cell.name, record.block), []).append(record)
    return tuple(record for tries in places.values() if _lost(tries) for record in _failed(tries))


def _lost(tries: Sequence[Record]) -> bool:
    return over(tries) and not any(record.status.comparable for record in tries)


def by_place(records: Iterable[Record]) -> dict[Place, list[Record]]:
    """Records of lab trials by cell and block, attempts in order."""
    places: dict[Place, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.attempt):
        if record.purpose == "lab":
            places.setdefault((record.cell.name, record.block), []).append(record)
    return places


def _failed(attempts: Sequence[Record]) -> list[Record]:
    return [record for record in attempts if record.status in (Status.FAILED, Status.VOIDED)]
