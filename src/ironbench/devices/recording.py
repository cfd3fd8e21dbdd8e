"""Converts the raw rows that a device's process writes into a trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.model.system import Device

RAW = ".raw"
"""Suffix of the file that the device's process writes."""


def raw(path: Path) -> Path:
    """Returns the path of the raw rows for a trace at `path`."""
    return path.with_name(path.name + RAW)


@dataclass(frozen=True, slots=True)
class TraceWindow:
    """Start and end of a trial on the clock of the trace."""

    start_ns: int
    end_ns: int


def trace_window(counters: Path, started_unix_s: float, elapsed_s: float) -> TraceWindow:
    """Converts the measured time of a trial from time of day to the clock of the trace. `counters`: the device's
    counters file (`trial/observe/emulation.py`). Raises OSError."""
    descriptor = os.open(counters, os.O_RDONLY)
    try:
        # The whole file is read by one call, so that the device's clock in it and the time of day are read at the same
        # moment.
        text, now_s = os.read(descriptor, 1 << 20), time.time()
    finally:
        os.close(descriptor)
    start_ns = int(json.loads(text)["now_ns"] - round((now_s - started_unix_s) * 1e9))
    return TraceWindow(start_ns, start_ns + round(elapsed_s * 1e9))


def finish(path: Path, device: Device, trials: Sequence[TraceWindow] = ()) -> int:
    """Converts the raw rows into a trace, and deletes the raw file. Returns the number of rows. Raises FailureError."""
    import numpy as np

    from ironbench.devices import trace

    # The layout of a raw row is defined in crates/ironbench-device/src/live/trace_writer.rs.
    words = [(name, "<u8") for name in ("time", "offset", "completed")]
    row = np.dtype([*words, ("length", "<u4"), ("op", "u1", 4)])
    written = raw(path)
    try:
        rows = np.fromfile(written, dtype=row)
        rows = rows[np.argsort(rows["time"], kind="stable")]
        starts = np.cumsum([0, *(one.bytes for one in device.partitions[:-1])])
        names = np.array([one.role for one in device.partitions], dtype=object)
        trial = np.zeros(len(rows), "u2")
        for number, one in enumerate(trials, 1):
            trial[(rows["time"] >= one.start_ns) & (rows["time"] < one.end_ns)] = number
        recorded = trace.Trace(
            rows["time"].copy(),
            rows["op"][:, 0].copy(),
            rows["offset"].copy(),
            rows["length"].copy(),
            rows["completed"].copy(),
            names[np.searchsorted(starts, rows["offset"], side="right") - 1],
            trial=trial,
            recorded=trace.RecordedDevice(device.model, sum(one.bytes for one in device.partitions)),
        )
        trace.write(path, recorded)
        written.unlink()
    except OSError as error:
        raise FailureError(f"trace {path}", str(error)) from error
    return len(rows)
