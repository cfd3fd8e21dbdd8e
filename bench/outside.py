"""Measures an emulated device from outside: fio runs on the mounted file system, and the model executes exactly the
same I/Os.

fio logs its I/Os and their order (`--write_iolog`), and the file system reports their positions on the device (FIEMAP;
a file on XFS starts in the middle of the device). The model executes them in that order, without waiting and at the
same queue depth. Both then do the same work, and any difference is caused by the emulation. Independent random I/Os
would differ by themselves: on `hdd-7200`, the mean of 850 random reads by -3% to +3%, the 99th percentile of 1,650
reads at queue depth 32 by -4% to +5% (95 of 100 seeds), and 12 s of sequential reads by up to 14%, because a pass that
starts on other tracks uses other zones.

When its time is up, fio 3.33 waits until all I/Os in flight have ended, and assigns the end time of the last I/O to
each of them. At queue depth 32, the last 31 I/Os therefore appear to take up to twice as long, and the rate is computed
over a longer time although these I/Os are not counted. On `hdd-7200` this affects 4% of the rate of 4 s of reads, and
20% of the 99th percentile of 1,900 reads. Therefore fio's log of every I/O is used instead (`--write_lat_log`), without
the last I/Os, for the model as well as for fio.

Logs cost fio some microseconds per I/O. If 10,000 I/Os take only seconds, so that neither the positions nor the last
I/Os matter, no logs are written, and the model executes its own random I/Os for the same time. The 99th percentile may
then be at a discontinuity (for example if one write in a hundred waits for an erased block), so fio's result is
compared with the range of percentiles expected for other I/Os of the same kind.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ironbench import _core
from ironbench.devices import arrange, mounting
from ironbench.devices.models import for_core, models
from ironbench.model.system import Device, Partition

CAPACITY = 1 << 30
SPAN = 896 << 20
"""Size of the file that fio uses: nearly the whole device, so that all seek distances of a disk occur."""
SEED = 0
"""Seed of the device and of the model."""

_FIEMAP = 0xC020660B
"""FS_IOC_FIEMAP of linux/fs.h; its structures are in linux/fiemap.h."""
_FLUSHED = 1
"""FIEMAP_FLAG_SYNC."""
_HEAD, _EXTENT = "=QQLLLL", "=QQQQQLLLL"
_MOST_EXTENTS = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """A load, described for fio and for the model."""

    name: str
    fio: str
    length: int
    depth: int
    writes: bool

    @property
    def random(self) -> bool:
        return self.fio.startswith("rand")


@dataclass(frozen=True, slots=True)
class Seen:
    """Results of fio or of the model."""

    iops: float
    mean_s: float
    p99_s: float
    count: int
    p99_between_s: tuple[float, float]
    """Range that contains the 99th percentile of other I/Os of the same kind in 95 of 100 cases."""
    median_s: float

    def p99_beyond(self, p99_s: float) -> float:
        """Limits a percentile to `p99_between_s`: returns a value inside the range unchanged, and otherwise the nearest
        end of the range."""
        least, most = self.p99_between_s
        return min(max(p99_s, least), most)


@dataclass(frozen=True, slots=True)
class Run:
    """How long a point is measured, and how long its load runs before the measurement."""

    point: Point
    ramp_s: int
    seconds: int
    logged: bool
    """Whether the model executes exactly the same I/Os."""
    batch: int = 1
    """Number of I/Os submitted with one call."""


@dataclass(frozen=True, slots=True)
class Done:
    """The I/Os that fio executed: their start positions on the device, in order."""

    places: np.ndarray[Any, np.dtype[np.uint64]]
    warm_up: int
    """Number of I/Os that had ended when fio started to measure."""
    count: int
    """Number of further I/Os that had ended when fio's time was up."""


@contextmanager
def mounted(model: str, file_system: str = "xfs") -> Iterator[Path]:
    """Mounts the device with the timing of its model, and yields a file for fio."""
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        point = Path(folder, "d")
        device = Device(model, (Partition("data", CAPACITY, str(point)),), file_system, arrange.RAM)
        with mounting.mounted((device,), SEED) as devices:
            file = point / "fio"
            with file.open("wb") as written:
                for _ in range(SPAN >> 20):
                    written.write(b"\0" * (1 << 20))
            devices.set_model_timing(on=True)
            yield file


def fio(file: Path, run: Run) -> tuple[Seen, Done | None]:
    """Runs fio. Returns its results after the ramp and, if logged, its I/Os from the start."""
    point = run.point
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        asked, taken = Path(folder, "asked"), Path(folder, "taken")
        logs = [f"--write_iolog={asked}", f"--write_lat_log={taken}"] if run.logged else []
        words = [
            "fio", "--name=x", f"--filename={file}", f"--rw={point.fio}", f"--bs={point.length}", f"--size={SPAN}",
            f"--iodepth={point.depth}", "--ioengine=io_uring", "--direct=1", "--time_based",
            f"--runtime={run.seconds}", f"--ramp_time={run.ramp_s}", "--randrepeat=0", "--norandommap",
            f"--iodepth_batch_submit={run.batch}", "--iodepth_batch_complete_min=1",
            f"--iodepth_batch_complete_max={run.batch if run.batch == 1 else point.depth}",
            "--clat_percentiles=0", "--lat_percentiles=1", "--output-format=json", *logs,
        ]  # fmt: skip
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        if run.logged:
            return _logged(file, point, asked, Path(f"{taken}_lat.1.log"))
    job = json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]
    kind = job["write" if point.writes else "read"]
    times = kind["lat_ns"]
    p99_s, median_s = (times["percentile"][share] / 1e9 for share in ("99.000000", "50.000000"))
    return Seen(kind["iops"], times["mean"] / 1e9, p99_s, times["N"], (p99_s, p99_s), median_s), None


