"""Number of I/Os per second that this machine can emulate. The number is measured when a device is mounted, and stored
for plans."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from ironbench.devices import expression
from ironbench.devices.device_probe import LOADS, LOG_WRITE, probed
from ironbench.host import data_dirs
from ironbench.host.fingerprint import content_key, fingerprint
from ironbench.model.judging_limits import FAITHFUL_LOAD

TOO_FAST = 4.0
"""A model is refused if its number of reads per second exceeds that of this machine's I/O path by this factor."""
_REQUESTS = 2
"""A WAL write and its flush are two requests. The I/O path takes about as long for each of them as for a read."""
_FILE = "emulation-rate.json"


@dataclass(frozen=True, slots=True)
class EmulationRate:
    """Rate and overhead of this machine's I/O path to emulated devices."""

    reads_per_s: float
    """Maximum number of random reads per second through the I/O path."""
    read_latency_s: float
    """Time that the I/O path adds to a single read. A device with a shorter latency cannot be emulated on time."""
    measured_unix_s: float
    machine: str = ""

    @property
    def faithful_per_s(self) -> float:
        """Maximum number of I/Os per second that this machine emulates on time."""
        return FAITHFUL_LOAD * self.reads_per_s

    @property
    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self.measured_unix_s))


class Fidelity(StrEnum):
    """Whether this machine can emulate a model."""

    FAITHFUL = "faithful"
    LIMITED = "limited"
    """The model is too fast for this machine if the database keeps the device busy."""
    SHORT = "short"
    """The model completes a single read, or a WAL write with its flush, faster than this machine's I/O path can."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class EmulatedSpeed:
    """The speed of a model, and whether this machine can emulate it."""

    reads_per_s: float
    """Random reads of 4 KiB per second, at a queue depth that saturates the model."""
    read_s: float
    """Mean time of a single read of 4 KiB."""
    log_write_s: float
    """Mean time to write and flush 8 KiB of WAL."""
    fidelity: Fidelity


def speed(model: str, models: bytes, capacity_bytes: int | None, rate: EmulationRate) -> EmulatedSpeed:
    """Compares a model with what this machine can emulate. Raises InputError for an invalid expression. `models`: as
    returned by `models.for_core`."""
    reads = {"length": 4096, "count": 2000, "warm_up": 200}
    reads_per_s = probed(model, models, reads | {"depth": expression.DEEP}, capacity=capacity_bytes).iops
    read_s = probed(model, models, reads | {"depth": 1}, capacity=capacity_bytes).mean_s
    log_write_s = 1 / probed(model, models, LOADS[LOG_WRITE], capacity=capacity_bytes).iops
    if read_s < expression.NEGLIGIBLE_S:
        fidelity = Fidelity.FAITHFUL  # such a device is only as fast as this machine, as intended
    elif is_too_fast(reads_per_s, rate.reads_per_s):
        fidelity = Fidelity.REFUSED
    elif read_s < rate.read_latency_s or log_write_s < _REQUESTS * rate.read_latency_s:
        fidelity = Fidelity.SHORT
    elif reads_per_s > rate.faithful_per_s:
        fidelity = Fidelity.LIMITED
    else:
        fidelity = Fidelity.FAITHFUL
    return EmulatedSpeed(reads_per_s, read_s, log_write_s, fidelity)


def is_too_fast(modelled_per_s: float, emulated_per_s: float) -> bool:
    """Returns whether a model is refused. Results with it would measure this machine instead of the model."""
    return modelled_per_s > emulated_per_s * TOO_FAST


def store(calibration: Mapping[str, Any]) -> EmulationRate | None:
    """Stores the calibration of a mounted device, and returns it. Returns None, and stores nothing, if the kernel
    handles the requests without the emulating process. In this case, the calibration does not apply to device
    models."""
    if calibration["passes"] or calibration["reads_per_s"] <= 0:
        return None
    found = EmulationRate(
        calibration["reads_per_s"], calibration["read_latency_ns"] / 1e9, time.time(), content_key(fingerprint())
    )
    with contextlib.suppress(OSError):  # a plan can be made without a stored calibration
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(msgspec.json.encode(found))
        temporary.replace(path)
    return found


def stored() -> EmulationRate | None:
    """Returns the stored calibration of this machine. Returns None if there is none."""
    try:
        found = msgspec.json.decode(_path().read_bytes(), type=EmulationRate)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.machine == content_key(fingerprint()) else None


def _path() -> Path:
    return data_dirs.base() / "devices" / _FILE
