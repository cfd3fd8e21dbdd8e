"""CPU time that others took meanwhile, other virtual machines above all: what was measured then says little.

A machine with little to do is not told that it would have had to wait, so quiet is looked for with all processors busy.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from bench.series import asked

QUIET = 0.03
"""Others take no more than this of the CPU time when a measurement begins …"""
PATIENCE_MIN = 30
"""… unless a bench has waited so long for it altogether; `IRONBENCH_BENCH_PATIENCE=0` waits for none."""
MOST, TRIES = 0.10, 6
"""What was measured while more was stolen is measured again, so often, and then not at all."""
BUSY_S, AFTER_S, PAUSE_S = 1.0, 0.3, 4.0
PIECE = bytes(256 << 10)

T = TypeVar("T")

_waited_s = 0.0


def while_doing(measure: Callable[[], T]) -> tuple[T, float]:
    """What it gave, and the share of the CPU time that other virtual machines took meanwhile."""
    before_s, began_s = _stolen_s(), time.monotonic()
    got = measure()
    return got, _share(before_s, began_s)


def undisturbed(what: str, measure: Callable[[], tuple[T, float]]) -> tuple[T, float] | None:
    """What `measure` gave, with its share as `while_doing` tells it; None where too much was stolen every time."""
    for _ in range(TRIES):
        _wait_for_quiet()
        got, share = measure()
        if share <= MOST:
            return got, share
        sys.stderr.write(f"{what}: {share:.1%} of the CPU time were stolen; again\n")
    return None


def _wait_for_quiet() -> None:
    global _waited_s
    began_s = time.monotonic()
    while (share := _while_busy()) > QUIET and _waited_s + time.monotonic() - began_s < 60 * _patience_min():
        sys.stderr.write(f"  waiting: other programs or virtual machines take {share:.1%} of the CPU time\n")
        time.sleep(PAUSE_S)
    _waited_s += time.monotonic() - began_s
    time.sleep(AFTER_S)


def _patience_min() -> int:
    return asked("IRONBENCH_BENCH_PATIENCE", PATIENCE_MIN)


def _while_busy() -> float:
    """What others get of the CPU time while we want all of it, be they other virtual machines or programs of this."""
    processors = len(os.sched_getaffinity(0))
    before_s, began_s, own_s = _stolen_s(), time.monotonic(), time.process_time()

    def busy(_number: int) -> None:
        while time.monotonic() < began_s + BUSY_S:
            hashlib.sha256(PIECE)  # other threads run meanwhile

    with ThreadPoolExecutor(processors) as threads:
        list(threads.map(busy, range(processors)))
    got = (time.process_time() - own_s) / (time.monotonic() - began_s) / processors
    return max(_share(before_s, began_s), 1 - got)


def _share(before_s: float, began_s: float) -> float:
    return (_stolen_s() - before_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)


def _stolen_s() -> float:
    """Of all processors, since the machine began (proc(5), /proc/stat)."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")
