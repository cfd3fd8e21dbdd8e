"""Traces of an emulated device: one row per I/O, in Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from ironbench.errors import FailureError, InputError, nearest

COLUMNS = {
    "time_ns": "when it arrived, in nanoseconds since the device was mounted",
    "op": "read, write or flush",
    "offset": "its first byte on the device; of a partition's image plus where the partition begins",
    "length": "bytes; 0 of a flush",
    "completed_ns": "when it was answered, on the clock of time_ns",
    "partition": "of which partition: data, temp or log",
}
"""Name → meaning; the names are also those of the Parquet file."""
OPS = ("read", "write", "flush")

_ORDERED = """
SELECT time_ns::UBIGINT AS time_ns,
       (CASE lower(op::VARCHAR) WHEN 'read' THEN 0 WHEN 'write' THEN 1 WHEN 'flush' THEN 2 ELSE 9 END)::UTINYINT AS op,
       "offset"::UBIGINT AS "offset", length::UINTEGER AS length, completed_ns::UBIGINT AS completed_ns,
       "partition"::VARCHAR AS "partition"
FROM read_parquet(?) ORDER BY time_ns
"""


@dataclass(frozen=True, slots=True)
class Trace:
    """Columns of one length, ordered by `time_ns`; `op` as its place in `OPS`."""

    time_ns: np.ndarray[Any, np.dtype[np.uint64]]
    op: np.ndarray[Any, np.dtype[np.uint8]]
    offset: np.ndarray[Any, np.dtype[np.uint64]]
    length: np.ndarray[Any, np.dtype[np.uint32]]
    completed_ns: np.ndarray[Any, np.dtype[np.uint64]]
    partition: np.ndarray[Any, np.dtype[np.object_]]

    def for_core(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """As `_core.replay_trace` takes its columns."""
        return (
            self.time_ns.astype("<u8").tobytes(),
            self.op.astype("u1").tobytes(),
            self.offset.astype("<u8").tobytes(),
            self.length.astype("<u4").tobytes(),
            self.completed_ns.astype("<u8").tobytes(),
        )

    def end(self) -> int:
        """The first byte beyond all that was touched."""
        touched = self.op != OPS.index("flush")
        return int((self.offset[touched] + self.length[touched]).max(initial=0))


def read(path: Path) -> Trace:
    """A trace from Parquet. InputError: it is not there, or no trace."""
    if not path.is_file():
        raise InputError(f"trace {path}", "there is no such file", "`ironbench device mount --trace FILE` records one")
    with duckdb.connect() as database:
        try:
            names = [
                row[0] for row in database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            ]
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise InputError(f"trace {path}", f"it has no column {missing[0]}", nearest(missing[0], names))
            table = database.execute(_ORDERED, [str(path)]).fetchnumpy()
        except duckdb.Error as error:
            cause = str(error).partition("\n")[0]
            raise InputError(f"trace {path}", f"cannot be read: {cause}", "a trace is a Parquet file") from error
    found = Trace(*(np.ma.getdata(table[name]) for name in COLUMNS))
    if (found.op >= len(OPS)).any():
        raise InputError(f"trace {path}", "an op in it is none", f"known: {', '.join(OPS)}")
    return found


def write(path: Path, trace: Trace) -> None:
    """As Parquet. FailureError: it cannot be written."""
    table = {name: getattr(trace, name) for name in COLUMNS if name != "op"}
    table["op"] = np.array(OPS, dtype=object)[trace.op]
    with duckdb.connect() as database:
        database.register("trace", table)
        target = str(path).replace("'", "''")
        ordered = ", ".join(f'"{name}"' for name in COLUMNS)
        try:
            database.execute(f"COPY (SELECT {ordered} FROM trace) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        except duckdb.Error as error:
            raise FailureError(f"trace {path}", f"cannot be written: {error}") from error
