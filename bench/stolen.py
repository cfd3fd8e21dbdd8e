"""Measures steal time during a measurement, mainly from other virtual machines. With much steal time, a result is not
meaningful.

Steal time is only visible when this machine wants to run, so the search for a quiet moment keeps all processors busy.
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

from bench.series import number_from_environment

QUIET = 0.03
"""A measurement starts as soon as others use at most this share of the CPU time."""
PATIENCE_MIN = 30
"""Minutes that the benchmark waits in total. Afterwards, measurements start in any case. With
`IRONBENCH_BENCH_PATIENCE=0`, the benchmark never waits."""
MOST, TRIES = 0.10, 6
"""A measurement with more than this share of steal time is repeated. It is rejected after this number of attempts."""
BUSY_S, AFTER_S, PAUSE_S = 1.0, 0.3, 4.0
PIECE = bytes(256 << 10)

T = TypeVar("T")

_waited_s = 0.0


def while_doing(measure: Callable[[], T]) -> tuple[T, float]:
    """Returns the result of `measure`, and the share of steal time meanwhile."""
    before_s, began_s = _stolen_s(), time.monotonic()
    got = measure()
    return got, _share(before_s, began_s)


def undisturbed(what: str, measure: Callable[[], tuple[T, float]]) -> tuple[T, float] | None:
    """Returns a result with its share of steal time; None if there was too much steal time in every attempt."""
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
    return number_from_environment("IRONBENCH_BENCH_PATIENCE", PATIENCE_MIN)


def _while_busy() -> float:
    """Returns the share of the CPU time that other virtual machines and other programs use while this process tries to
    use all CPUs."""
    processors = len(os.sched_getaffinity(0))
    before_s, began_s, own_s = _stolen_s(), time.monotonic(), time.process_time()

    def busy(_number: int) -> None:
        while time.monotonic() < began_s + BUSY_S:
            hashlib.sha256(PIECE)  # releases the interpreter lock

    with ThreadPoolExecutor(processors) as threads:
        list(threads.map(busy, range(processors)))
    got = (time.process_time() - own_s) / (time.monotonic() - began_s) / processors
    return max(_share(before_s, began_s), 1 - got)


def _share(before_s: float, began_s: float) -> float:
    return (_stolen_s() - before_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)


def _stolen_s() -> float:
    """Returns the steal time of all processors since boot (proc(5), /proc/stat)."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")
