"""Names of wait classes in reports."""

from __future__ import annotations

from ironbench.model import observer

_NAMES = {
    observer.RUN_QUEUE: "CPU scheduling wait",
    observer.DATA_READ: "data reads",
    observer.DATA_WRITE: "data writes",
    observer.LOG_FLUSH: "WAL",
    observer.TEMP: "temporary files",
    observer.INTERNAL_LOCKS: "LWLocks, latches",
}


def wait_class(part: str) -> str:
    """Names a part of the time (`observer.PARTS`): `log flush` is shown as `WAL`."""
    return _NAMES.get(part, part)
