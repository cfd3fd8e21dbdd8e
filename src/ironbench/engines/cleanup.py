"""Stops servers and removes devices that were left behind when the ironbench process that started them died."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench import engines
from ironbench.engines import ideal
from ironbench.engines.base import Engine
from ironbench.errors import InputError, shortened
from ironbench.host import data_dirs, pending_cleanups, processes, register, scratch
from ironbench.model.system import System


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """Result of a cleanup."""

    ended: tuple[register.RegisterEntry, ...] = ()
    """Entries whose owner is dead and whose processes were stopped."""
    not_stopped: tuple[register.RegisterEntry, ...] = ()
    """Entries whose owner is dead and whose processes could not be stopped."""
    living: tuple[register.RegisterEntry, ...] = ()
    """Entries whose owner is alive. The processes of these entries are not touched."""
    removed: tuple[str, ...] = ()
    """Directories that were removed. These may be zero-latency parts in memory, default data directories, or
    snapshots."""
    kept: tuple[str, ...] = ()
    """Default data directories and snapshots that were kept because their removal was not requested."""
    used: tuple[str, ...] = ()
    """Directories that were kept because they are in use, although their removal was requested."""


def cleanup(remove_data: bool, environ: Mapping[str, str] = os.environ) -> CleanupResult:
    """Ends every server whose owner process is dead, and removes the server's sockets and register entry. Data are
    removed only with `remove_data`."""
    entries = register.entries()
    orphans = [entry for entry in entries if register.orphaned(entry)]
    ended = [entry for entry in orphans if register.end(entry)]
    in_memory = ideal.abandoned([entry.data for entry in entries if entry not in ended])
    for path in in_memory:
        ideal.remove(path)
    scratch.remove_abandoned()
    data, copies = _default_data(environ), _snapshots(environ)
    removed = [path for path in data if remove_data and _removed(path)]
    removed += [path for path in copies if remove_data and _snapshot_removed(path)]
    left = tuple(str(path) for path in (*data, *copies) if path not in removed)
    return CleanupResult(
        ended=tuple(ended),
        not_stopped=tuple(entry for entry in orphans if entry not in ended),
        living=tuple(entry for entry in entries if entry not in orphans),
        removed=tuple(map(str, (*in_memory, *removed))),
        kept=() if remove_data else left,
        used=left if remove_data else (),
    )


def database(dsn: str) -> str:
    """Removes everything that ironbench created in a database or directory of an existing server. Returns a sentence
    about the result.

    Raises InputError if the DSN cannot be used, and FailureError if nothing was removed.
    """
    engine = _engine_of(dsn)
    system, secrets = engine.validated(System(engine.name, "cleanup", dsn=dsn), 1)
    with engines.running(system, secrets, 1) as session:
        words = engine.administration.remove_made(session).words
    return f"removed: {words}" if words else engine.administration.nothing_made


def _engine_of(dsn: str) -> Engine:
    """Returns the engine of a DSN. Raises InputError if there is no such engine, or if the engine does not mark what
    ironbench creates."""
    scheme = engines.scheme(dsn)
    engine = engines.of_scheme(scheme)
    if engine is None or not engine.administration.marks:
        marking = [one for one in map(engines.get, engines.names()) if one.administration.marks]
        known = ", ".join(sorted(f"{word}://" for one in marking for word in one.traits.schemes if word))
        raise InputError("--dsn", f"cleanup does not support {scheme}://", f"supported: {known}")
    return engine


def leftovers() -> list[str]:
    """Lists everything that `cleanup` would stop or remove because the ironbench process that started it was killed.
    Changes nothing."""
    entries = register.entries()
    orphans = [entry for entry in entries if register.orphaned(entry)]
    in_memory = ideal.abandoned([entry.data for entry in entries if entry not in orphans])
    return [*(f"{entry.kind} in {entry.data}" for entry in orphans), *map(str, in_memory)]


def unfinished_cleanup_commands() -> list[str]:
    """Returns cleanup commands of ironbench processes that have died. The commands failed or were never run."""
    return [f"{one.of}: `{shortened(one.cleanup)}`" for one in pending_cleanups.orphans()]


def lines_of(cleaned: CleanupResult, unfinished: Sequence[str] = ()) -> list[str]:
    """Returns a line for each thing that was stopped, removed or kept. `unfinished`: incomplete records and exports
    that were removed."""
    lines = []
    for word, entries in (
        ("ended", cleaned.ended),
        ("cannot be killed", cleaned.not_stopped),
        ("in use", cleaned.living),
    ):
        for entry in entries:
            server = "no process" if entry.server is None else f"process {entry.server.pid}"
            server += f", started by ironbench process {entry.owner.pid}"
            lines.append(f"{word}: {entry.kind} in {entry.data} ({server})")
    lines += [f"removed: {path}" for path in (*cleaned.removed, *unfinished)]
    lines += [f"kept: {path} (remove it with --data)" for path in cleaned.kept]
    lines += [f"kept: {path} (in use)" for path in cleaned.used]
    return lines or ["nothing to clean up"]


def _default_data(environ: Mapping[str, str]) -> list[Path]:
    base = data_dirs.default("any", "0", environ).parent
    return sorted(path for path in base.glob("*-*") if path.is_dir() and data_dirs.ours(path)) if base.is_dir() else []


def _snapshots(environ: Mapping[str, str]) -> list[Path]:
    base = data_dirs.snapshots(environ)
    return sorted(path for path in base.iterdir() if path.is_dir()) if base.is_dir() else []


def _snapshot_removed(path: Path) -> bool:
    """Removes a snapshot, complete or incomplete, unless another process is creating or using it."""
    fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if data_dirs.used(path):
            return False
        shutil.rmtree(path)
    except BlockingIOError:
        return False
    else:
        path.with_suffix(".lock").unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


def _removed(path: Path) -> bool:
    """Removes a data directory of ironbench unless it is in use."""
    if processes.working_in(path, below=True) or data_dirs.used(path):
        return False
    try:
        lock = data_dirs.lock(path)
    except InputError:
        return False
    try:
        shutil.rmtree(path)
    finally:
        os.close(lock)
    return True
