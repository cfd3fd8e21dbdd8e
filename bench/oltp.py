"""PostgreSQL under the order system with about half of its data cached, through the command line, on any storage."""

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
"""384 MB of data."""
BUFFERS, TOTAL = ("--memory", "48MB"), ("--memory-total", "224MB")
"""Buffers and page cache hold about half of it, once what the server's processes take is off."""
CLIENTS = 8
CAPACITY = 2 << 30
SECONDS, WARMUP = "10s", "5s"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run came to."""

    throughput: float
    metrics: Mapping[str, float]

    def rate(self, name: str) -> float:
        """Of the device that holds the data, per second."""
        return self.metrics.get(f"device_{name}_per_s{{role=data}}", 0.0)


def driven(data: str, *more: str, group: Path | None = None) -> Seen:
    """A run from cold caches. `data`: a directory or a device; `group`: a control group for the server."""

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
    """In a directory there, which is removed; on a bounded page cache."""
    data = point / "data"
    try:
        return driven(str(data), *TOTAL, *more, group=group)
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def loop_device(folder: Path) -> Iterator[tuple[str, Path]]:
    """A loop device of a file in memory, all of which is there from the beginning, and where its ext4 is mounted."""
    image, point = folder / "image", folder / "point"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, CAPACITY)
    point.mkdir()
    block = programs.output(["losetup", "--find", "--show", str(image)]).strip()
    try:
        # Nothing is discarded: pages of the image that come back later would count in the server's group.
        options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        programs.output(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", options, block])
        programs.output(["mount", "-o", "nodiscard", block, str(point)])
        try:
            yield block, point
        finally:
            loop_mounts.unmount(point, patience_s=10.0)
    finally:
        loop_mounts.detach(block)
