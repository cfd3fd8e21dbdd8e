"""Traces of an emulated device: one row per I/O, in Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from ironbench.errors import FailureError, InputError, nearest

COLUMNS = {
    "time_ns": "arrival at the model, after the I/Os that it is assumed to depend on; in nanoseconds since the mount",
    "op": "read, write or flush",
    "offset": "first byte on the device; the offset in the partition's image plus the start of the partition",
    "length": "size in bytes; 0 for a flush",
    "completed_ns": "completion time by the model, or the time of the answer if that is later; same clock as time_ns",
    "partition": "partition: data, temp or log",
}
"""The meaning of each column. The keys are the column names of the Parquet file."""
LATER = {
    "trial": "number of the trial that ran at time_ns, starting from 1; 0 outside trials",
    "device": "the emulated device that was recorded, as an expression",
    "device_bytes": "capacity of the device in bytes",
}
"""Columns that traces of earlier versions may lack. Such traces may also contain CPU counters, which are ignored."""
OPS = ("read", "write", "flush")

_FIRST = """
SELECT time_ns::UBIGINT AS time_ns,
       (CASE lower(op::VARCHAR) WHEN 'read' THEN 0 WHEN 'write' THEN 1 WHEN 'flush' THEN 2 ELSE 9 END)::UTINYINT AS op,
       "offset"::UBIGINT AS "offset", length::UINTEGER AS length, completed_ns::UBIGINT AS completed_ns,
       "partition"::VARCHAR AS "partition\""""
_LATER = {
    "trial": "trial::USMALLINT AS trial",
    "device": "device::VARCHAR AS device",
    "device_bytes": "device_bytes::UBIGINT AS device_bytes",
}
_LAST = "FROM read_parquet(?, file_row_number = true) ORDER BY time_ns, file_row_number"
ALL = "all"
"""Value of `--trial` that selects every I/O."""


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """The emulated device on which a trace was recorded."""

    device: str
    """Device expression."""
    capacity: int
    """Capacity in bytes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded trace as columns of equal length, ordered by `time_ns`. `op` is an index into `OPS`."""

    time_ns: np.ndarray[Any, np.dtype[np.uint64]]
    op: np.ndarray[Any, np.dtype[np.uint8]]
    offset: np.ndarray[Any, np.dtype[np.uint64]]
    length: np.ndarray[Any, np.dtype[np.uint32]]
    completed_ns: np.ndarray[Any, np.dtype[np.uint64]]
    partition: np.ndarray[Any, np.dtype[np.object_]]
    trial: np.ndarray[Any, np.dtype[np.uint16]] | None = None
    recorded: RecordedDevice | None = None
    """The device on which the trace was recorded, or None if the trace does not name the device."""

    def for_core(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Encodes the columns for `_core.replay_trace`."""
        return (
            self.time_ns.astype("<u8").tobytes(),
            self.op.astype("u1").tobytes(),
            self.offset.astype("<u8").tobytes(),
            self.length.astype("<u4").tobytes(),
            self.completed_ns.astype("<u8").tobytes(),
        )

    def measured(self, trial: str = "") -> Trace:
        """Selects the I/Os that arrived during one trial. If `trial` is empty, selects those of the only trial in the
        trace. Returns all I/Os if the trace has no trials.

        `trial`: a number, `ALL`, or empty. Raises InputError if there is no such trial. Also raises InputError if
        `trial` is empty and the trace has several trials.
        """
        known = [] if self.trial is None else [int(number) for number in np.unique(self.trial) if number]
        if trial == ALL or (not trial and not known):
            return self
        numbers = " ".join(str(number) for number in known)
        if trial and trial not in numbers.split():
            has = f"it has {numbers}" if known else "no trial ran during the recording"
            raise InputError(f"--trial {trial}", f"the trace has no such trial: {has}", f"or use {ALL}")
        if not trial and len(known) > 1:
            raise InputError("trace", f"has {len(known)} trials", f"choose one with --trial ({numbers}), or {ALL}")
        return self._rows(np.equal(np.asarray(self.trial), int(trial or known[0])))

    def _rows(self, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> Trace:
        columns: dict[str, Any] = {name: getattr(self, name)[chosen] for name in COLUMNS}
        trial = None if self.trial is None else self.trial[chosen]
        return Trace(**columns, trial=trial, recorded=self.recorded)

    def end(self) -> int:
        """Returns the offset of the first byte after all accessed bytes."""
        touched = self.op != OPS.index("flush")
        return int((self.offset[touched] + self.length[touched]).max(initial=0))


def read(path: Path) -> Trace:
    """Reads a trace from Parquet. Raises InputError if the file is missing or is not a trace."""
    if not path.is_file():
        raise InputError(f"trace {path}", "does not exist", "`ironbench device mount --trace FILE` records one")
    with duckdb.connect() as database:
        try:
            names = [
                row[0] for row in database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            ]
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise InputError(f"trace {path}", f"has no column {missing[0]}", nearest(missing[0], names))
            selected = ", ".join([_FIRST, *(_LATER[name] for name in LATER if name in names)])
            table = database.execute(f"{selected} {_LAST}", [str(path)]).fetchnumpy()
        except duckdb.Error as error:
            cause = str(error).partition("\n")[0]
            raise InputError(f"trace {path}", f"cannot be read: {cause}", "a trace is a Parquet file") from error
    columns: dict[str, Any] = {name: np.ma.getdata(values) for name, values in table.items()}
    recorded = None
    if columns.keys() >= {"device", "device_bytes"} and len(columns["device"]):
        recorded = RecordedDevice(str(columns["device"][0]), int(columns["device_bytes"][0]))
    plain = {name: columns[name] for name in COLUMNS}
    trace = Trace(**plain, trial=columns.get("trial"), recorded=recorded)
    if (trace.op >= len(OPS)).any():
        raise InputError(f"trace {path}", "contains an unknown operation", f"known: {', '.join(OPS)}")
    return trace


def write(path: Path, trace: Trace) -> None:
    """Writes the trace as Parquet. Raises FailureError."""
    table = {name: getattr(trace, name) for name in COLUMNS if name != "op"}
    table["op"] = np.array(OPS, dtype=object)[trace.op]
    if trace.trial is not None:
        table["trial"] = trace.trial
    if (recorded := trace.recorded) is not None:
        table["device"] = np.full(len(trace.op), recorded.device, dtype=object)
        table["device_bytes"] = np.full(len(trace.op), recorded.capacity, "u8")
    with duckdb.connect() as database:
        database.register("trace", table)
        target = str(path).replace("'", "''")
        ordered = ", ".join(f'"{name}"' for name in (*COLUMNS, *LATER) if name in table)
        try:
            database.execute(f"COPY (SELECT {ordered} FROM trace) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.Error as error:
            raise FailureError(f"trace {path}", f"cannot be written: {error}") from error
