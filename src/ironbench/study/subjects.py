"""Groups trials into the systems to compare. Determines their names and the number of cores that they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench.model.described import Described
from ironbench.model.judging_limits import FAILED_LIMITS
from ironbench.model.lab import Configuration
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import (
    DUET,
    EMULATED,
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
    """A system with one kind of load on one machine. A subject has the same colour in every chart."""

    name: str
    """Name of the system, unique within its study."""
    records: tuple[Record, ...]
    """Trials of every status, in order of start."""

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
    """Returns the number of concurrent streams and what they are called. Returns None for work without streams, which
    is done by the clients of the load."""
    return described(record).streams


def failed_share(trials: Sequence[Record]) -> float | None:
    """Returns the fraction of failed transactions over all trials together. Returns None if not counted."""
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
    """Groups records of one work by system, load shape and machine. The groups have unique names. Groups are in the
    order of the records, and the first one is the baseline.
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
    """Returns whether the name must be marked because storage was emulated. The mark is necessary if any of the trials
    used emulated storage, unless the name already contains "emulated"."""
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
    if None in loops and any(loops):  # options that only one kind of loop has are replaced by the kind of loop
        rate = group[0].cell.load.rate
        kind = "closed-loop" if rate is None else f"rate={rate:g}"
        of_loops = [f"{row.split('.')[-1]}=" for row in OF_ONE_LOOP]
        words = [kind, *(word for word in words if not word.startswith((*of_loops, "rate=")))]
        words = words[:1] if loops.count(rate) == 1 else words
    words = words[:2]
    return f"{label} ({', '.join(words)})" if words else label


def machines_among(records: Sequence[Record]) -> Callable[[Record], tuple[str, str]]:
    """Returns a function like `machines_of`. If a trial did not observe the server's machine, the function uses the
    machine that other trials of the same run observed for this server. If they observed several machines, the machine
    remains unknown.
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
    """Returns the CPUs to which the work was pinned. Returns nothing if it may use all CPUs.

    A database server is pinned to the server's CPUs. Work without an engine is also pinned to the server's CPUs if
    these are set, and so is a workload that runs a library engine in its own processes. Any other library engine runs
    in the client's threads. Such an engine is pinned to the client's CPUs if these are set, because the pinning of a
    thread takes precedence over the pinning of its process (sched_setaffinity(2)).
    """
    system, known = record.system, described(record)
    if known.bare_machine or (known.in_client and known.drives):
        return system.server_cpus or system.client_cpus or ()
    if known.in_client:
        return system.client_cpus or system.server_cpus or ()
    return system.server_cpus or ()


def machine_cores(machine: Mapping[str, Any]) -> int | None:
    """Returns the number of physical cores in a machine's fingerprint. Returns None if unknown."""
    cores = (machine.get("cpu") or {}).get("cores")
    return int(cores) if cores else None


def usable_cores(record: Record, of_machine: int | None) -> int | None:
    """Returns the number of cores that the work can use. This is the machine's number of cores, or the number of CPUs
    to which the work was pinned. Returns None if unknown.

    Records do not show which logical CPUs belong to the same core, so the number of pinned CPUs may be larger than the
    number of their cores. The result is therefore at most the machine's number of cores. In a duet, each system has
    half of the cores.
    """
    held = len(pinned_cpus(record))
    if held:
        return min(of_machine or held, held)
    return of_machine // 2 if of_machine and record.method == DUET else of_machine
