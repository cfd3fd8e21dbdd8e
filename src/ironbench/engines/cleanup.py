"""Ends what outlived the ironbench that started it."""

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
from ironbench.host import place, processes, register, scratch, undo
from ironbench.model.system import System


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a cleanup came upon, and what became of it."""

    ended: tuple[register.RegisterEntry, ...] = ()
    """Their owner is dead; they are gone now."""
    stubborn: tuple[register.RegisterEntry, ...] = ()
    """Their owner is dead; they could not be ended."""
    living: tuple[register.RegisterEntry, ...] = ()
    """Their owner lives; left alone."""
    removed: tuple[str, ...] = ()
    """Directories that were removed: what ideal parts left in memory, and default data directories."""
    kept: tuple[str, ...] = ()
    """Default data directories and snapshots of loaded data that were kept: nobody asked for their end."""
    used: tuple[str, ...] = ()
    """Kept although removal was asked for: in use."""


def cleanup(remove_data: bool, environ: Mapping[str, str] = os.environ) -> Cleaned:
    """Ends every server without a living owner, with its sockets and its register entry; data only when asked for."""
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
    return Cleaned(
        ended=tuple(ended),
        stubborn=tuple(entry for entry in orphans if entry not in ended),
        living=tuple(entry for entry in entries if entry not in orphans),
        removed=tuple(map(str, (*in_memory, *removed))),
        kept=() if remove_data else left,
        used=left if remove_data else (),
    )


def database(dsn: str) -> str:
    """Removes what ironbench made in the database of a running server; says what that was.

    InputError: a DSN that cannot be used. FailureError: nothing was removed.
    """
    engine = _engine_of(dsn)
    system, secrets = engine.validated(System(engine.name, "cleanup", dsn=dsn), 1)
    with engines.running(system, secrets, 1) as session:
        words = engine.administration.remove_made(session).words
    return f"removed: {words}" if words else "nothing that ironbench made is in this database"


def _engine_of(dsn: str) -> Engine:
    """The engine that marks what ironbench makes and whose servers have DSNs of this scheme. InputError: none."""
    scheme = engines.scheme(dsn)
    engine = engines.of_scheme(scheme)
    if engine is None or not engine.administration.marks:
        marking = [one for one in map(engines.get, engines.names()) if one.administration.marks]
        known = ", ".join(sorted(f"{word}://" for one in marking for word in one.traits.schemes if word))
        raise InputError("--dsn", f"there are no databases to clean at {scheme}://", f"known: {known}")
    return engine


def leftovers() -> list[str]:
    """What a killed ironbench left that `cleanup` would end or remove, one by one; nothing is touched."""
    entries = register.entries()
    orphans = [entry for entry in entries if register.orphaned(entry)]
    in_memory = ideal.abandoned([entry.data for entry in entries if entry not in orphans])
    return [*(f"{entry.kind} in {entry.data}" for entry in orphans), *map(str, in_memory)]


def not_undone() -> list[str]:
    """Cleanup commands of ended ironbenches that have not succeeded, whether they failed or were never run."""
    return [f"{one.of}: `{shortened(one.cleanup)}`" for one in undo.orphans()]


def lines_of(cleaned: Cleaned, unfinished: Sequence[str] = ()) -> list[str]:
    """A line for each thing ended, removed or kept. `unfinished`: records and exports that were removed, too."""
    lines = []
    for word, entries in (("ended", cleaned.ended), ("cannot end", cleaned.stubborn), ("still used", cleaned.living)):
        for entry in entries:
            server = "no process" if entry.server is None else f"process {entry.server.pid}"
            lines.append(f"{word}: {entry.kind} in {entry.data} ({server}, of ironbench process {entry.owner.pid})")
    lines += [f"removed: {path}" for path in (*cleaned.removed, *unfinished)]
    lines += [f"kept: {path} (--data removes it)" for path in cleaned.kept]
    lines += [f"kept: {path} (in use)" for path in cleaned.used]
    return lines or ["nothing of ours is left"]


def _default_data(environ: Mapping[str, str]) -> list[Path]:
    base = place.default("any", "0", environ).parent
    return sorted(path for path in base.glob("*-*") if path.is_dir() and place.ours(path)) if base.is_dir() else []


def _snapshots(environ: Mapping[str, str]) -> list[Path]:
    base = place.snapshots(environ)
    return sorted(path for path in base.iterdir() if path.is_dir()) if base.is_dir() else []


def _snapshot_removed(path: Path) -> bool:
    """Removes a snapshot, or what a killed load left of one, unless somebody makes or uses it."""
    fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if place.used(path):
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
    """Removes a data directory of ours that nobody uses."""
    if processes.working_in(path, below=True) or place.used(path):
        return False
    try:
        lock = place.lock(path)
    except InputError:
        return False
    try:
        shutil.rmtree(path)
    finally:
        os.close(lock)
    return True
