"""Which trials belong to the same thing compared, and what to call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from ironbench import workloads
from ironbench.analyse.differences import differing, facts_of
from ironbench.errors import InputError
from ironbench.model.record import Record, Status
from ironbench.model.system import Choice
from ironbench.workloads.base import LEADING

ENTER_NOTHING = ("pilot", "peak")
"""Purposes of trials that decided a warm-up or rates, and stand in no result."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A system under one shape of load on one machine: one colour in every chart."""

    name: str
    """Unique in its study."""
    records: tuple[Record, ...]
    """Every trial, of whatever status, in order of start."""

    @property
    def usable(self) -> tuple[Record, ...]:
        """Trials that may enter a comparison."""
        return tuple(record for record in _counting(self.records) if record.status.comparable)

    @property
    def left_out(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if not record.status.comparable)

    @property
    def suspect(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.status is Status.SUSPECT)


def work(record: Record) -> str:
    """Trials with the same work may share a chart: workload, options, defines and scripts."""
    return _text(replace(record.choice, options=_of_work(record.choice)))


def work_name(choice: Choice) -> str:
    """`igen-oltp scale=2 weight=light`, in the words of the command line."""
    words = [choice.workload, *choice.scripts]
    words += [f"{key}={value}" for key, value in sorted(_of_work(choice).items())]
    words += [f"{key}={value}" for key, value in sorted(choice.defines.items())]
    return " ".join(words)


def _of_work(choice: Choice) -> dict[str, str]:
    """The options that shape what is measured; all of them where this version does not know the workload."""
    try:
        known = workloads.get(choice.workload).options
    except InputError:
        return choice.options
    beside = {option.name for option in known if option.beside}
    return {name: value for name, value in choice.options.items() if name not in beside}


def leading(choice: Choice) -> tuple[str, ...]:
    """Metrics that a comparison of this work begins with; those of a loop of transactions where it is not known."""
    known = workloads.find(choice.workload)
    return known.leading(choice.options) if known else LEADING


def counted_in(records: Sequence[Record]) -> tuple[str, str]:
    """What a unit of their work is called, one and many; `transaction` where they did work of several kinds."""
    known = {found.counts for record in records if (found := workloads.find(record.choice.workload))}
    return known.pop() if len(known) == 1 else workloads.Workload.counts


def by_work(records: Sequence[Record]) -> list[tuple[Record, ...]]:
    """Records parted by the work done, in the order given. Pilots are left out: they decided a warm-up."""
    return _parted(_counting(records), work)


def subjects(records: Sequence[Record]) -> tuple[Subject, ...]:
    """Records of one work parted into the systems compared, each with a name of its own. The first is the reference:
    systems keep the order in which they were named."""
    groups = [
        tuple(sorted(group, key=lambda record: (record.started_at, record.id)))
        for group in _parted(_counting(records), _identity)
    ]
    labels = [group[0].system.label or group[0].system.engine for group in groups]
    names = []
    for label, group in zip(labels, groups, strict=True):
        rivals = [other for text, other in zip(labels, groups, strict=True) if text == label]
        names.append(label if len(rivals) == 1 else _told_apart(label, group, rivals))
    for place, name in enumerate(names):
        if name in names[:place]:
            names[place] = f"{name} #{names[:place].count(name) + 1}"
    return tuple(Subject(name, group) for name, group in zip(names, groups, strict=True))


def _counting(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose not in ENTER_NOTHING]


def _told_apart(label: str, group: tuple[Record, ...], rivals: list[tuple[Record, ...]]) -> str:
    rows = differing([facts_of(rival[0]) for rival in rivals])
    own = facts_of(group[0])
    words = [f"{row.split('.')[-1]}={own[row]}" for row in rows if row in own][:2]
    return f"{label} ({', '.join(words)})" if words else label


def _identity(record: Record) -> str:
    return _text((record.system, record.cell.load.shape, record.machine))


def _text(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _parted(records: Sequence[Record], key: Callable[[Record], str]) -> list[tuple[Record, ...]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return [tuple(group) for group in groups.values()]
