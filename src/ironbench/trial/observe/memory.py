"""Memory of the machine: free, page cache, dirty pages, and swapping."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from statistics import median

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    SamplePoint,
    Values,
    gauge_series,
    growth,
    mean_within,
    points,
    present,
    rate_of,
    rate_series,
    steps,
)
from ironbench.model.session import Session

_MEMINFO = "memory.meminfo"
_VMSTAT = "memory.vmstat"
_GAUGES = {
    "memory_available_bytes": "MemAvailable",
    "memory_cached_bytes": "Cached",
    "memory_dirty_bytes": "Dirty",
    "memory_writeback_bytes": "Writeback",
    "swap_used_bytes": "swap used",
}
_RATES = {"swap_in_bytes_per_s": "pswpin", "swap_out_bytes_per_s": "pswpout"}
_MAPPED, _MAPPED_PAGES = "Mapped", "nr_mapped"
"""Names of the same quantity in two files: in bytes in /proc/meminfo, and in pages in /proc/vmstat."""
_PAGES_BYTES = (4096.0, 16384.0, 65536.0)
"""Page sizes of Linux: x86-64 has the first one, Arm has all three (Documentation/arch/arm64/memory.rst), and POWER has
the last one."""


class Memory:
    name = "memory"
    doc = "Available memory, page cache, dirty memory, memory under write-back, and swapping"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return (Source(_MEMINFO, "file", "/proc/meminfo"), Source(_VMSTAT, "file", "/proc/vmstat"))

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_MEMINFO), parse_meminfo)
        metrics = present({name: mean_within(readings, key, window_s) for name, key in _GAUGES.items()})
        series = [gauge_series(name, readings, key) for name, key in _GAUGES.items() if readings]
        counted = points(samples.get(_VMSTAT), _parse_vmstat)
        page_bytes = _page_bytes(readings, counted)
        swaps = [
            SamplePoint(one.t_s, {key: count * page_bytes for key, count in one.values.items()}) for one in counted
        ]
        if (grown := growth(swaps, window_s)) is not None:
            each = steps(swaps)
            for name, key in _RATES.items():
                metrics[name] = grown.rate(key)
                series.append(rate_series(name, each, rate_of(key)))
        return Observation(metrics, tuple(series))


def parse_meminfo(text: str) -> Values:
    """Returns the values in bytes, under the kernel's names. Adds the used swap space as `swap used`."""
    values: Values = {}
    for line in text.splitlines():
        key, separator, rest = line.partition(":")
        if separator and rest.endswith("kB"):
            values[key] = float(rest.split()[0]) * 1024
    if "SwapTotal" in values:
        values["swap used"] = values["SwapTotal"] - values.get("SwapFree", 0.0)
    return values


def _parse_vmstat(text: str) -> Values:
    """Returns the pages swapped in and out since boot, and the pages that are mapped at this moment."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if pair[0] in (*_RATES.values(), _MAPPED_PAGES)}


def _page_bytes(memory: Sequence[SamplePoint], pages: Sequence[SamplePoint]) -> float:
    """Returns the page size of the sampled machine, which may be a remote machine. /proc/meminfo and /proc/vmstat
    contain the same quantity in bytes and in pages. The page size is the ratio of the two.

    In a container, one file may describe the container and the other one the machine (lxcfs, `proc_fuse.c`). If the
    ratio is not a possible page size, returns the page size of this machine.
    """
    both = zip(memory, pages, strict=False)
    pairs = ((in_bytes.values.get(_MAPPED), counted.values.get(_MAPPED_PAGES)) for in_bytes, counted in both)
    found = [in_bytes / count for in_bytes, count in pairs if in_bytes and count]
    size = 2.0 ** round(math.log2(median(found))) if found else 0.0
    return size if size in _PAGES_BYTES else float(os.sysconf("SC_PAGE_SIZE"))


OBSERVER = Memory()
