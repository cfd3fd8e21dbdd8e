"""Runs a storage benchmark on a device model, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench import _core

_LARGE, _LOG = 1 << 20, 8192
LOG_WRITE = "8 KiB log write and flush"
_FILLING = 40_000
"""Number of random writes before the measurement starts. No disk can buffer this many, so its cache is full by then."""
LOADS: dict[str, Mapping[str, Any]] = {
    "4 KiB random read, depth 1": {"depth": 1},
    "4 KiB random read, depth 32": {"depth": 32},
    "4 KiB random write, depth 1": {"reads": 0, "depth": 1, "warm_up": _FILLING},
    "4 KiB random write, depth 32": {"reads": 0, "depth": 32, "warm_up": _FILLING},
    "1 MiB sequential read, depth 8": {"random": False, "length": _LARGE, "depth": 8, "count": 2000},
    "1 MiB sequential write, depth 8": {"random": False, "length": _LARGE, "depth": 8, "count": 2000, "reads": 0},
    LOG_WRITE: {"reads": 0, "random": False, "length": _LOG, "flush": True, "count": 2000},
}
"""For each label, the load in the format of the core's `probe_device`
(`crates/ironbench-device/src/replay/synthetic_load.rs`)."""


@dataclass(frozen=True, slots=True)
class ProbedDevice:
    what: str
    iops: float
    bytes_per_s: float
    mean_s: float
    p99_s: float


def probed(
    text: str, models: bytes, load: Mapping[str, Any], what: str = "", capacity: int | None = None
) -> ProbedDevice:
    """Runs one load. `models`: as returned by `models.for_core`. Raises InputError for an invalid expression."""
    iops, rate, latency = _core.probe_device(text, models, capacity, msgspec.json.encode(load))
    return ProbedDevice(what, iops, rate, latency.mean_s, latency.quantile(0.99))


def probed_devices(text: str, models: bytes, capacity: int | None = None) -> tuple[ProbedDevice, ...]:
    """Runs every load of `LOADS`. Writes go to a fresh device. Raises InputError for an invalid expression."""
    return tuple(probed(text, models, load, what, capacity) for what, load in LOADS.items())
