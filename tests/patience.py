"""Waiting for asynchronous events."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], within_s: float = 30.0) -> bool:
    """Whether a condition becomes true in time; returns as soon as it does."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
