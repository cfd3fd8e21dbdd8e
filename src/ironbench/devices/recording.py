"""Converts the raw rows that a device's process writes into a trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.errors import FailureError
from ironbench.model.driven import CpuUse
from ironbench.model.system import Device

RAW = ".raw"
"""Suffix of the file that the device's process writes."""


def raw(path: Path) -> Path:
    """Path of the raw rows for a trace at `path`."""
    return path.with_name(path.name + RAW)


@dataclass(frozen=True, slots=True)
class TraceWindow:
    """Start and end of a trial in nanoseconds, on the clock of the rows."""

    began: int
    ended: int
    computed: tuple[int, int, int] | None
    """CPU time of the engine and of ironbench: start and end of the interval, and CPU nanoseconds used in it; None if
    unknown."""


def on_its_clock(counters: Path, started_unix_s: float, elapsed_s: float, computed: CpuUse | None) -> TraceWindow:
    """Converts measured times of day to the clock of the rows. `counters`: counters file of the device, see
    `trial/observe/emulation.py`. Raises OSError."""
    descriptor = os.open(counters, os.O_RDONLY)
    try:
        # A single read call, so that both clocks are read at the same moment.
        text, now_s = os.read(descriptor, 1 << 20), time.time()
    finally:
        os.close(descriptor)
    now_ns = json.loads(text)["now_ns"]

    def on_clock(unix_s: float) -> int:
        return int(now_ns - round((now_s - unix_s) * 1e9))

    began = on_clock(started_unix_s)
    known = None
    if computed is not None:
        span = on_clock(computed.began_unix_s), on_clock(computed.ended_unix_s)
        known = (*span, round(computed.cpu_s * 1e9))
    return TraceWindow(began, began + round(elapsed_s * 1e9), known)


def finish(path: Path, device: Device, trials: Sequence[TraceWindow] = ()) -> int:
    """Writes the trace from the raw rows and deletes them; returns the number of rows. Raises FailureError."""
    import numpy as np

    from ironbench.devices import trace

    # The layout of a raw row is defined in crates/ironbench-device/src/live/recording.rs.
    words = [(name, "<u8") for name in ("time", "offset", "completed", "used", "runnable", "own")]
    row = np.dtype([*words, ("length", "<u4"), ("op", "u1", 4)])
    written = raw(path)
    try:
        rows = np.fromfile(written, dtype=row)
        rows = rows[np.argsort(rows["time"], kind="stable")]
        starts = np.cumsum([0, *(one.bytes for one in device.partitions[:-1])])
        names = np.array([one.role for one in device.partitions], dtype=object)
        trial, share = np.zeros(len(rows), "u2"), np.ones(len(rows), "f4")
        for number, one in enumerate(trials, 1):
            within = (rows["time"] >= one.began) & (rows["time"] < one.ended)
            trial[within] = number
            share[within] = _share(one, rows["completed"], rows["used"])
        cores = os.cpu_count() or 1
        recorded = trace.Trace(
            rows["time"].copy(),
            rows["op"][:, 0].copy(),
            rows["offset"].copy(),
            rows["length"].copy(),
            rows["completed"].copy(),
            names[np.searchsorted(starts, rows["offset"], side="right") - 1],
            trial=trial,
            processors=trace.CpuCounters(
                cores, rows["used"].copy(), rows["runnable"].copy(), rows["own"].copy(), share
            ),
            recorded=trace.RecordedDevice(device.model, sum(one.bytes for one in device.partitions)),
        )
        trace.write(path, recorded)
        written.unlink()
    except OSError as error:
        raise FailureError(f"trace {path}", str(error)) from error
    return len(rows)


def _share(one: TraceWindow, completed: Any, used: Any) -> float:
    """Share of the machine's CPU time that the engine and ironbench used during the trial."""
    import numpy as np

    if one.computed is None or not len(used):
        return 1.0
    order = np.argsort(completed)
    machine = [np.interp(at, completed[order], used[order]) for at in one.computed[:2]]
    total = float(machine[1] - machine[0])
    return min(1.0, one.computed[2] / total) if total > 0 else 1.0
