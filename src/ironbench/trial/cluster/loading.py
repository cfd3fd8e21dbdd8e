"""Distributes the pieces of a large load among workers: each worker that is free takes the next piece."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironbench.errors import FailureError
from ironbench.host.child import encode_error
from ironbench.model.workers import MOST_CONNECTIONS

_POLL_INTERVAL_S = 0.5


def connections(hosts: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the number of connections of each worker. A machine has one connection for each CPU. These are divided
    among the workers on the machine, but each worker has at least one."""
    boots = [one["boot"] for one in hosts]
    return [max(1, min(MOST_CONNECTIONS, one["cpus"] // boots.count(one["boot"]))) for one in hosts]


def shared(
    workers: Sequence[Any], slots: Sequence[int], plan: Mapping[str, Any], check: Callable[[], None]
) -> dict[str, Any]:
    """Copies all remaining pieces of the plan. If copying fails, returns the error, which the caller must raise.
    Otherwise, returns an empty dict.

    `slots`: number of connections of each worker. `check`: function that is called regularly and raises an exception if
    a worker was lost.
    """
    import ray

    from ironbench import _core

    generator, done = (json.dumps(plan[name]).encode() for name in ("generator", "done"))
    waiting = deque(_core.cut_rows(generator, sum(slots), done))
    # The list contains the first connection of every worker, then the second of every worker, and so on. All workers
    # therefore start at once.
    free = deque(worker for turn in range(max(slots)) for worker, most in enumerate(slots) if turn < most)
    running: dict[Any, int] = {}
    checked_s = 0.0
    while waiting or running:
        while waiting and free:
            table, first, past = waiting.popleft()
            only = {"only": [{"table": table, "first": first, "past": past}], "done": [], "connections": 1}
            worker = free.popleft()
            running[workers[worker].load.remote(json.dumps({**plan, **only}).encode())] = worker
        ended, _ = ray.wait(list(running), timeout=_POLL_INTERVAL_S)
        for one in ended:
            free.append(running.pop(one))
            try:
                refused: dict[str, Any] = ray.get(one)
            except ray.exceptions.RayError as error:
                check()
                return encode_error(FailureError("workers", f"loading a part of the data failed: {error}"))
            if refused:
                return refused
        if time.monotonic() - checked_s > _POLL_INTERVAL_S:
            checked_s = time.monotonic()
            check()
    check()
    return {}
