"""Sizing ratios, such as data to memory or clients to cores.

A small test system is representative of a large one only if these ratios are similar. Absolute sizes do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from types import MappingProxyType
from typing import Any

from ironbench.model.note import Note, note
from ironbench.model.record import Record, machine_of
from ironbench.records.described import cache_bytes, described
from ironbench.study.device_io import stored_on
from ironbench.study.subjects import (
    counted_in,
    leading,
    machine_cores,
    on_bare_machine,
    pinned_cpus,
    streams,
    usable_cores,
)
from ironbench.study.summarise import summarise
from ironbench.study.timelines import ONE_DEVICE

ROLES = ("data", "log", "temp")
DATA_TO_CACHE = "balance-data-to-cache"
DATA_TO_MEMORY = "balance-data-to-memory"


@dataclass(frozen=True, slots=True)
class SizingRatio:
    """A sizing ratio of a system. `value` is None if it was not recorded."""

    name: Note
    unit: str
    """`1`, `s`, `bytes`, `bytes/s`, `1/s` or `share`."""
    value: float | None
    note: Note | None = None
    """How the ratio was computed, or why it is unknown."""
    words: Note | None = None
    """Text that a report shows if the ratio is not a number."""
    machine: str = ""
    """If the ratio is about a device whose name is known, the device's machine, because devices of two machines may
    have the same name. Otherwise empty."""


def balance(
    records: Sequence[Record], machine: Mapping[str, Any], engine: Mapping[str, Any] = MappingProxyType({})
) -> tuple[SizingRatio, ...]:
    """Returns the sizing ratios of one configuration's trials, as medians over the trials.

    `machine` and `engine` contain the facts of the configuration's fingerprints, or are empty if the facts are unknown.
    """
    cores, core_note = _cores(records[0], machine)
    data = _metric(records, "data_bytes")
    devices = _devices(records[0], machine)
    return (
        _data_to(note(DATA_TO_CACHE), data, _cache_bytes(records[0], engine), "cache"),
        _data_to(note(DATA_TO_MEMORY), data, _number(machine.get("memory_bytes")), "memory"),
        _at_work(records[0], cores, core_note),
        SizingRatio(_throughput_name(records), "1/s", _over(_metric(records, "throughput"), cores)),
        _checkpoints(records),
        _log(records),
        SizingRatio(note("balance-file-system-used"), "share", _metric(records, "capacity_used_share{role=data}")),
        # Devices come last, because the configurations of a lab may have different devices.
        *(_bandwidth(records, device, cores) for device in devices),
        *(_operations(records, device, cores) for device in devices),
        *(() if devices else (SizingRatio(note("balance-bandwidth"), "bytes/s", None, note("balance-no-device")),)),
    )


def _at_work(record: Record, cores: int | None, core_note: Note) -> SizingRatio:
    if (known := streams(record)) is None:
        return SizingRatio(note("balance-clients"), "1", _over(float(record.cell.load.clients), cores), core_note)
    count, words = known
    of = note("balance-of-streams", streams=words, cores=core_note)
    return SizingRatio(note("balance-streams"), "1", _over(float(count), cores), of)


def _throughput_name(records: Sequence[Record]) -> Note:
    """Returns the name of the throughput ratio. The name contains the unit of work, unless throughput is the workload's
    leading metric."""
    if leading(records[0])[0] == "throughput":
        return note("balance-throughput")
    return note("balance-throughput", units=counted_in(records)[1])


def _cores(record: Record, machine: Mapping[str, Any]) -> tuple[int | None, Note]:
    """Returns the number of cores that the system can use, with a note that explains the number."""
    cores, of_threads = usable_cores(record, machine_cores(machine)), on_bare_machine(record)
    if cores is None:
        return None, note("balance-cores-unknown")
    if pinned_cpus(record):
        return cores, note("balance-cores", cores=cores, held_by="threads" if of_threads else "engine")
    alone = of_threads or machine_of(record) != record.machine
    return cores, note("balance-cores", cores=cores, shared=not alone)


def _data_to(name: Note, data: float | None, memory: float | None, of: str) -> SizingRatio:
    lacks = "data" if data is None else "" if memory else of
    return SizingRatio(name, "1", _over(data, memory), note("balance-size-unknown", of=lacks) if lacks else None)


def _cache_bytes(record: Record, engine: Mapping[str, Any]) -> int | None:
    """Returns the declared cache size (`--memory`). If none is declared, returns the size from the engine's
    settings."""
    if record.system.memory_bytes is not None:
        return record.system.memory_bytes
    return cache_bytes(record, engine.get("settings", {}))


@dataclass(frozen=True, slots=True)
class _Device:
    roles: tuple[str, ...]
    counted: tuple[str, ...]
    """Roles of the device, one for each partition. The kernel counts the I/O of each partition separately, so the I/O
    of the device is the sum over these roles."""
    called: str = ""
    """Name of the device. Empty if only its roles are known."""

    @property
    def name(self) -> dict[str, Any]:
        """Values that identify the device in a note."""
        return {"device": self.called} if self.called else {"roles": self.roles}

    def entry(self, name: Note, unit: str, value: float | None, machine: str) -> SizingRatio:
        if self.called:
            return SizingRatio(name, unit, value, note("balance-roles", roles=self.roles), machine=machine)
        return SizingRatio(name, unit, value)


def _bandwidth(records: Sequence[Record], device: _Device, cores: float | None) -> SizingRatio:
    used = _used(records, device, "device_read_bytes_per_s", "device_write_bytes_per_s")
    return device.entry(note("balance-bandwidth", **device.name), "bytes/s", _over(used, cores), machine_of(records[0]))


def _operations(records: Sequence[Record], device: _Device, cores: float | None) -> SizingRatio:
    used = _used(records, device, "device_reads_per_s", "device_writes_per_s")
    return device.entry(note("balance-operations", **device.name), "1/s", _over(used, cores), machine_of(records[0]))


def _used(records: Sequence[Record], device: _Device, *metrics: str) -> float | None:
    return _sum(records, *(f"{metric}{{role={role}}}" for role in device.counted for metric in metrics))


def _devices(record: Record, machine: Mapping[str, Any]) -> tuple[_Device, ...]:
    """Lists each device once, with all roles stored on it."""
    devices: list[_Device] = []
    for role in ROLES:
        if not _counters(record, role):
            continue
        for number, one in enumerate(devices):
            if any(_shared(record, other, role, machine).device for other in one.roles):
                twin = any(_shared(record, other, role, machine).partition for other in one.counted)
                counted = one.counted if twin else (*one.counted, role)
                devices[number] = replace(one, roles=(*one.roles, role), counted=counted)
                break
        else:
            devices.append(_Device((role,), (role,), next(iter(stored_on(record, role, machine)), "")))
    names = [one.called for one in devices]
    # If a file system is missing from the fingerprint, its files appear to be on its parent's disk. Two devices then
    # have the same name. Names that occur twice are therefore left out.
    return tuple(replace(one, called="") if names.count(one.called) > 1 else one for one in devices)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Whether two roles have the same device, and whether they have the same partition."""

    device: bool
    partition: bool


