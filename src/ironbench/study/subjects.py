"""Groups trials into the systems to compare, with their names and cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench.model.described import Described
from ironbench.model.lab import Configuration
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
from ironbench.study.differences import OF_ONE_LOOP, SEED, differing, facts_of
from ironbench.words import in_percent


@dataclass(frozen=True, slots=True)
class Subject:
    """A system with one kind of load on one machine. It has the same colour in every chart."""

    name: str
    """Name of the system, unique within its study."""
    records: tuple[Record, ...]
    """All trials of any status, in order of start."""

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
    """Returns the trials that may enter a comparison. This includes flagged trials."""
    return tuple(record for record in _counting(records) if record.status.comparable)


def leading(record: Record) -> tuple[str, ...]:
    """Returns the metrics that a comparison of this work shows first."""
    return described(record).leading


def counted_in(records: Sequence[Record]) -> tuple[str, str]:
    """Returns the singular and plural name of a unit of work; `transaction` if there are several kinds of work."""
    known = {described(record).units for record in records}
    return known.pop() if len(known) == 1 else Described().units


def streams(record: Record) -> tuple[int, str] | None:
    """Returns the number and name of concurrent streams, for work in which streams replace the load's clients."""
    return described(record).streams


def failed_share(trials: Sequence[Record]) -> float | None:
    """Returns the fraction of failed transactions over all trials together; None if not counted."""
    known = [one.metrics for one in trials if "failed" in one.metrics and "transactions" in one.metrics]
    failed = sum(metrics["failed"] for metrics in known)
    ended = failed + sum(metrics["transactions"] for metrics in known)
    return failed / ended if ended else None


def failed_percent(share: float) -> str:
    """Formats a fraction of failed transactions as a percentage, with enough digits to show whether it exceeds a
    limit."""
    return in_percent(share, limits=FAILED_LIMITS)


def by_work(records: Sequence[Record]) -> list[tuple[Record, ...]]:
    """Groups records by work, in the given order. Pilot trials are left out, because they only choose a warm-up."""
    return _parted(_counting(records), work)


def subjects(records: Sequence[Record]) -> tuple[Subject, ...]:
    """Groups records of one work by system, load shape and machine, each with a unique name. The order is that of the
    records, and the first subject is the baseline.
    """
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
    """Returns whether storage was emulated. Times then come from a model, and every page must state this."""
    return record.warned(EMULATED) or bool(record.system.layout.devices)


def needs_mark(name: str, records: Sequence[Record]) -> bool:
    """Returns whether any of the trials used emulated storage and the name does not already contain "emulated"."""
    return "emulated" not in name and any(map(emulated, records))


def marked(name: str, records: Sequence[Record]) -> str:
    """Adds "(emulated)" to a system's name if any of its trials used emulated storage."""
    return Configuration(name, emulated=needs_mark(name, records)).marked


def _counting(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.purpose not in AUXILIARY]


def _distinct_name(label: str, group: tuple[Record, ...], rivals: list[tuple[Record, ...]]) -> str:
    rows = differing([facts_of(rival[0]) for rival in rivals])
    own = facts_of(group[0])
    words = [f"{row.split('.')[-1]}={own[row]}" for row in rows if row in own and row != SEED]
    loops = [rival[0].cell.load.rate for rival in rivals]
    if None in loops and any(loops):  # name the kind of loop, and not options that only one kind has
        rate = group[0].cell.load.rate
        kind = "closed-loop" if rate is None else f"rate={rate:g}"
        of_loops = [f"{row.split('.')[-1]}=" for row in OF_ONE_LOOP]
        words = [kind, *(word for word in words if not word.startswith((*of_loops, "rate=")))]
        words = words[:1] if loops.count(rate) == 1 else words
    words = words[:2]
    return f"{label} ({', '.join(words)})" if words else label


def machines_among(records: Sequence[Record]) -> Callable[[Record], tuple[str, str]]:
    """Returns a function like `machines_of`. For a trial in which the server's machine was not observed, it returns the
    machine that other trials of the same run observed for the same server, if there is only one.
    """
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


def on_bare_machine(record: Record) -> bool:
    """Returns whether the work ran directly on the machine, without a database."""
    return described(record).bare_machine


def pinned_cpus(record: Record) -> tuple[int, ...]:
    """Returns the CPUs to which the work was pinned; empty for all CPUs.

    For a database server, these are the server's CPUs. Work without an engine, and workloads that run a library engine
    in their own processes, are pinned to the server's CPUs if these are set. Otherwise, a library engine runs in the
    client's threads, and the pinning of a thread takes precedence over the pinning of its process
    (sched_setaffinity(2)).
    """
    system, known = record.system, described(record)
    if known.bare_machine or (known.in_client and known.drives):
        return system.server_cpus or system.client_cpus or ()
    if known.in_client:
        return system.client_cpus or system.server_cpus or ()
    return system.server_cpus or ()


def machine_cores(machine: Mapping[str, Any]) -> int | None:
    """Returns the number of physical cores in a machine's fingerprint; None if unknown."""
    cores = (machine.get("cpu") or {}).get("cores")
    return int(cores) if cores else None


def usable_cores(record: Record, of_machine: int | None) -> int | None:
    """Returns the number of cores that the work can use: the machine's cores, or the number of CPUs to which the work
    was pinned. Returns None if unknown.

    Two of the pinned logical CPUs may belong to one core, which is not recorded, so the result is at most the machine's
    number of cores. In a duet, each system has half of the cores.
    """
    held = len(pinned_cpus(record))
    if held:
        return min(of_machine or held, held)
    return of_machine // 2 if of_machine and record.method == DUET else of_machine
