"""Base class of engines that are a library with a single database file. The class refuses unsupported options, checks
limits, and copies the file."""

from __future__ import annotations

import json
import stat
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.engines import ideal
from ironbench.engines.base import Engine
from ironbench.engines.own_files import locked, next_kept
from ironbench.errors import FailureError, InputError, written
from ironbench.host import control_groups, copies, data_dirs, processes, register, space
from ironbench.host.copies import CopyResult
from ironbench.model.profile import WAITING_FOR_WORK
from ironbench.model.system import System

NOTE = "restored.json"
"""Name of a file next to the database file. The file contains the snapshot from which the database was restored, and
the inode of the database file. The inode shows whether the database file was replaced since."""
_LOGS = ("-wal", "-journal", ".wal")
"""Suffixes of the WAL files and journals of SQLite and DuckDB."""
_LARGEST_SETUP = 1 << 28
"""Maximum size of an SQL file. Such a file is read into memory as a whole."""
_MOST_CLIENTS = 1000
IDLE_THREADS = {r"PyThread_acquire_lock_timed|sock_recv(msg)?|time_sleep|.*park_timeout.*": WAITING_FOR_WORK}
"""Activity of ironbench's threads in profiles (`Engine.profile_groups`). These threads run in the same process as the
library, so they have the role of the engine. They do not run transactions while they wait in these functions."""


class LibraryEngine(Engine, ABC):
    """A library whose database is one file in a directory of ironbench."""

    title: str
    """Official spelling of the engine's name."""
    file: str
    """Name of the database file."""
    version: str
    """Version in the name of the default directory."""
    beside_data: Mapping[str, str]
    """For each role that cannot have its own directory with this engine, the reason."""
    never_ideal: Mapping[str, str]
    """For each part that cannot be made zero-latency, the reason."""

    def refuse(self, system: System, clients: int) -> None:
        """Raises InputError for options that these engines do not support: a server, separate directories, zero-latency
        parts, too many clients."""
        if system.dsn is not None:
            hint = "remove it, or use a server engine"
            raise InputError(written("system.dsn"), f"{self.title} is not a server", hint)
        for role, cause in self.beside_data.items():
            if getattr(system.layout, role) is not None:
                raise InputError(written(f"layout.{role}"), cause, "remove it")
        ideal.refuse(system, self.never_ideal)
        if not 1 <= clients <= _MOST_CLIENTS:
            cause = f"{self.title} supports 1 to {_MOST_CLIENTS} clients, one thread each"
            raise InputError(f"{clients} clients", cause, "change the number of clients")

    def folder(self, system: System) -> Path:
        """Returns the directory of the database file. The directory may not exist yet."""
        return Path(system.layout.data or data_dirs.default(self.name, self.version))

    def enter_register(self, folder: Path, limit_bytes: int | None) -> register.RegisterEntry:
        """Registers the directory as in use, and creates the control group that limits memory. Raises FailureError."""
        groups = () if limit_bytes is None else (str(control_groups.chosen()),)
        entry = None
        try:
            with processes.interrupt_held():
                entry = register.new(self.name, str(folder), groups=groups)
                for group in groups:
                    control_groups.make(Path(group), limit_bytes or 0)
        except BaseException:
            if entry is not None:
                register.end(entry)
            raise
        return entry

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> CopyResult:
        data = self.folder(system)
        with locked(data):
            return take(data / self.file, folder, keep=keep)

    def restore(self, system: System, folder: Path) -> CopyResult:
        data = data_dirs.claim(str(self.folder(system)), "data")
        with locked(data):
            return put_back(data / self.file, folder)


def take(file: Path, folder: Path, *, keep: bool) -> CopyResult:
    """Copies the database file into a new `folder`. Raises FailureError if the file's WAL still contains
    transactions."""
    for suffix in _LOGS:
        log = file.with_name(file.name + suffix)
        if log.exists() and log.stat().st_size:
            raise FailureError(
                f"database {file}",
                f"not closed cleanly: {log.name} still contains changes",
                "open and close the database once",
            )
    with copies.atomic_directory(folder) as aside:
        return copies.file(file, aside / file.name, link=not keep)


def put_back(file: Path, folder: Path) -> CopyResult:
    """Replaces the database file with the copy in `folder`. Raises FailureError, and InputError if there is not enough
    space. If the replaced file did not come from a snapshot, it is renamed to `….kept-N`, together with its WAL."""
    _remove_or_keep(file)
    aside = file.with_name(f"{file.name}.new")
    aside.unlink(missing_ok=True)
    space.require(file.parent, copies.size(folder), "the copy of the data")
    done = copies.file(folder / file.name, aside)
    note = {"snapshot": folder.name, "inode": aside.stat().st_ino}
    (file.parent / NOTE).write_text(json.dumps(note) + "\n")
    copies.put(aside, file)
    copies.evict(folder)
    return done


def restored(file: Path) -> bool:
    """Returns whether the database file was restored from a snapshot."""
    try:
        note = json.loads((file.parent / NOTE).read_text())
        return bool(note["inode"] == file.stat().st_ino)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _remove_or_keep(file: Path) -> None:
    parts = [file.with_name(file.name + suffix) for suffix in ("", *_LOGS, "-shm")]
    if restored(file) or not file.exists():
        for part in reversed(parts):
            part.unlink(missing_ok=True)
        return
    kept = next_kept(file)
    for part in parts:
        if part.exists():
            part.rename(kept.with_name(kept.name + part.name.removeprefix(file.name)))


def require_closed(dump: Path, what: str, magic: bytes, at: int, logs: Sequence[str], hint: str) -> None:
    """Raises InputError unless `dump` is a closed database file. Such a file has the bytes `magic` at offset `at`, and
    its WAL contains no changes.

    `what`: kind of file. `hint`: how to move the changes of a WAL into the file.
    """
    subject = f"dump {dump}"
    if dump.is_dir():
        raise InputError(subject, "is a directory", "give the path of the database file")
    with dump.open("rb") as file:
        if file.read(at + len(magic))[at:] != magic:
            raise InputError(
                subject, f"is not {what}", "give the path of a database file; SQL files can be used as setup files"
            )
    for log in (dump.with_name(dump.name + suffix) for suffix in logs):
        if log.exists() and log.stat().st_size:
            cause = f"{log.name} contains changes that are not in the file yet, or the file is in use"
            raise InputError(subject, cause, hint)


def setup_text(file: Path) -> str:
    return text_of(file, str(file), "give the path of an SQL file", _LARGEST_SETUP)


def place_file(system: System, dump: Path, name: str) -> None:
    """Copies the user's database file into the system's data directory, under the name that the engine opens."""
    file = data_dirs.claim(str(system.layout.data), "data") / name
    copies.file(dump, file)
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)  # the copy must be writable even if the original is not
