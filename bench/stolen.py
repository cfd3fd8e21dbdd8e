"""CPU time that other virtual machines took meanwhile: what was measured then says nothing about ironbench.

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

MOST = 0.10
"""Of the CPU time: what was measured while more was stolen is measured again …"""
TRIES = 6
"""… so often, and then not at all."""
PATIENCE_MIN = 30
"""So long a bench waits for quiet altogether; `IRONBENCH_BENCH_PATIENCE=0` waits for none."""
BUSY_S, PAUSE_S = 1.0, 4.0
PIECE = bytes(16 << 20)

T = TypeVar("T")

_waited_s = 0.0


def undisturbed(what: str, measure: Callable[[], T]) -> T | None:
    """What it gave once nobody else took CPU time meanwhile; None where that did not come about."""
    for _ in range(TRIES):
        _wait_for_quiet()
        before_s, began_s = _stolen_s(), time.monotonic()
        got = measure()
        share = _share(before_s, began_s)
        if share <= MOST:
            return got
        sys.stderr.write(f"{what}: {share:.1%} of the CPU time were stolen; again\n")
    return None


def _wait_for_quiet() -> None:
    global _waited_s
    began_s = time.monotonic()
    while (share := _while_busy()) > MOST and _waited_s + time.monotonic() - began_s < 60 * _patience_min():
        sys.stderr.write(f"\r  other virtual machines take {share:.1%} of the CPU time: waiting ")
        time.sleep(PAUSE_S)
    _waited_s += time.monotonic() - began_s


def _patience_min() -> int:
    return asked("IRONBENCH_BENCH_PATIENCE", PATIENCE_MIN)


def _while_busy() -> float:
    processors = os.cpu_count() or 1
    before_s, began_s = _stolen_s(), time.monotonic()

    def busy(_number: int) -> None:
        while time.monotonic() < began_s + BUSY_S:
            hashlib.sha256(PIECE)  # other threads run meanwhile

    with ThreadPoolExecutor(processors) as threads:
        list(threads.map(busy, range(processors)))
    return _share(before_s, began_s)


def _share(before_s: float, began_s: float) -> float:
    return (_stolen_s() - before_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)


def _stolen_s() -> float:
    """Of all processors, since the machine began (proc(5), /proc/stat)."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")
