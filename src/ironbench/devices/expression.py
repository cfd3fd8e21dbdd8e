"""Properties of a device expression: its normal form, its read rate, and the queue depth above which its throughput no
longer rises."""

from __future__ import annotations

import json
import re

from ironbench import _core
from ironbench.devices.models import for_core, models
from ironbench.devices.models import normalized as normal_form
from ironbench.errors import InputError

DEEP = 64
"""Queue depth that saturates any device."""
MOST_DEPTH = 64
NEGLIGIBLE_S = 2e-6
_COUNT = 2000
_MIXED_DEPTH = 2
"""Queue depth of a mix of analytical queries: on PostgreSQL 18 with two cores, the 22 TPC-H-derived queries had 1.3 to
1.9 reads in flight."""
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def normalized(subject: str, text: str) -> str:
    """Returns the expression in normal form. Raises InputError with the position of the mistake and the nearest
    name."""
    try:
        return normal_form(text)
    except InputError as error:
        raise InputError(
            subject,
            f"{text!r} has no slash, so it names a device: {error.cause}",
            "; ".join(filter(None, (error.hint, f"for a directory, write ./{text}"))),
        ) from None


def read_rate(model: str, capacity_bytes: int | None, depth: int) -> float:
    """Returns the modelled number of random 4 KiB reads per second at a queue depth. `capacity_bytes`: with None, the
    capacity of the model is used."""
    return _reads(model, capacity_bytes, depth)[0]


def is_negligible(model: str, capacity_bytes: int) -> bool:
    """Returns whether the modelled read latency is negligible compared with the I/O path of any emulated device. In
    this case, the model has no effect."""
    return _reads(model, capacity_bytes, 1)[1] < NEGLIGIBLE_S


def mixed_read_rate(model: str, capacity_bytes: int, read_bytes: int) -> float:
    """Returns the modelled throughput of random reads of `read_bytes` each, in bytes per second. The queue depth
    is that of a mix of queries."""
    reads_per_s, _ = _reads(model, capacity_bytes, _MIXED_DEPTH, read_bytes)
    return reads_per_s * read_bytes


def depth(model: str, capacity_bytes: int) -> int:
    """Returns the queue depth up to which the device's throughput rises. Returns 1 if the device's latency is
    negligible."""
    if is_negligible(model, capacity_bytes):
        return 1
    gain = read_rate(model, capacity_bytes, DEEP) / read_rate(model, capacity_bytes, 1)
    return max(1, min(MOST_DEPTH, round(gain)))


def rotates(model: str) -> bool:
    """Returns whether the expression contains a rotating disk. The kernel's rotational flag of an emulated device does
    not depend on the model."""
    known = models()
    return any(known[name].kind == "disk" for name in _NAME.findall(model) if name in known)


def _reads(model: str, capacity_bytes: int | None, depth: int, length: int = 4096) -> tuple[float, float]:
    """Returns reads per second and the mean latency in seconds."""
    load = {"length": length, "depth": depth, "count": _COUNT, "warm_up": _COUNT // 10}
    iops, _, latency = _core.probe_device(model, for_core(models()), capacity_bytes, json.dumps(load).encode())
    return iops, latency.mean_s
