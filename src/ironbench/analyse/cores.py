"""How many cores a system had: what a score is divided by in balance sheets, leaderboards, bills and leads alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbench import engines, workloads
from ironbench.model.record import Record


def bare(record: Record) -> bool:
    """Whether no database lay between the work and the machine."""
    engine = engines.find(record.system.engine)
    return engine is not None and engine.can("bare machine")


def held_to(record: Record) -> tuple[int, ...]:
    """CPUs that its work was held to; empty: all of them.

    A server's are its own. Where there is no engine, the threads are the system. A library engine works in the threads
    that drive it, and what binds such a thread comes after what binds their process (sched_setaffinity(2)); but work
    that drives itself asks it in processes that bind themselves to the server's, after they have inherited the others.
    """
    system, workload = record.system, workloads.find(record.choice.workload)
    engine = engines.find(system.engine)
    in_client = engine is not None and engine.can("in client")
    if bare(record) or (in_client and workload is not None and workload.drives):
        return system.server_cpus or system.client_cpus or ()
    if in_client:
        return system.client_cpus or system.server_cpus or ()
    return system.server_cpus or ()


def machine_cores(machine: Mapping[str, Any]) -> int | None:
    """Physical ones, where its fingerprint tells them."""
    cores = (machine.get("cpu") or {}).get("cores")
    return int(cores) if cores else None


def cores_held(record: Record, of_machine: int | None) -> int | None:
    """The machine's, or as many CPUs as the work was held to: two logical CPUs may be one core, of which nothing is
    recorded, but no work has more cores than the machine. None: not known."""
    held = len(held_to(record))
    return min(of_machine or held, held) if held else of_machine