def _shared(record: Record, role: str, other: str, machine: Mapping[str, Any]) -> _Shared:
    """Compares the locations of two roles' directories. If a location is unknown, compares their I/O counters."""
    a, b = (stored_on(record, one, machine) for one in (role, other))
    uses = [record.metrics.get(f"capacity_used_share{{role={one}}}") for one in (role, other)]
    known = bool(a and b)
    if a == b and None not in uses:
        # Fingerprints omit loop devices and mounts below /tmp, so equal locations may be wrong. If the used fractions
        # differ, the roles are on different file systems.
        known = known and isclose(uses[0] or 0.0, uses[1] or 0.0, rel_tol=ONE_DEVICE)
    if not known:
        alike = _alike(_counters(record, role), _counters(record, other))
        return _Shared(alike, alike)
    return _Shared(a[0] == b[0], a == b)


def _counters(record: Record, role: str) -> dict[str, float]:
    suffix = f"{{role={role}}}"
    return {
        name.removesuffix(suffix): value
        for name, value in record.metrics.items()
        if name.startswith("device_") and name.endswith(suffix)
    }


def _alike(a: dict[str, float], b: dict[str, float]) -> bool:
    """Returns whether two sets of counters belong to the same device. Slight differences are permitted, because the two
    sets were read at slightly different times. Returns False for an idle device."""
    return a.keys() == b.keys() and any(a.values()) and all(isclose(a[name], b[name], rel_tol=ONE_DEVICE) for name in a)


def _checkpoints(records: Sequence[Record]) -> SizingRatio:
    name, interval = note("balance-checkpoint-interval"), _metric(records, "checkpoint_interval_s")
    count = _metric(records, "checkpoints")
    if interval is None and count is not None:
        seen = note("balance-checkpoints", checkpoints=count, elapsed_s=records[0].elapsed_s)
        return SizingRatio(name, "s", None, words=seen)
    return SizingRatio(name, "s", interval)


def _log(records: Sequence[Record]) -> SizingRatio:
    name, known = note("balance-log"), described(records[0])
    if not known.units_only:
        return SizingRatio(name, "bytes", None, note("balance-log-of-other-work", units=known.units[1]))
    return SizingRatio(name, "bytes", _metric(records, "wal_bytes_per_transaction"))


def _metric(records: Sequence[Record], name: str) -> float | None:
    summary = summarise([record.metrics[name] for record in records if name in record.metrics])
    return summary.centre if summary else None


def _sum(records: Sequence[Record], *names: str) -> float | None:
    parts = [part for part in (_metric(records, name) for name in names) if part is not None]
    return sum(parts) if parts else None


def _over(value: float | None, divisor: float | None) -> float | None:
    return value / divisor if value is not None and divisor else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value else None
