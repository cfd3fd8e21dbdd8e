"""What an ideal part means for the load that is put on a system; the rest is the engine's (`engines.ideal`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ironbench.model.system import Load, System


def arranged(system: System, load: Load, cpus: Collection[int]) -> tuple[System, Load]:
    """System and load of a cell with its ideal parts.

    `client`: a thread for every core (as many as there are clients at most), on any core, and no think time: what the
    client then costs it cannot help costing. `data`: the caches are full when the trial begins.
    """
    if "client" in system.ideal:
        system = replace(system, client_cpus=None)
        load = replace(load, threads=max(load.threads, min(load.clients, len(cpus))), think_time_s=0.0)
    if "data" in system.ideal:
        load = replace(load, cache="hot")
    return system, load
