"""Compares the storage workload with fio: same file, engine, block size and queue depth, on a device and in memory.

fio runs with its fastest options (registered buffers and files, no random map). CPU time is that of ironbench's I/O
threads, and of fio's processes minus the time to start and report. Both include the kernel's helper threads, which do
all the work if a file system cannot promise not to block (fio's own statistics do not include them). Takes about 40
minutes if the speed of the device varies; `IRONBENCH_BENCH_PAIRS=12` limits a test to twelve pairs.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures import at_least, at_most, report
from bench.pairs import Ratio, interleaved, ratio
from bench.series import number_from_environment
from ironbench import _core
from ironbench.catalogue.storage_tests import RND4K_Q1, RND4K_Q32, SEQ1M_Q1, SEQ1M_Q8, Test
from ironbench.workloads.storage import passes
from ironbench.workloads.storage.files import TestFile
from ironbench.workloads.storage.passes import PassSettings

SECONDS = 2.0
SIZE = 512 << 20
CLOSE = 0.03
"""Pairs are added in batches until the confidence interval of the ratio is at most this wide on either side, or until
there are `PAIRS` pairs."""
BATCH, PAIRS = 6, 30
"""Number of pairs in a batch, and maximum number of pairs."""


@dataclass(frozen=True, slots=True)
class Run:
    bytes_per_s: float
    cpu_per_io_s: float


def main() -> None:
    for name, place in (("disk", _disk()), ("memory", Path("/dev/shm"))):
        with _file(place) as (path, measured):
            for test in (*SEQ1M_Q8, *SEQ1M_Q1, *RND4K_Q32, *RND4K_Q1):
                _compared(name, test, path, measured)


def _disk() -> Path:
    """Returns a directory that is not in memory."""
    return Path(os.environ.get("IRONBENCH_DATA", "/var/tmp"))


@contextmanager
def _file(place: Path) -> Iterator[tuple[Path, TestFile]]:
    """Creates a file and writes it once, so that both sides read real data."""
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-", dir=place) as folder:
        path = Path(folder) / "measured"
        path.touch()
        os.truncate(path, SIZE)
        direct, cached = (os.open(path, os.O_RDWR | flags) for flags in (os.O_DIRECT, 0))
        try:
            measured = TestFile(folder, direct, cached, cached)
            passes.fill([measured], _terms(), _core.StorageProgress())
            yield path, measured
        finally:
            os.close(direct)
            os.close(cached)


def _terms() -> PassSettings:
    return PassSettings(SIZE, 0, "io_uring", int.from_bytes(os.urandom(6)), ())


def _compared(name: str, test: Test, path: Path, measured: TestFile) -> None:
    a: list[Run] = []
    b: list[Run] = []
    most = number_from_environment("IRONBENCH_BENCH_PAIRS", PAIRS)
    while len(a) < most:
        more = interleaved(min(BATCH, most - len(a)), lambda: _ours(test, measured), lambda: _fio(test, path))
        a, b = a + more[0], b + more[1]
        rate = ratio([x.bytes_per_s for x in a], [x.bytes_per_s for x in b])
        if rate.high / rate.low <= (1 + CLOSE) ** 2:
            break
    words = f"{test.title} {test.direction} ({name})"
    wide = "" if rate.high / rate.low <= (1 + CLOSE) ** 2 else f"; ±3 % is not reached with {len(a)} pairs"
    report(f"{words}: rate / fio", rate, at_least(1 - CLOSE), f"{rate}{wide}")
    cpu = _cpu(a, b)
    report(f"{words}: CPU per I/O / fio", cpu, at_most(1.0))
    middle = [statistics.median(run.cpu_per_io_s for run in runs) * 1e6 for runs in (a, b)]
    rates = [statistics.median(run.bytes_per_s for run in runs) / 1e6 for runs in (a, b)]
    report(f"  {words}: µs CPU per I/O, MB/s", f"{middle[0]:.2f}, {rates[0]:.1f}; fio {middle[1]:.2f}, {rates[1]:.1f}")


def _cpu(a: list[Run], b: list[Run]) -> Ratio:
    return ratio([x.cpu_per_io_s for x in a], [x.cpu_per_io_s for x in b])


def _ours(test: Test, measured: TestFile) -> Run:
    found = passes.run(test, [measured], replace(_terms()), SECONDS, 0.0, _core.StorageProgress())
    assert found.io == "io_uring", found.note
    return Run(found.bytes_per_s, found.cpu_s / found.ios)


def _fio(test: Test, path: Path) -> Run:
    way = {"sequential": "", "random": "rand"}[test.order] + test.direction
    command = [
        "fio", "--name=peer", f"--filename={path}", f"--rw={way}", f"--bs={test.block_bytes}", f"--size={SIZE}",
        f"--iodepth={test.depth}", f"--numjobs={test.threads}", "--direct=1",
        "--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--norandommap", "--randrepeat=0",
        "--group_reporting", "--output-format=json",
    ]  # fmt: skip
    job, cpu_s = _accounted([*command, f"--runtime={SECONDS}", "--time_based"])
    _, idle_s = _accounted([*command, "--number_ios=1"])
    own = job[test.direction]
    return Run(own["io_bytes"] / (own["runtime"] / 1000), (cpu_s - idle_s) / own["total_ios"])


def _accounted(command: list[str]) -> tuple[dict[str, Any], float]:
    """Returns fio's output, and the CPU seconds of the process and its children (wait4(2))."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"fio failed: {shlex.join(command)}")
        output.seek(0)
        text = output.read()
    return json.loads(text[text.index("{") :])["jobs"][0], used.ru_utime + used.ru_stime
