"""Where a systems file says otherwise than the machine that its records come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbench.analyse.cores import cores_held, held_to, machine_cores
from ironbench.model.cost import Offer
from ironbench.model.record import Record
from ironbench.words import counted

ALIKE = 0.10
"""Memory within this share is called equal: a GiB is 7 % more than a GB, and a kernel keeps some back for itself."""
_HELD = " that it was held to"


def contradictions(offer: Offer, records: Sequence[Record], machines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """In words. A running server (`--dsn`) may be elsewhere than on the machine recorded: of it nothing is said."""
    if not records or records[0].system.dsn:
        return
    record = records[0]
    machine = machines.get(record.machine, {})
    cores, held = cores_held(record, machine_cores(machine)), held_to(record)
    differing = []
    if cores is not None and cores != offer.cores:
        differing.append((counted(offer.cores, "core"), counted(cores, "core") + (_HELD if held else "")))
    sockets = (machine.get("cpu") or {}).get("sockets")
    if sockets and sockets != offer.sockets and not held:
        differing.append((counted(offer.sockets, "socket"), counted(sockets, "socket")))
    limit = record.system.memory_total_bytes
    memory_bytes = min((known for known in (limit, machine.get("memory_bytes")) if known), default=0)
    if memory_bytes and offer.memory_gb and abs(memory_bytes / 1e9 / offer.memory_gb - 1) > ALIKE:
        measured = f"{memory_bytes / 1e9:.{0 if memory_bytes >= 10e9 else 1}f} GB"
        differing.append((f"{offer.memory_gb:g} GB of memory", measured + (_HELD if memory_bytes == limit else "")))
    for said, measured in differing:
        yield (
            f"the systems file says {said}, its records were measured with {measured}: "
            "what they show is not what would be bought"
        )
