"""Measures how many I/Os of a trace one core can replay per second, for several devices."""

from __future__ import annotations

import statistics
import time

import numpy as np

from bench.figures import Target, at_least, report
from ironbench.devices import models, replay
from ironbench.devices.trace import Trace

IOS = 2_000_000
RUNS = 5
MILLION = at_least(1e6, "≥ 1 M I/O/s")
DEVICES = (
    *("free", "hdd-7200", "hdd-15k(cache=on)", "ssd-sata-2011", "ssd-nvme-consumer", "aws-gp3"),
    *("raid0(8, hdd-7200)", "raid10(8, hdd-15k)", "spread(4 x ssd-sata-2011, 2 x ssd-sata-2010)"),
)
"""Devices with a target; RAID 5, where one write causes four I/Os, is shown without one."""


def main() -> None:
    core = models.for_core(models.models())
    made = trace(IOS, seed=1)
    for device in DEVICES:
        _report_rates(made, device, core, MILLION)
    _report_rates(made, "raid5(5, ssd-sata-2011)", core, "")


def _report_rates(made: Trace, device: str, core: bytes, asked: Target | str) -> None:
    rates = []
    for _ in range(RUNS):
        # The replay runs in this thread, so its CPU time is the time that one core needs.
        began = time.thread_time()
        found = replay.predicted(made, device, core, capacity=64 << 30)
        rates.append(found.ios / (time.thread_time() - began))
    middle = statistics.median(rates)
    spread = f"{middle / 1e6:.2f} M (median of {RUNS}, {min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f})"
    report(f"replay on {device}, I/O per second and core", middle, asked, spread)


def trace(ios: int, seed: int) -> Trace:
    """Returns a trace like that of a database with 16 clients: reads, some writes, WAL writes with syncs."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(60_000, ios)
    arrivals = np.cumsum(gaps).astype("u8")
    kind = random.random(ios)
    op = np.where(kind < 0.75, 0, np.where(kind < 0.95, 1, 2)).astype("u1")
    offset = random.integers(0, (60 << 30) // 8192, ios).astype("u8") * np.uint64(8192)
    length = np.where(op == 2, 0, 8192).astype("u4")
    completed = arrivals + random.exponential(900_000, ios).astype("u8")
    return Trace(arrivals, op, offset, length, completed, np.full(ios, "data", dtype=object))


if __name__ == "__main__":
    main()
