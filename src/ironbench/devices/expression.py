"""What a device expression means here: its normal form, the I/Os it gains from, how fast it is."""

from __future__ import annotations

import json
import re

from ironbench import _core
from ironbench.devices.models import for_core, models
from ironbench.devices.models import normal as normal_form
from ironbench.errors import InputError

DEEP = 64
"""Reads at a time that saturate a device."""
MOST_DEPTH = 64
NEXT_TO_NOTHING_S = 2e-6
_COUNT = 2000
_MIXED_DEPTH = 2
"""Seen on PostgreSQL 18 with two cores: 22 TPC-H-derived queries had 1.3 to 1.9 reads under way."""
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def normal(subject: str, text: str) -> str:
    """The expression in its normal form. InputError with the position of a mistake and the nearest name."""
    try:
        return normal_form(text)
    except InputError as error:
        raise InputError(
            subject,
            f"{text!r} is not a directory: it has no slash; as a device: {error.cause}",
            "; ".join(filter(None, (error.hint, f"the directory of that name is written ./{text}"))),
        ) from None


def read_rate(model: str, capacity_bytes: int, depth: int) -> float:
    """4 KiB random reads a second with so many at a time, by the model alone."""
    return _reads(model, capacity_bytes, depth)[0]


def as_good_as_free(model: str, capacity_bytes: int) -> bool:
    """Whether a read takes next to nothing beside the way to any emulated device: the model makes no difference."""
    return _reads(model, capacity_bytes, 1)[1] < NEXT_TO_NOTHING_S


def mixed_read_rate(model: str, capacity_bytes: int, read_bytes: int) -> float:
    """Bytes per second of reads of this size as a mix of queries makes them, by the model alone: a few at a time."""
    reads_per_s, _ = _reads(model, capacity_bytes, _MIXED_DEPTH, read_bytes)
    return reads_per_s * read_bytes


def depth(model: str, capacity_bytes: int) -> int:
    """So many reads at a time the device gains from; 1 where it takes next to no time."""
    if as_good_as_free(model, capacity_bytes):
        return 1
    gain = read_rate(model, capacity_bytes, DEEP) / read_rate(model, capacity_bytes, 1)
    return max(1, min(MOST_DEPTH, round(gain)))


def rotates(model: str) -> bool:
    """Whether a rotating disk is in it. The kernel's own word for an emulated device says nothing of its model."""
    known = models()
    return any(known[name].kind == "disk" for name in _NAME.findall(model) if name in known)


def _reads(model: str, capacity_bytes: int, depth: int, length: int = 4096) -> tuple[float, float]:
    """Reads a second, and seconds that one takes."""
    load = {"length": length, "depth": depth, "count": _COUNT, "warm_up": _COUNT // 10}
    iops, _, latency = _core.probe_device(model, for_core(models()), capacity_bytes, json.dumps(load).encode())
    return iops, latency.mean_s
