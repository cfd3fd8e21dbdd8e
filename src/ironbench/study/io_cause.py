"""Whether the server can have caused the I/O that a device counted.

The kernel counts I/O per device, for all programs on the machine (Linux: Documentation/block/stat.rst). What others
read and write, divided by fewer transactions, looks like more I/O per transaction. An emulated device belongs to one
server; on any other device, the engine's own counters show how much of the I/O can be the server's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from statistics import fmean

from ironbench.catalogue import base_name, part_of
from ironbench.model.record import Record

_OWN = {
    "device_reads_per_s": ("engine_reads_per_s",),
    "device_read_bytes_per_s": ("engine_read_bytes_per_s", "spill_bytes_per_s"),
    "device_writes_per_s": ("engine_writes_per_s", "engine_extends_per_s"),
    "device_write_bytes_per_s": ("engine_write_bytes_per_s", "engine_extend_bytes_per_s", "spill_bytes_per_s"),
    "device_flushes_per_s": ("engine_fsyncs_per_s",),
}
"""Metric of a device → the engine's own counts of the same I/O; temporary files are written and read once."""
_READS = ("device_reads_per_s", "device_read_bytes_per_s")
_COUNTED = ("engine_reads_per_s", "engine_writes_per_s", "engine_extends_per_s", "engine_fsyncs_per_s")
"""An engine that counts its I/O has one of these; it leaves out those that are 0."""
_ENOUGH = 0.5
"""Share of the device's I/O that the engine must have requested: file systems add their own, and round up to pages."""
_LOG_RECORD_BYTES = 24
"""The shortest WAL record (PostgreSQL: SizeOfXLogRecord): with less per transaction the work wrote nothing."""
_MAINTENANCE = 0.01
"""Writing transactions as a share of all, up to which they are the server's own (autovacuum, statistics)."""


class Cause(Enum):
    """Who can have caused the I/O of a device."""

    SERVER = "server"
    """The device is the server's alone, or the engine counted enough I/O itself."""
    UNKNOWN = "unknown"
    """The device is shared, and the engine's counters do not cover this I/O."""
    OTHERS = "others"
    """The engine's counters show that it cannot have been the server."""


def cause(sides: Sequence[Sequence[Record]], name: str) -> Cause:
    """Decides by the side with more of this I/O per transaction; metrics that no device counts are the server's."""
    kind, role = base_name(name), part_of(name).partition("=")[2]
    if kind not in _OWN:
        return Cause.SERVER
    most = max(sides, key=lambda side: _per_transaction(side, name))
    if all(one.system.layout.device_of(role) for one in most):
        return Cause.SERVER
    if kind not in _READS and not any(_may_write(one.metrics) for one in most):
        return Cause.OTHERS
    known = [one for one in most if any(base_name(metric) in _COUNTED for metric in one.metrics)]
    if not known:
        return Cause.UNKNOWN
    own, whole = sum(_own(one, kind) for one in known), sum(one.metrics.get(name, 0.0) for one in known)
    if own >= _ENOUGH * whole:
        return Cause.SERVER
    # A page of WAL is written again by each flush, which engines count by the bytes of its records.
    return Cause.OTHERS if kind in _READS else Cause.UNKNOWN


def _per_transaction(side: Sequence[Record], name: str) -> float:
    rates = [(one.metrics.get(name, 0.0), one.metrics.get("throughput", 0.0)) for one in side]
    return fmean([rate / throughput for rate, throughput in rates if throughput > 0] or [0.0])


def _own(record: Record, kind: str) -> float:
    """The engine's own I/O per second, of all objects: files of several roles may be on one device."""
    metrics = record.metrics
    own = sum(value for name, value in metrics.items() if base_name(name) in _OWN[kind])
    if kind == "device_write_bytes_per_s" and "engine_write_bytes_per_s{object=wal}" not in metrics:
        own += metrics.get("wal_bytes_per_s", 0.0)
    return own


def _may_write(metrics: Mapping[str, float]) -> bool:
    """Not if the server counted next to no WAL, or next to no transactions that wrote."""
    log_bytes = metrics.get("wal_bytes_per_transaction", math.inf)
    writing, whole = metrics.get("writing_transactions_per_s", math.inf), metrics.get("throughput", 0.0)
    return log_bytes >= _LOG_RECORD_BYTES and writing > _MAINTENANCE * whole
