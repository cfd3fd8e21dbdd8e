"""Names of wait classes and of the roles of devices in reports."""

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
    """Returns the name of a wait class in reports, such as `WAL` for `log flush`. `part`: one of
    `observer.WAIT_CLASSES`."""
    return _NAMES.get(part, part)


def device_role(words: str) -> str:
    """Returns the name of a device's role or of a kind of I/O in reports, such as `WAL flush` for `log flush`."""
    return " ".join("WAL" if word == "log" else word for word in words.split(" "))
