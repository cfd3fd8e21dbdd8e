"""Measures the memory of the harness during timed queries at scale factor 1: all its processes except the engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import at_most, report
from bench.series import number_from_environment

LARGEST_MB = 120
EVERY_S = 0.1
TIMED = re.compile(r"sweep \d+$|\d+% \w+$")
"""Matches the last progress line once a trial has started; lines of the preceding answer checks have an additional
word."""
PREPARES = "importlib.util"
"""Part of the command line of the child that generates refresh sets; while it runs, no query is timed."""
ENGINE = re.compile(r"^\S*postgres\b|engines\.duckdb\.child")
"""Matches the command line of an engine, which is excluded with its child processes."""


def main() -> None:
    scale = str(number_from_environment("IRONBENCH_BENCH_SCALE", 1))
    for engine in ("postgres", "duckdb"):
        with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
            largest, seen = _largest(engine, scale, Path(folder))
        words = f"memory of the harness while queries are timed, {engine} at sf={scale} excluded, MB"
        report(words, largest / 1e6, at_most(LARGEST_MB), f"{largest / 1e6:.1f} (largest of {seen} looks)")


def _largest(engine: str, scale: str, folder: Path) -> tuple[int, int]:
    words = ["run", "tpch", "--engine", engine, "--with", f"sf={scale}"]
    environment = os.environ | {"IRONBENCH_DATA": str(folder / "data"), "IRONBENCH_RESULTS": str(folder / "results")}
    command = [sys.executable, "-c", "from ironbench.cli import main; main()", *words]
    said_to = folder / "stderr"
    with said_to.open("wb") as stderr:
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr)
    largest, seen = 0, 0
    try:
        while running.poll() is None:
            if TIMED.search(re.split(r"[\r\n]+", said_to.read_text(errors="replace").rstrip())[-1]):
                processes = dict(_harness(running.pid))
                if not any(PREPARES in command for command in processes.values()):
                    largest, seen = max(largest, sum(map(_bytes, processes))), seen + 1
            time.sleep(EVERY_S)
    finally:
        running.terminate()
        running.wait()
    if running.returncode not in (0, 3) or not seen:
        raise RuntimeError(said_to.read_text())
    return largest, seen


def _harness(pid: int) -> Iterator[tuple[int, str]]:
    """Yields the process and its descendants, without engines, with their command lines."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
        children = [one.read_text().split() for one in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return  # ended meanwhile
    if ENGINE.search(command):
        return
    yield pid, command
    for child in (child for some in children for child in some):
        yield from _harness(int(child))


def _bytes(pid: int) -> int:
    """Returns the memory of a process, with its proportional share of shared memory (proc(5), Pss)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
