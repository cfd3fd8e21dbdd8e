"""Prepares the state of the caches at the start of a trial, and verifies the state from the bytes that the trial read
from devices.

`cold`: the engine has just started and the page cache contains none of its files. `warm`: the engine's buffer cache and
the page cache contain the workload's tables, as far as they fit. `hot`: warm, and the workload was rehearsed until the
cache hit ratio was steady.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbench import engines, units
from ironbench.engines.administration import DENIED
from ironbench.engines.library import LibraryEngine
from ironbench.errors import FailureError, InputError, written
from ironbench.host import copies
from ironbench.host.cgroup_limits import memory_available
from ironbench.host.fingerprint import virtualisation
from ironbench.host.tree import Tree
from ironbench.model.note import note
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.words import in_percent

STATES = ("cold", "warm", "hot")
STEADY = 0.005
"""The hit ratio counts as steady if it changes by less than this fraction between two rehearsals."""
MOST_REHEARSALS = 15
FITS = 0.8
"""Fraction of the available memory up to which data are assumed to stay cached."""
WARM_SHARE = 0.01
WARM_BYTES = 1 << 20
"""Maximum number of bytes that a warm trial may read from devices. For large data, the maximum is `WARM_SHARE` of their
size."""

Rehearse = Callable[[], None]
"""Function that runs the workload for a while without measuring it."""


def require(system: System, load: Load) -> None:
    """Raises InputError for a state that cannot be prepared on this system."""
    if load.cache and load.cache not in STATES:
        raise InputError("cache", f"{load.cache!r} is not a cache state", f"known: {', '.join(STATES)}")
    if load.cache and not engines.get(system.engine).can("data"):
        cause = f"ironbench cannot prepare the caches of {system.engine}"
        raise InputError(written("load.cache", load.cache), cause, f"remove {written('load.cache')}")
    if load.cache == "cold" and system.dsn is not None and not system.control:
        raise InputError(
            "cache cold",
            f"ironbench does not restart existing servers ({written('system.dsn')})",
            f"use `warm` or `hot`, or allow restarts with {written('system.control', 'ssh')}",
        )
    if load.cache == "cold" and system.control and not system.restart:
        cause = "needs a way to restart the server before each trial"
        hint = f"add {written('system.restart', 'NAME.service')}, or a command instead of the name"
        raise InputError(written("load.cache", "cold"), cause, hint)


@dataclass(frozen=True, slots=True)
class CacheState:
    """The prepared state of the caches, and the information needed to verify it."""

    asked: str
    prepared: TrialNotes = NO_NOTES
    data_bytes: int = 0
    fits: bool = True
    """Whether all data fit in the memory that is available for caching."""


def prepared(
    session: Session, system: System, load: Load, tables: tuple[str, ...], data_bytes: int, rehearse: Rehearse
) -> CacheState:
    """Prepares the caches as the load declares. Cold caches are emptied later, by `drop`. Raises FailureError."""
    # Labs of earlier versions may request a cache state for an engine whose caches cannot be prepared. The request is
    # ignored.
    if not load.cache or not engines.get(session.engine).can("data"):
        return CacheState("")
    require(system, load)
    fits = data_bytes <= FITS * _memory_bytes(session, system, load.clients)
    if load.cache == "cold":
        word = "guest-cold (the host of the virtual machine may still cache the files)" if virtual() else "cold"
        return CacheState(
            "cold",
            TrialNotes({"cache": f"{word}: engine restarted, files evicted from the page cache"}),
            data_bytes,
            fits,
        )
    how = warm(session, system, tables)
    if load.cache == "hot":
        return _hot(session, how, rehearse, data_bytes, fits)
    return CacheState("warm", TrialNotes({"cache": f"warm: {how}"}), data_bytes, fits)


def verified(state: CacheState, read_bytes: int | None) -> TrialNotes:
    """Returns conditions and warnings about the caches, based on the bytes that the engine had to read from its
    devices."""
    if not state.asked:
        return NO_NOTES
    if read_bytes is None:
        return TrialNotes({"cache verified": "not verified: ironbench cannot see the engine's reads from this machine"})
    conditions = {"cache verified": f"{units.stored(read_bytes)} read from devices"}
    if state.asked == "cold":
        if read_bytes:
            return TrialNotes(conditions)
        return TrialNotes(conditions, (note("cache-not-cold"),))
    if not state.fits:
        conditions["cache verified"] += "; the data are larger than the memory that can cache them"
        return TrialNotes(conditions)
    if read_bytes <= max(WARM_BYTES, WARM_SHARE * state.data_bytes):
        return TrialNotes(conditions)
    return TrialNotes(conditions, (note("cache-not-warm", declared=state.asked, read_bytes=read_bytes),))


def read_bytes(session: Session) -> int | None:
    """Returns the number of bytes that the engine has read from devices so far. Returns None if the engine's processes
    are not visible.

    The reads of ended backends are included: when a process waits for an ended child, the kernel adds the child's
    counters to those of the process (Linux: wait_task_zombie, kernel/exit.c). A library engine runs in child processes
    of ironbench, so ironbench's own counters are used.
    """
    engine = engines.get(session.engine)
    pids = [os.getpid()] if engine.can("in client") else list(session.processes())
    if isinstance(engine, LibraryEngine):
        if engine.can("in client"):
            session.restart()  # ends the child process: only then are its reads counted
        else:
            pids.append(os.getpid())  # the counters include ended child processes
    counts = [_io(pid) for pid in pids]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def virtual() -> bool:
    """Returns whether the machine is virtual, so that a hypervisor may cache the devices."""
    return virtualisation(Tree()) != "none"


def drop(session: Session) -> Mapping[str, str]:
    """Restarts the engine and drops its files from the page cache. Returns conditions of the trial. Raises
    FailureError."""
    session.restart()
    for directory in set(session.directories().values()):
        copies.sync(Path(directory))  # `evict` drops only clean pages
        copies.evict(Path(directory))
    return {}


def _hot(session: Session, how: str, rehearse: Rehearse, data_bytes: int, fits: bool) -> CacheState:
    last: float | None = None
    for number in range(1, MOST_REHEARSALS + 1):
        before = engines.get(session.engine).administration.hits(session)
        rehearse()
        share = hit_share(before, engines.get(session.engine).administration.hits(session))
        if share is None:
            text = f"hot: {how}, with one warm-up pass; this engine has no hit counters"
            return CacheState("hot", TrialNotes({"cache": text}), data_bytes, fits)
        if last is not None and abs(share - last) < STEADY:
            text = f"hot: {how}, with {number} warm-up passes until the hit rate was steady at {in_percent(share)}"
            return CacheState("hot", TrialNotes({"cache": text}), data_bytes, fits)
        last = share
    unsteady = note("cache-not-steady", rehearsals=MOST_REHEARSALS)
    return CacheState(
        "hot", TrialNotes({"cache": f"hot: {how}, but the hit rate was not steady"}, (unsteady,)), data_bytes, fits
    )


def _memory_bytes(session: Session, system: System, clients: int) -> int:
    settings = session.facts().get("settings", {})
    if (own := engines.get(session.engine).data_memory(settings, clients)) is not None:
        return own
    if system.memory_total_bytes is not None:
        return system.memory_total_bytes
    if system.dsn is not None:  # the server is in no control group of ironbench
        return Tree().table("/proc/meminfo").get("MemAvailable", 0)
    return memory_available(Tree()) or 0


def _io(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    return None


def warm(session: Session, system: System, tables: tuple[str, ...]) -> str:
    """Reads the tables into the caches, as far as they fit. Without tables, reads the whole database. Returns a
    description of how this was done. Raises FailureError."""
    ways = []
    data = session.directories().get("data")
    # The files are not read if the engine has a memory limit. A control group is charged for a page only if its own
    # process is the first to read the page. Pages that this process reads would not count towards the limit.
    if data is not None and system.memory_total_bytes is None and system.dsn is None:
        copies.touch(Path(data))
        ways.append("files read")
    try:
        own = engines.get(session.engine).administration.warm(session, tables)
    except FailureError as error:
        if error.sqlstate == DENIED:
            what = "the workload's tables" if tables else "every table of the database"
            reads = f"with {written('load.cache', 'warm')} or `hot`, ironbench reads {what}"
            error.hint = f"{reads}: remove this setting, or {error.hint}"
        raise
    if own:
        ways.append(own)
    return " and ".join(ways) or "no data could be read before the trial"


def hit_share(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Returns the hit ratio between two readings of the counters. Returns None if no blocks were accessed."""
    if not before or not after:
        return None
    hit, read = after["hit"] - before["hit"], after["read"] - before["read"]
    return hit / (hit + read) if hit + read > 0 else None
