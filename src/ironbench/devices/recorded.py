"""From the raw rows that a device's process writes to a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.model.system import Partition

RAW = ".raw"
"""Ending of the file that the device's process writes."""


def raw(path: Path) -> Path:
    """What the device's process writes for a trace that is to be at `path`."""
    return path.with_name(path.name + RAW)


def finish(path: Path, partitions: Sequence[Partition]) -> int:
    """Makes a trace of the raw rows, which are removed; how many there were. FailureError."""
    import numpy as np

    from ironbench.devices import trace

    # crates/ironbench-device/src/live/recording.rs
    row = np.dtype([("time", "<u8"), ("offset", "<u8"), ("completed", "<u8"), ("length", "<u4"), ("op", "u1", 4)])
    written = raw(path)
    try:
        rows = np.fromfile(written, dtype=row)
        rows = rows[np.argsort(rows["time"], kind="stable")]
        starts = np.cumsum([0, *(one.bytes for one in partitions[:-1])])
        names = np.array([one.role for one in partitions], dtype=object)
        found = trace.Trace(
            rows["time"].copy(),
            rows["op"][:, 0].copy(),
            rows["offset"].copy(),
            rows["length"].copy(),
            rows["completed"].copy(),
            names[np.searchsorted(starts, rows["offset"], side="right") - 1],
        )
        trace.write(path, found)
        written.unlink()
    except OSError as error:
        raise FailureError(f"trace {path}", str(error)) from error
    return len(rows)
