"""What a read costs the processor: CPU time of an engine that reads, less that of one that has the same in memory.

An I/O costs CPU time whatever the device: it is issued, completed, and something is evicted for it. The same work on
the same engine, once from the device and once cached, differs by that. Only real devices are looked at: an emulated
one spends CPU time of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.summarise import Summary, summarise
from ironbench.model.record import Record

_READS = "device_reads_per_s{role=data}"
_BYTES = "device_read_bytes_per_s{role=data}"
_FEWEST = 1000.0
"""Reads of a trial: fewer cost less than what two trials differ by."""
_MORE = 10.0
"""Times as many as where the same is cached."""
_MOST_S = 1e-3
"""A read costs microseconds of CPU time: what comes to more is the difference of something else."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """One system that reads, beside the one that reads least; figures over pairs of trials of a block."""

    name: str
    cached: str
    reads: Summary
    size_bytes: Summary
    engine_s: Summary
    """CPU time of the engine's processes for a read; above nothing in every pair, and in its interval."""
    whole_s: Summary | None
    """The same with all that belongs to nobody: the kernel's own threads and interrupts, and other programs. None where
    that was not measured, or differs by more than reads can explain."""


@dataclass(frozen=True, slots=True)
class _Used:
    reads: float
    bytes: float
    engine_s: float
    other_s: float | None


def read_costs(groups: Sequence[tuple[str, Sequence[Record]]]) -> tuple[ReadCost, ...]:
    """`groups`: name and comparable trials of the same work. Empty where none is cached beside one that reads."""
    known = [(name, used) for name, records in groups if (used := _by_block(records))]
    if len(known) < 2:
        return ()
    cached, least = min(known, key=lambda one: _mean([used.reads for used in one[1].values()]))
    engines = {name: {record.system.engine for record in records} for name, records in groups}
    found = [
        _cost(name, used, cached, least) for name, used in known if name != cached and engines[name] == engines[cached]
    ]
    return tuple(one for one in found if one)


def _by_block(records: Sequence[Record]) -> dict[int, _Used]:
    found = {}
    for record in records:
        metrics = record.metrics
        if record.system.layout.devices or "emulation_cpu_cores" in metrics:
            continue
        if _READS in metrics and _BYTES in metrics and "engine_cpu_s" in metrics:
            seconds = record.elapsed_s
            found[record.block] = _Used(
                metrics[_READS] * seconds, metrics[_BYTES] * seconds, metrics["engine_cpu_s"], _other_s(record)
            )
    return found


def _other_s(record: Record) -> float | None:
    """CPU seconds of nobody known; the number of cores follows from the engine's share of all of them."""
    if record.budget.server <= 0:
        return None
    return (record.budget.other + record.budget.kernel) / record.budget.server * record.metrics["engine_cpu_s"]


def _cost(name: str, used: dict[int, _Used], cached: str, least: dict[int, _Used]) -> ReadCost | None:
    pairs = [(one, least[block]) for block, one in sorted(used.items()) if block in least]
    more = [
        (one, other, one.reads - other.reads)
        for one, other in pairs
        if one.reads >= _FEWEST and one.reads >= _MORE * other.reads
    ]
    reads = summarise([count for _, _, count in more])
    engine_s = summarise([(one.engine_s - other.engine_s) / count for one, other, count in more])
    size = summarise([(one.bytes - other.bytes) / count for one, other, count in more])
    if reads is None or engine_s is None or size is None:
        return None
    if not _of_reads(engine_s):
        return None
    whole = [
        (one.engine_s - other.engine_s + one.other_s - other.other_s) / count
        for one, other, count in more
        if one.other_s is not None and other.other_s is not None
    ]
    whole_s = summarise(whole)
    return ReadCost(name, cached, reads, size, engine_s, whole_s if whole_s and _of_reads(whole_s) else None)


def _of_reads(cost_s: Summary) -> bool:
    """Whether CPU time for a read can be what a read costs; else the trials differ in more than reads."""
    least_s = cost_s.low if cost_s.interval is None else min(cost_s.low, cost_s.interval[0])
    return least_s > 0 and cost_s.high <= _MOST_S


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
