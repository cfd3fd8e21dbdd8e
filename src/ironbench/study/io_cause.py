"""Decides whether the server can have caused the I/O that a device counted.

The kernel counts I/O per device, for all programs on the machine (Linux: Documentation/block/stat.rst). If throughput
drops, constant I/O of other programs looks like an increase of I/O per transaction. An emulated device is used by a
single server, so its I/O belongs to this server. For any other device, the engine's counters show how much of the I/O
the server can have caused.
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
"""For each metric of a device, the counters with which the engine counts the same I/O. Temporary files are assumed to
be written once and read once."""
_READS = ("device_reads_per_s", "device_read_bytes_per_s")
_COUNTED = ("engine_reads_per_s", "engine_writes_per_s", "engine_extends_per_s", "engine_fsyncs_per_s")
"""An engine that counts its I/O reports at least one of these counters, and omits counters that are 0."""
_ENOUGH = 0.5
"""The engine must have requested at least this fraction of the device's I/O. The rest may come from the file system,
which adds I/O and rounds up to pages."""
_LOG_RECORD_BYTES = 24
"""Length of the shortest WAL record in bytes (PostgreSQL: SizeOfXLogRecord). If a trial has less WAL per transaction
than this, its transactions write nothing."""
_MAINTENANCE = 0.01
"""If at most this fraction of the transactions write, their writes are attributed to the server itself (autovacuum,
statistics)."""


class Cause(Enum):
    """Possible cause of a device's I/O."""

    SERVER = "server"
    """Only the server uses the device, or the engine's counters explain enough of the I/O."""
    UNKNOWN = "unknown"
    """Several programs use the device, and the engine has no counters for this I/O."""
    OTHERS = "others"
    """The engine's counters rule out the server."""


def cause(sides: Sequence[Sequence[Record]], name: str) -> Cause:
    """Determines the possible cause of the I/O that a metric counts. The side with more of this I/O per transaction is
    examined. Returns `SERVER` for metrics that are not counters of a device."""
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
    own, whole = sum(_engine_io_rate(one, kind) for one in known), sum(one.metrics.get(name, 0.0) for one in known)
    if own >= _ENOUGH * whole:
        return Cause.SERVER
    # Writes are not ruled out, because the engine's counters are incomplete: each flush rewrites the last WAL page, but
    # engines count only the bytes of WAL records.
    return Cause.OTHERS if kind in _READS else Cause.UNKNOWN


def _per_transaction(side: Sequence[Record], name: str) -> float:
    rates = [(one.metrics.get(name, 0.0), one.metrics.get("throughput", 0.0)) for one in side]
    return fmean([rate / throughput for rate, throughput in rates if throughput > 0] or [0.0])


def _engine_io_rate(record: Record, kind: str) -> float:
    """Returns the engine's I/O per second. The result is the sum over all objects, because files of several roles may
    share a device."""
    metrics = record.metrics
    own = sum(value for name, value in metrics.items() if base_name(name) in _OWN[kind])
    if kind == "device_write_bytes_per_s" and "engine_write_bytes_per_s{object=wal}" not in metrics:
        own += metrics.get("wal_bytes_per_s", 0.0)
    return own


def _may_write(metrics: Mapping[str, float]) -> bool:
    """Returns whether the server may have written because of transactions. There must be enough WAL, and enough of the
    transactions must write."""
    log_bytes = metrics.get("wal_bytes_per_transaction", math.inf)
    writing, whole = metrics.get("writing_transactions_per_s", math.inf), metrics.get("throughput", 0.0)
    return log_bytes >= _LOG_RECORD_BYTES and writing > _MAINTENANCE * whole