def _logged(file: Path, point: Point, asked: Path, taken: Path) -> tuple[Seen, Done]:
    offsets = offsets_of(asked)
    ended_ms, took_ns = latencies_of(taken)
    count = len(took_ns) - point.depth
    if count < 1:
        raise RuntimeError(f"{point.name}: {len(took_ns)} I/Os are too few")
    took_ns = took_ns[:count]
    rate = count / float(ended_ms[count - 1]) * 1e3
    p99_s = float(np.quantile(took_ns, 0.99)) / 1e9
    seen = Seen(rate, float(took_ns.mean()) / 1e9, p99_s, count, (p99_s, p99_s), float(np.median(took_ns)) / 1e9)
    return seen, Done(_on_device(file, offsets), len(offsets) - len(ended_ms), count)


def modelled(model: str, run: Run, done: Done | None) -> Seen:
    """Runs only the model: with the same I/Os in the same order, or with other I/Os for the same time."""
    point = run.point
    if done is None:
        return _probed(model, point, {"ramp_s": run.ramp_s, "seconds": run.seconds})
    load = {"write": point.writes, "length": point.length, "depth": point.depth, "seed": SEED}
    load |= {"warm_up": done.warm_up, "count": done.count}
    places = done.places.astype("<u8").tobytes()
    same = _seen_from_histogram(
        _core.ask_device(model, for_core(models()), CAPACITY, json.dumps(load).encode(), places)
    )
    return replace(same, p99_between_s=(same.p99_s, same.p99_s))


def expected(model: str, point: Point, count: int, warm_up: int = 0) -> Seen:
    """Runs only the model, with this number of I/Os of this kind, after `warm_up` others."""
    return _probed(model, point, {"count": count, "warm_up": warm_up})


def _probed(model: str, point: Point, more: Mapping[str, float]) -> Seen:
    kind = {"reads": 0 if point.writes else 1, "random": point.random, "length": point.length, "depth": point.depth}
    load: dict[str, float] = {**kind, "span": SPAN, "seed": SEED, **more}
    return _seen_from_histogram(_core.probe_device(model, for_core(models()), CAPACITY, json.dumps(load).encode()))


def _seen_from_histogram(told: tuple[float, float, _core.Histogram]) -> Seen:
    iops, _, latency = told
    # Ranks around the quantile (binomial proportion, normal approximation).
    around = 1.96 * math.sqrt(0.99 * 0.01 / latency.count)
    between = (latency.quantile(0.99 - around), latency.quantile(min(0.99 + around, 1.0)))
    return Seen(iops, latency.mean_s, latency.quantile(0.99), latency.count, between, latency.quantile(0.5))


def offsets_of(log: Path) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Returns the offsets of the I/Os in fio's log, version 3: lines of time, file, action, offset, length."""
    rows = (line.split() for line in log.read_text().splitlines())
    return np.array([int(row[3]) for row in rows if len(row) == 5 and row[2] in ("read", "write")], "u8")


def latencies_of(log: Path) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """Returns the end of each I/O, in milliseconds after the ramp, and its duration in nanoseconds.

    Each line of the log contains both values, followed by direction, length, offset and priority.
    """
    rows = np.loadtxt(log, delimiter=",", usecols=(0, 1), ndmin=2)
    return rows[:, 0], rows[:, 1]


def _on_device(file: Path, offsets: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Converts offsets in the file to positions on the device. For an I/O that spans two extents, the start counts."""
    begins, lies = np.array(extents(file), "u8").T
    which = np.searchsorted(begins, offsets, side="right") - 1
    found: np.ndarray[Any, np.dtype[np.uint64]] = lies[which] + (offsets - begins[which])
    return found


def extents(file: Path) -> list[tuple[int, int]]:
    """Returns the first byte of each extent, in the file and on the device."""
    room = bytearray(struct.pack(_HEAD, 0, SPAN, _FLUSHED, 0, _MOST_EXTENTS, 0))
    room += bytes(_MOST_EXTENTS * struct.calcsize(_EXTENT))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _FIEMAP, room)
    finally:
        os.close(descriptor)
    mapped = struct.unpack_from(_HEAD, room)[3]
    rows = struct.iter_unpack(_EXTENT, room[struct.calcsize(_HEAD) :])
    return [(begins, lies) for (begins, lies, *_), _ in zip(rows, range(mapped), strict=False)]
