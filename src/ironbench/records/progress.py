"""Progress of a lab, determined only by its existing records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ironbench.model.purpose import Purpose
from ironbench.model.record import SYSTEMS, Record, Status
from ironbench.model.system import Trial

TRIES = 2
"""Maximum number of attempts at a trial: a failed trial is repeated once, and then stays failed."""

Place = tuple[str, int]
"""Name of a configuration, and number of a block."""


def missing(trials: Sequence[Trial], records: Iterable[Record]) -> tuple[Trial, ...]:
    """Returns the trials that must still be measured, in the planned order, with the numbers of their next attempts.

    A trial is done if one of its records is comparable, or if it failed `TRIES` times. An aborted or killed attempt
    does not count.

    Interleaved systems of a block are measured together, so they are also measured again together. If the lab was
    killed before all of them had a record, none of the block's records counts. If one of them failed, all of them count
    as failed.
    """
    records = list(records)
    there, torn = _by_place(records), IncompleteGroups.of(records)
    trials_left = []
    for trial in trials:
        attempts = there.get((trial.cell.name, trial.block), [])
        counting = [one for one in attempts if one.id not in torn.killed]
        whole = [one for one in counting if one.id not in torn.lone]
        if not over(whole) and len(failed(whole)) + len(counting) - len(whole) < TRIES:
            last = max((record.attempt for record in attempts), default=0)
            trials_left.append(replace(trial, attempt=last + 1))
    return tuple(trials_left)


def over(attempts: Sequence[Record]) -> bool:
    """Returns whether a trial is done, given the records of its attempts."""
    return any(record.status.comparable for record in attempts) or len(failed(attempts)) >= TRIES


def first_usable(attempts: Iterable[Record]) -> Record | None:
    """Returns the attempt at a trial that is used in comparisons, which is the first comparable attempt. Returns None
    if no attempt is comparable."""
    return min((one for one in attempts if one.status.comparable), key=lambda one: one.attempt, default=None)


def attempts(records: Iterable[Record], block: int, cells: Collection[str]) -> int:
    """Returns the number of the last attempt in a block at any of these configurations. Returns 0 if there was no
    attempt."""
    of_block = (one for one in records if one.purpose == Purpose.LAB and one.block == block and one.cell.name in cells)
    return max((one.attempt for one in of_block), default=0)


def interrupted(records: Sequence[Record]) -> bool:
    """Returns whether the user aborted the trial of the last record, in order of measurement."""
    return bool(records) and records[-1].status is Status.CUT_SHORT


def given_up(records: Iterable[Record]) -> tuple[Record, ...]:
    """Returns the failed records of every trial that will not be repeated."""
    return tuple(record for tries in by_place(records).values() if given_up_on(tries) for record in failed(tries))


def given_up_of_all(records: Iterable[Record]) -> tuple[Record, ...]:
    """Returns the same records as `given_up`, and also the records of failed trials of searches and of the peak."""
    places: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        places.setdefault((record.purpose, record.cell.name, record.block), []).append(record)
    return tuple(record for tries in places.values() if given_up_on(tries) for record in failed(tries))


def given_up_on(tries: Sequence[Record]) -> bool:
    """Returns whether a trial has failed as often as `TRIES` allows. Such a trial is not repeated unless the user
    requests it."""
    return over(tries) and not any(record.status.comparable for record in tries)


@dataclass(frozen=True, slots=True)
class IncompleteGroups:
    """Records of interleaved systems whose block is incomplete, because another system of the block has no comparable
    record."""

    killed: frozenset[str]
    """Ids of records in blocks in which another system has no record, because the lab was killed."""
    lone: frozenset[str]
    """Ids of records in blocks in which the record of another system is not comparable."""

    @staticmethod
    def of(records: Iterable[Record]) -> IncompleteGroups:
        together: dict[tuple[int, str], list[Record]] = {}
        for record in records:
            if record.purpose == Purpose.LAB and record.turns_since:
                together.setdefault((record.block, record.turns_since), []).append(record)
        killed, lone = set[str](), set[str]()
        for group in together.values():
            if len(group) < max(record.metrics.get(SYSTEMS, 0) for record in group):
                killed.update(record.id for record in group)
            elif not all(record.status.comparable for record in group):
                lone.update(record.id for record in group if record.status.comparable)
        return IncompleteGroups(frozenset(killed), frozenset(lone))


def by_place(records: Iterable[Record]) -> dict[Place, list[Record]]:
    """Returns the records of lab trials by configuration and block. The records of a trial are in the order of its
    attempts.

    Records from incomplete blocks of interleaved systems (`IncompleteGroups`) are left out, unless the trial has no
    other records.
    """
    records = list(records)
    torn = IncompleteGroups.of(records)
    apart = torn.killed | torn.lone
    each = _by_place(records)
    return {place: [one for one in tries if one.id not in apart] or tries for place, tries in each.items()}


def measured(records: Iterable[Record]) -> int:
    """Returns how many trials have a comparable record. For interleaved systems, all records of the block must be
    comparable."""
    records = list(records)
    torn = IncompleteGroups.of(records)
    there = _by_place(one for one in records if one.id not in torn.killed | torn.lone)
    return sum(any(record.status.comparable for record in tries) for tries in there.values())


def _by_place(records: Iterable[Record]) -> dict[Place, list[Record]]:
    places: dict[Place, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.attempt):
        if record.purpose == Purpose.LAB:
            places.setdefault((record.cell.name, record.block), []).append(record)
    return places


def failed(attempts: Sequence[Record]) -> list[Record]:
    """Returns the attempts that count as failed. Aborted attempts do not."""
    return [record for record in attempts if record.status in (Status.FAILED, Status.VOIDED)]
