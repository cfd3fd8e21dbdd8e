"""The balance sheet (design, promise 9): ratios, not sizes, decide whether a small system stands for a big one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from types import MappingProxyType
from typing import Any

from ironbench import engines, units, workloads
from ironbench.analyse.subjects import bare, cores_held, held_to, machine_cores
from ironbench.analyse.summarise import summarise
from ironbench.analyse.timelines import ONE_DEVICE
from ironbench.model.record import Record
from ironbench.words import counted

ROLES = ("data", "log", "temp")


@dataclass(frozen=True, slots=True)
class Entry:
    """One ratio of a system. `value` is None where it is not recorded: unknown, not zero."""

    name: str
    unit: str
    """`1`, `s`, `bytes`, `bytes/s`, `1/s` or `share`."""
    value: float | None
    note: str = ""
    words: str = ""
    """Shown instead of a number."""


def balance(
    records: Sequence[Record], machine: Mapping[str, Any], engine: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Entry, ...]:
    """The sheet of trials of one cell (medians over them). `machine`, `engine`: their facts, empty when unknown."""
    cores, core_note = _cores(records[0], machine)
    data = _metric(records, "data_bytes")
    devices = _devices(records)
    return (
        _data_to(data, _cache_bytes(records[0], engine), "data to engine's cache"),
        _data_to(data, _number(machine.get("memory_bytes")), "data to machine's memory"),
        Entry("clients per core", "1", _over(float(records[0].cell.load.clients), cores), core_note),
        Entry("throughput per core", "1/s", _over(_metric(records, "throughput"), cores)),
        *(_device(records, role, name, cores) for role, name in devices.items()),
        *(_operations(records, role, name, cores) for role, name in devices.items()),
        *(() if devices else (Entry("device bandwidth per core", "bytes/s", None, "no device was seen"),)),
        _checkpoints(records),
        _log(records),
        Entry("data file system in use", "share", _metric(records, "capacity_used_share{role=data}")),
    )


def _cores(record: Record, machine: Mapping[str, Any]) -> tuple[int | None, str]:
    """Of the system, and how that is known."""
    cores, of_threads = cores_held(record, machine_cores(machine)), bare(record)
    if cores is None:
        return None, "number of cores not known"
    words = counted(cores, "core")
    if held_to(record):
        return cores, f"{words} given to the {'threads' if of_threads else 'engine'}"
    return cores, words if of_threads else f"{words}, shared with the clients"


def _data_to(data: float | None, memory: float | None, name: str) -> Entry:
    lacks = "the data" if data is None else "" if memory else name.removeprefix("data to ")
    return Entry(name, "1", _over(data, memory), lacks and f"size of {lacks} not recorded")


def _cache_bytes(record: Record, engine: Mapping[str, Any]) -> int | None:
    """As declared (`--memory`), else by the engine's own settings."""
    if record.system.memory_bytes is not None:
        return record.system.memory_bytes
    known = engines.find(record.system.engine)
    return known.cache_bytes(engine.get("settings", {}), record.cell.load.clients) if known else None


def _device(records: Sequence[Record], role: str, name: str, cores: float | None) -> Entry:
    used = _sum(records, f"device_read_bytes_per_s{{role={role}}}", f"device_write_bytes_per_s{{role={role}}}")
    return Entry(f"{name} device: bandwidth used per core", "bytes/s", _over(used, cores))


def _operations(records: Sequence[Record], role: str, name: str, cores: float | None) -> Entry:
    used = _sum(records, f"device_reads_per_s{{role={role}}}", f"device_writes_per_s{{role={role}}}")
    return Entry(f"{name} device: operations used per core", "1/s", _over(used, cores))


def _devices(records: Sequence[Record]) -> dict[str, str]:
    """Role → name, each device once: roles with equal counters share one, so `data` may stand for data and log."""
    names: dict[str, str] = {}
    for role in ROLES:
        own = _counters(records[0], role)
        twin = next((other for other in names if _alike(_counters(records[0], other), own)), None)
        if twin:
            names[twin] += f" and {role}"
        elif own:
            names[role] = role
    return names


def _counters(record: Record, role: str) -> dict[str, float]:
    suffix = f"{{role={role}}}"
    return {
        name.removesuffix(suffix): value
        for name, value in record.metrics.items()
        if name.startswith("device_") and name.endswith(suffix)
    }


def _alike(a: dict[str, float], b: dict[str, float]) -> bool:
    """Whether two roles show one device: a device that did nothing may be any."""
    return a.keys() == b.keys() and any(a.values()) and all(isclose(a[name], b[name], rel_tol=ONE_DEVICE) for name in a)


def _checkpoints(records: Sequence[Record]) -> Entry:
    interval = _metric(records, "checkpoint_interval_s")
    count = _metric(records, "checkpoints")
    if interval is None and count is not None:
        seen = "no checkpoint" if count == 0 else counted(count, "checkpoint")
        return Entry("checkpoint interval", "s", None, words=f"{seen} in {units.span(records[0].elapsed_s)}")
    return Entry("checkpoint interval", "s", interval)


def _log(records: Sequence[Record]) -> Entry:
    name, choice = "log per transaction", records[0].choice
    workload = workloads.find(choice.workload)
    if workload is not None and not workload.counts_all(choice.options):
        return Entry(name, "bytes", None, f"other work than {workload.counts[1]} writes it")
    return Entry(name, "bytes", _metric(records, "wal_bytes_per_transaction"))


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
