"""Emulated devices seen from outside: fio on the mounted file system, beside the model by a virtual clock.

The model's side is `_core.probe_device`: the same closed loop without waiting, measured for the same seconds after the
same ramp, so that both have filled the memory and the quick flash of a device as far when they begin. Every point has
at least 10 000 I/Os, or as many as fit into its longest time: a disk that does 80 a second is measured by 1600, and how
many there were stands beside the rate. About 20 minutes;
`IRONBENCH_BENCH_SECONDS=5` bounds a point to 5 s, `IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata` chooses models,
`IRONBENCH_BENCH_PAIRS=3` makes three pairs.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import oltp
from bench.figures import at_least, at_most, said, within
from bench.pairs import interleaved, ratio
from bench.series import asked
from ironbench import _core
from ironbench.catalogue.devices import device_models
from ironbench.devices import arrange, mounting
from ironbench.devices.models import for_core, models
from ironbench.model.system import Device, Partition

CAPACITY = 1 << 30
SPAN = 896 << 20
"""Of the file that fio reads and writes: nearly all of the device, for nobody tells XFS where on it a smaller one is to
lie, and on a disk that is a third of its speed. The model's load is on all of it."""
LONGEST_S, SHORTEST_S = 20.0, 3.0
COUNT = 10_000
RAMP_S, WRITING_RAMP_S = 1, 5
"""Before both sides measure. One write at a time takes 3.5 s to fill the 64 MiB of a disk's write memory."""
LIVE_IOPS = 100_000
FREE_RUNS = 5
PAIRS = 6
SHARE_OF_MODEL = 0.05


@dataclass(frozen=True, slots=True)
class Point:
    """One load, in fio's words and in the probe's."""

    name: str
    fio: str
    length: int
    depth: int
    reads: float
    random: bool

    @property
    def ramp_s(self) -> int:
        return RAMP_S if self.reads else WRITING_RAMP_S


