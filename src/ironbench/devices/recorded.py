"""From the raw rows that a device's process writes to a trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.model.system import Partition

RAW = ".raw"
"""Ending of the file that the device's process writes."""


def raw(path: Path) -> Path:
    """What the device's process writes for a trace that is to be at `path`."""
    return path.with_name(path.name + RAW)


Span = tuple[int, int]
"""Beginning and end, on the clock of the rows."""


def on_its_clock(counters: Path, started_unix_s: float, elapsed_s: float) -> Span:
    """What we know by the time of day. `counters`: of the device, see `observe/emulation.py`. OSError, ValueError."""
    descriptor = os.open(counters, os.O_RDONLY)
    try:
        # One read: a second one would begin where other counts have been put.
        told, now_s = os.read(descriptor, 1 << 20), time.time()
    finally:
        os.close(descriptor)
    began = json.loads(told)["now_ns"] - round((now_s - started_unix_s) * 1e9)
    return began, began + round(elapsed_s * 1e9)


def finish(path: Path, partitions: Sequence[Partition], trials: Sequence[Span] = ()) -> int:
    """Makes a trace of the raw rows, which are removed; how many there were. `trials`: when they were measured.

    FailureError.
    """
    import numpy as np

    from ironbench.devices import trace

    # crates/ironbench-device/src/live/recording.rs
    words = [(name, "<u8") for name in ("time", "offset", "completed", "used", "runnable", "own")]
    row = np.dtype([*words, ("length", "<u4"), ("op", "u1", 4)])
    written = raw(path)
    try:
        rows = np.fromfile(written, dtype=row)
        rows = rows[np.argsort(rows["time"], kind="stable")]
        starts = np.cumsum([0, *(one.bytes for one in partitions[:-1])])
        names = np.array([one.role for one in partitions], dtype=object)
        trial = np.zeros(len(rows), "u2")
        for number, (began, ended) in enumerate(trials, 1):
            trial[(rows["time"] >= began) & (rows["time"] < ended)] = number
        cores = os.cpu_count() or 1
        found = trace.Trace(
            rows["time"].copy(),
            rows["op"][:, 0].copy(),
            rows["offset"].copy(),
            rows["length"].copy(),
            rows["completed"].copy(),
            names[np.searchsorted(starts, rows["offset"], side="right") - 1],
            trial,
            trace.Processors(cores, rows["used"].copy(), rows["runnable"].copy(), rows["own"].copy()),
        )
        trace.write(path, found)
        written.unlink()
    except OSError as error:
        raise FailureError(f"trace {path}", str(error)) from error
    return len(rows)
