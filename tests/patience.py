"""Waiting for asynchronous events."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], within_s: float = 30.0) -> bool:
    """Waits until a condition is true. Returns whether it became true in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
