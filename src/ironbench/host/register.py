"""The register of everything that ironbench has started and must end: one JSON file per running server or device.

An entry is written before the server starts and removed after the server has ended, so that `ironbench cleanup` finds
servers whose ironbench has died. The guard runs this module without site-packages, so it uses only the standard library
and modules that do the same.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ironbench.errors import FailureError
from ironbench.host import freezer, loop_mounts, processes, shared_memory
from ironbench.host.processes import ProcessId

ORPHAN_PATIENCE_S = 20.0
"""Seconds that a server has to shut down after its owner has died."""
GROUP_PATIENCE_S = 5.0
DEVICE = "device"
"""Kind of an entry for an emulated device. Devices are removed after engines, because engines may store data on
them."""


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """A server or device that must end when its owner ends."""

    id: str
    kind: str
    """Name of the engine, or `DEVICE`."""
    owner: ProcessId
    data: str
    """Data directory of the server. The directory is not deleted when the server ends."""
    remove: tuple[str, ...] = ()
    """Directories that are deleted when the server ends, such as the directory of its sockets."""
    guard: ProcessId | None = None
    server: ProcessId | None = None
    shared: tuple[str, ...] = ()
    """Segments of shared memory that remain if the server is killed."""
    shared_prefix: str = ""
    """Prefix of the names of the server's shared memory segments. Empty if a killed server leaves no segment behind."""
    shared_mark: int = 0
    """Magic number that identifies the segment with a list of the server's other segments (see `shared_memory.of`)."""
    groups: tuple[str, ...] = ()
    """The server's control groups. The groups are removed after the server has ended."""
    namespace: str = ""
    """The process id namespace in which the entry's process ids are valid."""
    stop: int = signal.SIGINT
    """Signal that shuts the server down cleanly."""


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of the register, and creates it if it is missing. Raises FailureError if this fails, or if
    the directory belongs to another user."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    usable = base.startswith("/") and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK)  # noqa: PTH112
    path = Path(base) / "ironbench" if usable else Path(f"/tmp/ironbench-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        info = path.lstat()
    except OSError as error:
        cause = f"cannot be created: {error.strerror}"
        raise FailureError(
            f"runtime directory {path}", cause, "set XDG_RUNTIME_DIR to one of your directories"
        ) from None
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise FailureError(
            f"runtime directory {path}",
            "is not a directory that only you can write to",
            "remove it, or set XDG_RUNTIME_DIR",
        )
    return path


def new(
    kind: str,
    data: str,
    remove: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    stop: int = signal.SIGINT,
    shared_prefix: str = "",
    shared_mark: int = 0,
) -> RegisterEntry:
    """Registers a server or device that this process is about to start."""
    owner = processes.this_process()
    namespace = processes.pid_namespace()
    entry = RegisterEntry(
        secrets.token_hex(8),
        kind,
        owner,
        data,
        remove,
        shared_prefix=shared_prefix,
        shared_mark=shared_mark,
        groups=groups,
        namespace=namespace,
        stop=int(stop),
    )
    write(entry)
    return entry


def path_of(entry: RegisterEntry) -> Path:
    return directory() / f"{entry.id}.json"


def write(entry: RegisterEntry) -> None:
    """Writes the entry to a temporary file and renames it, so that readers see either the old or the new entry."""
    path = path_of(entry)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(asdict(entry)))
    aside.rename(path)


def forget(entry: RegisterEntry) -> None:
    path_of(entry).unlink(missing_ok=True)


def read(path: Path) -> RegisterEntry | None:
    """Reads the entry in a file. Returns None if the file is missing or not an entry."""
    try:
        return _entry(json.loads(path.read_text()))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def entries() -> list[RegisterEntry]:
    """Returns all entries, sorted by id. The entries of emulated devices come last, because engines may store data on
    the devices."""
    every = (read(path) for path in sorted(directory().glob("*.json")))
    return sorted((entry for entry in every if entry is not None), key=lambda entry: entry.kind == DEVICE)


def orphaned(entry: RegisterEntry) -> bool:
    """Returns whether the owner is dead. In another container's namespace, this is unknown, and False is returned."""
    return entry.namespace == processes.pid_namespace() and not entry.owner.alive()


def with_server(entry: RegisterEntry, server: ProcessId | None, guard: ProcessId | None) -> RegisterEntry:
    """Adds the running server to the entry, and writes the entry."""
    entry = replace(entry, server=server, guard=guard)
    write(entry)
    return entry


def with_shared_memory(entry: RegisterEntry) -> RegisterEntry:
    """Adds the shared memory that the server currently maps, and writes the entry if it changed. The memory changes
    when a server restarts its processes after a crash."""
    if not entry.shared_prefix or entry.server is None or not entry.server.alive():
        return entry
    shared = shared_memory.of(entry.server.pid, entry.shared_prefix, entry.shared_mark)
    if shared and shared != entry.shared:
        entry = replace(entry, shared=shared)
        write(entry)
    return entry


def owned(entry: RegisterEntry, owner: ProcessId) -> RegisterEntry:
    """Returns the entry with a different owner."""
    return replace(entry, owner=owner)


def end(entry: RegisterEntry, patience_s: float = ORPHAN_PATIENCE_S) -> bool:
    """Ends the server of an entry, and removes its directories and the entry. Returns False if the server could not be
    ended."""
    entry = with_shared_memory(entry)
    freezer.thaw(entry.groups, entry.server)
    if entry.kind != DEVICE and (entry.server is None or not entry.server.alive()):
        _continue_children(Path(entry.data))
    if entry.server is not None and not processes.end(entry.server, entry.stop, patience_s):
        return False
    for name in entry.shared:
        shared_memory.remove(name)
    if entry.kind == DEVICE and any(loop_mounts.take_apart(Path(path), patience_s) for path in entry.remove):
        return False
    for path in entry.remove:
        shutil.rmtree(path, ignore_errors=True)
    left = [group for group in entry.groups if not _group_removed(Path(group))]
    if left:
        return False
    forget(entry)
    return True


def _continue_children(data: Path) -> None:
    """Resumes child processes that were stopped by SIGSTOP before their server was killed. Otherwise, they would remain
    stopped and never exit."""
    for pid in processes.working_in(data, below=True):
        if processes.state(pid) == "T" and (one := processes.identify(pid)) is not None:
            one.signal(signal.SIGCONT)


def _group_removed(group: Path) -> bool:
    """Removes a control group. The kernel allows the removal only some time after the group's last process has ended
    (cgroups(7)), so the function retries. Returns False if it gives up."""
    deadline = time.monotonic() + GROUP_PATIENCE_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _entry(value: dict[str, Any]) -> RegisterEntry:
    def identity(name: str) -> ProcessId | None:
        return None if value.get(name) is None else ProcessId(**value[name])

    owner = identity("owner")
    if owner is None:
        raise KeyError("owner")
    return RegisterEntry(
        id=value["id"],
        kind=value["kind"],
        owner=owner,
        data=value["data"],
        remove=tuple(value["remove"]),
        shared=tuple(value["shared"]),
        shared_prefix=str(value.get("shared_prefix", "")),
        shared_mark=int(value.get("shared_mark", 0)),
        groups=tuple(value.get("groups", ())),
        guard=identity("guard"),
        server=identity("server"),
        namespace=value["namespace"],
        stop=int(value.get("stop", signal.SIGINT)),
    )
