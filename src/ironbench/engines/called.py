"""Trials in an engine's own process, where the core does not speak its wire: its loop calls a client of ours each time.

A client has `steps`, one for each command of its scripts, `rollback`, `cancel`, `trouble` and `inside`
(crates/ironbench-python/src/called.rs). Only the standard library: children of ours import this.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Command = tuple[str, str, bool]
"""Its text, whose rows are wanted (`gset`: of its last statement, `aset`: of each, empty: none), whether it is several
statements."""
Answer = bool | tuple[bool, int, list[tuple[str, str | None]]]
Step = Callable[[tuple[Any, ...]], Answer]


def addressed(plan: bytes) -> tuple[dict[str, Any], bytes]:
    """What a plan says of the engine, and the plan as the core's `drive_called` takes it."""
    asked = json.loads(plan)
    engine = asked["engine"]
    asked["engine"] = {"kind": "called", **engine.get("core", {})}  # what the core must know of its scripts
    return engine, json.dumps(asked).encode()
