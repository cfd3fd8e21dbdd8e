"""Which part of a transaction's time a wait event of PostgreSQL belongs to.

Events: PostgreSQL 18 documentation, tables 27.5 to 27.12, and the view pg_wait_events. Names differ in case between
versions (`WALSync`, `WalSync`), so they are compared without it.
"""

from __future__ import annotations

from ironbench.model.observer import IDLE, WORKING
from ironbench.model.parts import (
    CLIENT,
    CPU,
    DATA_READ,
    DATA_WRITE,
    INTERNAL_LOCKS,
    LOCKS,
    LOG_FLUSH,
    OTHER,
    TEMP,
)

_OF_TYPE = {"lock": LOCKS, "bufferpin": LOCKS, "lwlock": INTERNAL_LOCKS, "client": CLIENT}
_READS = {"datafileread", "datafileprefetch", "slruread", "relationmapread", "copyfileread"}
_LOG_LOCKS = {"walwrite", "walinsert", "walbufmapping", "syncrep"}
_SHORT_LOCKS = {"procarraygroupupdate", "xactgroupupdate", "spindelay", "btreepage"}


def part_of_event(event: str) -> str:
    """The part of an event as the observer names it: `IO.WalSync`, `CPU`, `idle`."""
    kind, _, name = event.lower().partition(".")
    if event == IDLE:
        return CLIENT
    if event == WORKING:
        return CPU
    # One flush serves many commits: whoever finds one under way waits for the log's lock instead of the device.
    if name in _LOG_LOCKS:
        return LOG_FLUSH
    if kind == "io":
        return _part_of_io(name)
    if name in ("bufferio", "aioiocompletion"):
        return DATA_READ  # another backend, or an I/O worker, is reading the page
    if name in _SHORT_LOCKS:
        return INTERNAL_LOCKS
    return _OF_TYPE.get(kind, OTHER)


def _part_of_io(name: str) -> str:
    if name.startswith("wal"):
        return LOG_FLUSH
    if name.startswith("buffile"):
        return TEMP
    # Asynchronous I/O only reads (PostgreSQL 18).
    if name in _READS or name.startswith("aio"):
        return DATA_READ
    return DATA_WRITE if name.startswith(("datafile", "slru", "copyfile", "relationmap")) else OTHER
