"""Trials in the engine's own process, for engines whose wire protocol the core does not implement: the core's drive
loop calls a Python client for each command.

A client has the methods `steps` (one callable for each command of its scripts), `rollback`, `cancel`, `trouble` and
`inside` (crates/ironbench-python/src/called.rs). Imports only the standard library, because child processes import this
module.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Command = tuple[str, str, bool]
"""Text of the command; which rows are returned (`gset`: those of the last statement, `aset`: those of each statement,
"": none); and whether the text contains several statements."""
Answer = bool | tuple[bool, int, list[tuple[str, str | None]]]
Step = Callable[[tuple[Any, ...]], Answer]


def split_plan(plan: bytes) -> tuple[dict[str, Any], bytes]:
    """Splits a plan into its engine section and the plan that the core's `drive_called` takes."""
    asked = json.loads(plan)
    engine = asked["engine"]
    asked["engine"] = {"kind": "called", **engine.get("core", {})}  # the core needs these for the scripts
    return engine, json.dumps(asked).encode()
