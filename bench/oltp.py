"""Runs PostgreSQL with the order-entry workload through the command line, on any storage and with about half of the
data cached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbench.host import loop_mounts, programs

SCALE = 24
"""Scale factor for 384 MB of data."""
BUFFERS, TOTAL = ("--memory", "48MB"), ("--memory-total", "224MB")
"""Buffers and page cache together hold about half of the data, after subtracting the memory of the server processes."""
CLIENTS = 8
CAPACITY = 2 << 30
SECONDS, WARMUP = "10s", "5s"


@dataclass(frozen=True, slots=True)
class Seen:
    """Result of one run."""

    throughput: float
    metrics: Mapping[str, float]

    def rate(self, name: str) -> float:
        """Returns a rate of the data device, per second."""
        return self.metrics.get(f"device_{name}_per_s{{role=data}}", 0.0)


def driven(data: str, *more: str, group: Path | None = None) -> Seen:
    """Runs with cold caches. `data`: a directory or a device. `group`: a control group for the server."""

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    words = ["--cache", "cold", "--duration", SECONDS, "--warmup", WARMUP, "--clients", str(CLIENTS)]
    whole = ["run", "igen-oltp", "--with", f"scale={SCALE}", "--data", data, *BUFFERS, *words, *more, "--json"]
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-c", "from ironbench.cli import main; main()", *whole, "--results", results]
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr)
    metrics: dict[str, float] = json.loads(done.stdout)["trials"][0]["metrics"]
    return Seen(metrics["throughput"], metrics)


def loaded_anew(point: Path, *more: str, group: Path | None = None) -> Seen:
    """Runs in a new directory below `point`, which is removed afterwards, with a limited page cache."""
    data = point / "data"
    try:
        return driven(str(data), *TOTAL, *more, group=group)
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def loop_device(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields a loop device on a fully allocated file in memory, and the mount point of its ext4 file system."""
    image, point = folder / "image", folder / "point"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, CAPACITY)
    point.mkdir()
    block = programs.output(["losetup", "--find", "--show", str(image)]).strip()
    try:
        # Discard is off: pages of the image that were freed and allocated again would be charged to the server's group.
        options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        programs.output(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", options, block])
        programs.output(["mount", "-o", "nodiscard", block, str(point)])
        try:
            yield block, point
        finally:
            loop_mounts.unmount(point, patience_s=10.0)
    finally:
        loop_mounts.detach(block)