POINTS = (
    Point("4 KiB random read, depth 1", "randread", 4096, 1, 1.0, True),
    Point("4 KiB random read, depth 32", "randread", 4096, 32, 1.0, True),
    Point("4 KiB random write, depth 1", "randwrite", 4096, 1, 0.0, True),
    Point("4 KiB random write, depth 32", "randwrite", 4096, 32, 0.0, True),
    Point("1 MiB sequential read, depth 8", "read", 1 << 20, 8, 1.0, False),
    Point("1 MiB sequential write, depth 8", "write", 1 << 20, 8, 0.0, False),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What fio saw, or the model."""

    iops: float
    mean_s: float
    p99_s: float


def main() -> None:
    if shutil.which("fio") is None:
        raise RuntimeError("fio is not installed")
    told = os.environ.get("IRONBENCH_BENCH_MODELS")
    chosen = told.split(",") if told else list(device_models())
    _free()
    for name, model in device_models().items():
        if model.kind not in ("free", "memory", "controller") and name in chosen:
            _against_model(name)
    _beside_tmpfs()


@contextmanager
def mounted(model: str, file_system: str = "xfs") -> Iterator[Path]:
    """The device, following its model, with a file that fio may use."""
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        point = Path(folder, "d")
        device = Device(model, (Partition("data", CAPACITY, str(point)),), file_system, arrange.RAM)
        with mounting.mounted((device,)) as devices:
            file = point / "fio"
            with file.open("wb") as written:
                for _ in range(SPAN >> 20):
                    written.write(b"\0" * (1 << 20))
            devices.pace(model=True)
            yield file


def fio(file: Path, point: Point, seconds: float) -> Seen:
    words = [
        "fio", "--name=x", f"--filename={file}", f"--rw={point.fio}", f"--bs={point.length}", f"--size={SPAN}",
        f"--iodepth={point.depth}", "--ioengine=io_uring", "--direct=1", "--time_based", f"--runtime={seconds}",
        f"--ramp_time={point.ramp_s}", "--randrepeat=0", "--norandommap", "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    kind = job["read" if point.reads else "write"]
    times = kind["clat_ns"]
    return Seen(kind["iops"], kind["lat_ns"]["mean"] / 1e9, times["percentile"]["99.000000"] / 1e9)


def modelled(model: str, point: Point, seconds: float) -> Seen:
    load = {"reads": point.reads, "random": point.random, "length": point.length, "depth": point.depth}
    load |= {"ramp_s": point.ramp_s, "seconds": seconds}
    known = for_core(models())
    iops, _, latency = _core.probe_device(model, known, CAPACITY, json.dumps(load).encode())
    return Seen(iops, latency.mean_s, latency.quantile(0.99))


def _free() -> None:
    with mounted("free") as file:
        deep = [fio(file, POINTS[1], SHORTEST_S).iops for _ in range(FREE_RUNS)]
        shallow = [fio(file, POINTS[0], SHORTEST_S).mean_s * 1e6 for _ in range(FREE_RUNS)]
    said("free device, 4 KiB reads/s at depth 32", median(deep), at_least(150_000), _spread(deep, 0))
    said("free device, 4 KiB read at depth 1, us", median(shallow), at_most(35), _spread(shallow, 1))


def _against_model(name: str) -> None:
    """Reads change nothing, so all of them have one device; what writes has a fresh one, as the model's has."""
    first = {point: modelled(name, point, SHORTEST_S).iops for point in POINTS}
    live = [point for point in POINTS if first[point] <= LIVE_IOPS]
    for point in POINTS:
        if point not in live:
            sys.stderr.write(f"{name}, {point.name}: {first[point]:.0f}/s is for replay\n")
    reading = [point for point in live if point.reads]
    for together in (reading, *([point] for point in live if not point.reads)):
        if together:
            with mounted(name) as file:
                for point in together:
                    _held(name, point, file, _seconds(first[point]))


def _seconds(iops: float) -> float:
    """Whole ones, as fio takes them."""
    longest = float(asked("IRONBENCH_BENCH_SECONDS", int(LONGEST_S)))
    return math.ceil(min(longest, max(SHORTEST_S, COUNT / max(iops, 1.0))))


def _held(name: str, point: Point, file: Path, seconds: float) -> None:
    wanted, seen = modelled(name, point, seconds), fio(file, point, seconds)
    bounds = within(1 - SHARE_OF_MODEL, 1 + SHARE_OF_MODEL)
    what = f"{name}, {point.name}:"
    rate, mean = seen.iops / wanted.iops, seen.mean_s / wanted.mean_s
    said(f"{what} IOPS / model", rate, bounds, f"{rate:.3f} ({seen.iops:.0f}/s, {seen.iops * seconds:.0f} I/Os)")
    said(f"{what} mean latency / model", mean, bounds, f"{mean:.3f} ({seen.mean_s * 1e6:.0f} us)")
    if wanted.p99_s >= 1e-3:
        said(f"{what} p99 / model", seen.p99_s / wanted.p99_s, within(0.9, 1.1))
    else:
        said(f"{what} p99 - model, us", (seen.p99_s - wanted.p99_s) * 1e6, within(-80, 80))


def _beside_tmpfs() -> None:
    """A half-cached read-write mix of PostgreSQL on the free device and on a plain tmpfs.

    Buffers are the same. The device's page cache is bounded, so that half of the data must come from it; a tmpfs is
    page cache itself, and a bound on it would leave no room for the data.
    """
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-", dir="/dev/shm") as folder:
        data = str(Path(folder, "data"))
        emulated, plain = interleaved(
            asked("IRONBENCH_BENCH_PAIRS", PAIRS),
            lambda: oltp.driven("free", *oltp.TOTAL, "--no-observe").throughput,
            lambda: oltp.driven(data, "--no-observe").throughput,
        )
    found = ratio(emulated, plain)
    said("half-cached igen-oltp, free device / tmpfs", found, at_least(0.75), str(found))


def _spread(values: list[float], digits: int) -> str:
    return (
        f"{median(values):.{digits}f} (median of {len(values)}, {min(values):.{digits}f} to {max(values):.{digits}f})"
    )
