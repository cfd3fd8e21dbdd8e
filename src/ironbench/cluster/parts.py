"""One drive plan cut into those of several drives, which do together what it says."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbench.errors import InputError, written
from ironbench.model.system import Load


def require(load: Load) -> None:
    """InputError: a worker would have nothing to do, or the load cannot be shared."""
    if load.curve is not None:
        field = f"load.{load.curve.of}"
        raise InputError(
            written(field), "follows a curve, and workers share a load that stays", "leave one of them out"
        )
    if load.workers > load.clients:
        cause = f"{load.workers} workers have {load.clients} clients between them"
        raise InputError(written("load.workers"), cause, f"give at least as many {written('load.clients')}")


def clients(count: int, workers: int) -> list[int]:
    """Of each worker: as even as can be."""
    return [count * (number + 1) // workers - count * number // workers for number in range(workers)]


def cut(plan: bytes, workers: int) -> list[bytes]:
    """The plans of the drives. Each has its share of the clients, and of the rate as of the clients; no observers."""
    whole: dict[str, Any] = msgspec.json.decode(plan)
    shares = clients(whole["clients"], workers)
    parts, first = [], 0
    for number, share in enumerate(shares):
        schedule = dict(whole["schedule"])
        if "rate" in schedule:
            schedule["rate"] *= share / whole["clients"]
        part = {
            **whole,
            "clients": share,
            # As many of each: the parts of a schedule are told apart by the numbers of their threads.
            "threads": min(whole["threads"], *shares),
            "schedule": schedule,
            "observers": [],
            "part": {"number": number, "of": workers, "first_client": first, "all_clients": whole["clients"]},
        }
        parts.append(msgspec.json.encode(part))
        first += share
    return parts
