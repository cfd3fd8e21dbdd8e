"""Maps PostgreSQL's wait events to wait classes.

Events: PostgreSQL 18 documentation, tables 27.5 to 27.12, and the view pg_wait_events. Upper and lower case differ
between versions (`WALSync`, `WalSync`) and are ignored.
"""

from __future__ import annotations

from ironbench.model.observer import (
    CLIENT,
    CPU,
    DATA_READ,
    DATA_WRITE,
    IDLE,
    INTERNAL_LOCKS,
    LOCKS,
    LOG_FLUSH,
    OTHER,
    TEMP,
    WORKING,
)

_CLASS_OF_TYPE = {"lock": LOCKS, "bufferpin": LOCKS, "lwlock": INTERNAL_LOCKS, "client": CLIENT}
_READS = {"datafileread", "datafileprefetch", "slruread", "relationmapread", "copyfileread"}
_LOG_LOCKS = {"walwrite", "walinsert", "walbufmapping", "syncrep"}
_SHORT_LOCKS = {"procarraygroupupdate", "xactgroupupdate", "spindelay", "btreepage"}


HOLDER = {
    WORKING: "runs without a known wait",
    "Client.ClientRead": "waits for its client's next statement",
    "Client.ClientWrite": "waits for its client to receive the result",
    "IO.WalSync": "flushes the WAL",
    "LWLock.WALWrite": "waits for a WAL flush",
    "IO.WalWrite": "writes the WAL",
    "IO.DataFileRead": "reads data pages",
    "deadlock": "is part of a deadlock",
    "ended": "had just ended",
}
"""Activity of the backend at the root of a chain of lock waits, for each of its wait events or states. Case is
ignored."""


def wait_class_of(event: str) -> str:
    """Returns the wait class of an event. The observer names events like `IO.WalSync`, `CPU` or `idle`."""
    kind, _, name = event.lower().partition(".")
    if event == IDLE:
        return CLIENT
    if event == WORKING:
        return CPU
    # In a group commit, a backend that finds a flush in progress waits for the WAL lock and not for the device. This
    # wait also counts as a flush of the WAL.
    if name in _LOG_LOCKS:
        return LOG_FLUSH
    if kind == "io":
        return _class_of_io(name)
    if name in ("bufferio", "aioiocompletion"):
        return DATA_READ  # the backend waits until another backend or an I/O worker has read the page
    if name in _SHORT_LOCKS:
        return INTERNAL_LOCKS
    return _CLASS_OF_TYPE.get(kind, OTHER)


def _class_of_io(name: str) -> str:
    if name.startswith("wal"):
        return LOG_FLUSH
    if name.startswith("buffile"):
        return TEMP
    # Asynchronous I/O is only used for reads (PostgreSQL 18).
    if name in _READS or name.startswith("aio"):
        return DATA_READ
    return DATA_WRITE if name.startswith(("datafile", "slru", "copyfile", "relationmap")) else OTHER
