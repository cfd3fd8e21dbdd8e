"""Groups trials into the systems compared: their names and cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench.model.described import Described
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import (
    DUET,
    EMULATED,
    FAILED_LIMITS,
    Record,
    Status,
    machine_of,
    machines_of,
)
from ironbench.records.described import described
from ironbench.records.work import work
from ironbench.study.differences import SEED, differing, facts_of
from ironbench.words import in_percent


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
        return entering(self.records)

    @property
    def left_out(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if not record.status.comparable)

    @property
    def suspect(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.status is Status.SUSPECT)


def entering(records: Sequence[Record]) -> tuple[Record, ...]:
    """Trials that may enter a comparison: every count of suspect trials is among these."""
    return tuple(record for record in _counting(records) if record.status.comparable)


def leading(record: Record) -> tuple[str, ...]:
    """Metrics that a comparison of its work begins with."""
    return described(record).leading


def counted_in(records: Sequence[Record]) -> tuple[str, str]:
    """What a unit of their work is called, one and many; `transaction` where they did work of several kinds."""
    known = {described(record).units for record in records}
    return known.pop() if len(known) == 1 else Described().units


def streams(record: Record) -> tuple[int, str] | None:
    """How many streams work at once in its trial, and which, where the clients of its load do not."""
    return described(record).streams


def failed_share(trials: Sequence[Record]) -> float | None:
    """Failed transactions as a share of those that ended, all trials together; None where nobody counted."""
    known = [one.metrics for one in trials if "failed" in one.metrics and "transactions" in one.metrics]
    failed = sum(metrics["failed"] for metrics in known)
    ended = failed + sum(metrics["transactions"] for metrics in known)
    return failed / ended if ended else None


def failed_percent(share: float) -> str:
    """Such a share in words, with digits enough to show on which side of a limit it is."""
    return in_percent(share, limits=FAILED_LIMITS)


def by_work(records: Sequence[Record]) -> list[tuple[Record, ...]]:
    """Records parted by the work done, in the order given. Pilots are left out: they decided a warm-up."""
    return _parted(_counting(records), work)


def subjects(records: Sequence[Record]) -> tuple[Subject, ...]:
    """Records of one work parted into the systems compared, each with a name of its own. The first is the baseline:
    systems keep the order in which they were named."""
    counting = _counting(records)
    machines = machines_among(counting)
    groups = [
        tuple(sorted(group, key=lambda record: (record.started_at, record.id)))
        for group in _parted(counting, lambda one: _text((one.system, one.cell.load.shape, machines(one))))
    ]
    labels = [group[0].system.label or group[0].system.engine for group in groups]
    names = []
    for label, group in zip(labels, groups, strict=True):
        rivals = [other for text, other in zip(labels, groups, strict=True) if text == label]
        names.append(label if len(rivals) == 1 else _distinct_name(label, group, rivals))
    for place, name in enumerate(names):
        if name in names[:place]:
            names[place] = f"{name} #{names[:place].count(name) + 1}"
    return tuple(Subject(marked(name, group), group) for name, group in zip(names, groups, strict=True))


def emulated(record: Record) -> bool:
    """Whether its storage was emulated: its times are a model's, and no page may show them without saying so."""
    return record.warned(EMULATED) or bool(record.system.layout.devices)


def marked(name: str, records: Sequence[Record]) -> str:
    """The name of a system, which says that it is emulated if any of its trials was."""
    return f"{name} (emulated)" if "emulated" not in name and any(map(emulated, records)) else name


def _counting(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose not in AUXILIARY]


def _distinct_name(label: str, group: tuple[Record, ...], rivals: list[tuple[Record, ...]]) -> str:
    rows = differing([facts_of(rival[0]) for rival in rivals])
    own = facts_of(group[0])
    words = [f"{row.split('.')[-1]}={own[row]}" for row in rows if row in own and row != SEED][:2]
    return f"{label} ({', '.join(words)})" if words else label


def machines_among(records: Sequence[Record]) -> Callable[[Record], tuple[str, str]]:
    """Returns `machines_of` for these records, where a trial whose server could not be watched has the machine of the
    other trials of its run on that server."""
    known: dict[tuple[str, str | None], set[str]] = {}
    for record in records:
        if server := machine_of(record):
            known.setdefault((record.series, record.system.dsn), set()).add(server)

    def machines(record: Record) -> tuple[str, str]:
        server, client = machines_of(record)
        others = known.get((record.series, record.system.dsn), set())
        return server or (next(iter(others)) if len(others) == 1 else ""), client

    return machines


def _text(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _parted(records: Sequence[Record], key: Callable[[Record], str]) -> list[tuple[Record, ...]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return [tuple(group) for group in groups.values()]


def bare(record: Record) -> bool:
    """Whether no database lay between the work and the machine."""
    return described(record).bare_machine


def held_to(record: Record) -> tuple[int, ...]:
    """CPUs that its work was held to; empty: all of them.

    A server's are its own. Where there is no engine, the threads are the system. A library engine works in the threads
    that drive it, and what binds such a thread comes after what binds their process (sched_setaffinity(2)); but work
    that drives itself asks it in processes that bind themselves to the server's, after they have inherited the others.
    """
    system, known = record.system, described(record)
    if known.bare_machine or (known.in_client and known.drives):
        return system.server_cpus or system.client_cpus or ()
    if known.in_client:
        return system.client_cpus or system.server_cpus or ()
    return system.server_cpus or ()


def machine_cores(machine: Mapping[str, Any]) -> int | None:
    """Physical cores by its fingerprint; None: unknown."""
    cores = (machine.get("cpu") or {}).get("cores")
    return int(cores) if cores else None


def cores_held(record: Record, of_machine: int | None) -> int | None:
    """The machine's, or as many CPUs as the work was held to: two logical CPUs may be one core, of which nothing is
    recorded, but no work has more cores than the machine; of a duet half of them. None: not known."""
    held = len(held_to(record))
    if held:
        return min(of_machine or held, held)
    return of_machine // 2 if of_machine and record.method == DUET else of_machine
