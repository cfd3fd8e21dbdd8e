"""Runs trials in the engine's own process, for engines whose wire protocol the core does not implement. The core's
drive loop calls a Python client for each command.

A client has the methods `steps`, `rollback`, `cancel`, `trouble` and `inside` (crates/ironbench-python/src/driver.rs).
`steps` returns one callable for each command of the client's scripts. This module imports only the standard library,
because child processes import it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Command = tuple[str, str, bool]
"""A command: its text, which rows it returns, and whether the text contains several statements. `gset` returns the rows
of the last statement, and `aset` returns those of each statement. "" returns no rows."""
Answer = bool | tuple[bool, int, list[tuple[str, str | None]]]
Step = Callable[[tuple[Any, ...]], Answer]


def split_plan(plan: bytes) -> tuple[dict[str, Any], bytes]:
    """Splits a plan into its engine section and the plan that the core's `drive_called` takes."""
    asked = json.loads(plan)
    engine = asked["engine"]
    # The core needs these settings for compiling the scripts.
    asked["engine"] = {"kind": "called", **engine.get("core", {})}
    return engine, json.dumps(asked).encode()
