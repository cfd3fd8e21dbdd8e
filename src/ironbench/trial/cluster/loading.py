"""Pieces of a large load, shared among workers: whichever is free takes the next."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironbench.errors import FailureError
from ironbench.host.child import refusal
from ironbench.model.workers import MOST_CONNECTIONS

_LOOK_S = 0.5


def connections(hosts: Sequence[Mapping[str, Any]]) -> list[int]:
    """Of each worker: as many as it may use CPUs, shared with the workers beside it; at least one."""
    boots = [one["boot"] for one in hosts]
    return [max(1, min(MOST_CONNECTIONS, one["cpus"] // boots.count(one["boot"]))) for one in hosts]


def shared(
    workers: Sequence[Any], slots: Sequence[int], plan: Mapping[str, Any], look: Callable[[], None]
) -> dict[str, Any]:
    """Copies all pieces of the plan that are not done. An error to be raised, empty when there was none.

    `slots`: connections of each worker. `look` is called now and then, and raises when a worker is lost.
    """
    import ray

    from ironbench import _core

    generator, done = (json.dumps(plan[name]).encode() for name in ("generator", "done"))
    waiting = deque(_core.cut_rows(generator, sum(slots), done))
    # The connections of a round before the second of any worker: all begin at once.
    free = deque(worker for turn in range(max(slots)) for worker, most in enumerate(slots) if turn < most)
    running: dict[Any, int] = {}
    looked_s = 0.0
    while waiting or running:
        while waiting and free:
            table, first, past = waiting.popleft()
            only = {"only": [{"table": table, "first": first, "past": past}], "done": [], "connections": 1}
            worker = free.popleft()
            running[workers[worker].load.remote(json.dumps({**plan, **only}).encode())] = worker
        ended, _ = ray.wait(list(running), timeout=_LOOK_S)
        for one in ended:
            free.append(running.pop(one))
            try:
                refused: dict[str, Any] = ray.get(one)
            except ray.exceptions.RayError as error:
                look()
                return refusal(FailureError("workers", f"a piece of the load failed: {error}"))
            if refused:
                return refused
        if time.monotonic() - looked_s > _LOOK_S:
            looked_s = time.monotonic()
            look()
    look()
    return {}
