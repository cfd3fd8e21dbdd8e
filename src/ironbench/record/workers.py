"""What each worker of a trial did, as a file of its record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from ironbench.model.workers import Worker

WORKERS = "workers.json"
_MOST = 10_000
_LONGEST = 1_000


def written(workers: Sequence[Worker], machines: Mapping[int, str]) -> bytes:
    """`machines`: content keys of fingerprints, by the number that a worker has less one."""
    rows = [replace(one, machine=machines.get(one.number - 1, "")) for one in workers]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1)


def read(data: bytes) -> tuple[Worker, ...]:
    """ValueError, msgspec.MsgspecError."""
    workers = msgspec.json.decode(data, type=tuple[Worker, ...])
    if len(workers) > _MOST or any(len(one.host) > _LONGEST for one in workers):
        raise ValueError(f"holds more than {_MOST} workers, or a name of more than {_LONGEST} characters")
    if not all(math.isfinite(one.elapsed_s + one.start_s + one.threads_cpu_share) for one in workers):
        raise ValueError("has a time that is no number")
    return workers
