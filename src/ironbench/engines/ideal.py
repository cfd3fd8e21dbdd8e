"""Places parts of a system (`--ideal`) where they take almost no time. This shows how much time the parts cost.

`log` and `temp` are placed in a directory in memory (tmpfs(5)). Each data directory has its own directory in memory.
This directory is removed when the server stops, by the guard when the server's owner dies, or by `ironbench cleanup`.
Syncing a WAL in memory is a system call that returns at once, so only the engine's own work for the WAL remains.

Files in memory count towards a limit on the server's memory. If the limit were raised by their maximum size, the server
would cache data in the unused part. With a limit, `log` and `temp` are therefore placed on zero-latency devices
(`devices.arrange.zero_latency`), whose memory belongs to another process. If devices cannot be emulated, the limit is
raised, and the study does not attribute a gain to the part (`study.ceiling`).

For `data`, the engine's cache is made larger than the data. An ideal `client` changes only the load (`plan.resolve`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import units
from ironbench.errors import InputError, written
from ironbench.host import copies, data_dirs, processes, space
from ironbench.host.cgroup_limits import memory_available
from ironbench.host.tree import Tree
from ironbench.model.system import System

MEMORY = Path("/dev/shm")
_TMPFS = "tmpfs"
_NOTE = "data"
"""Name of a file in a directory in memory. The file contains the path of the data directory to which the directory in
memory belongs."""
TEMP_BYTES = 1 << 30
"""Memory that must be available for temporary files. Statements that need more fail as if the disk were full."""
GROWTH = 1.25
ROOM_BYTES = 256 << 20
"""Reserve in the size of the engine's cache. The cache has `GROWTH` times the current size of the data plus
`ROOM_BYTES`, because tables grow and catalogs need buffers."""
MOST_OF_MEMORY = 0.7
"""Fraction of the available memory that may be used. The engine, the clients and the page cache need the rest."""


def refuse(system: System, unsupported: Mapping[str, str]) -> None:
    """Raises InputError for a zero-latency part that this engine does not support. `unsupported`: for each such part,
    the reason."""
    for part in system.ideal:
        if part in unsupported:
            raise InputError(
                written("system.ideal", part), unsupported[part], "remove this setting, or use another engine"
            )


def arranged(system: System, data: str, needed: Mapping[str, int], cache: str) -> System:
    """Returns the system with its zero-latency parts in memory. Raises InputError if there is too little memory.
    Creates nothing.

    `needed`: for each part that needs a directory in memory, the maximum size of the directory in bytes (see
    `in_memory`). `cache`: name of the engine's cache setting. If `data` is zero-latency, the user's value of this
    setting is dropped (see `with_cache`).
    """
    for part, count in needed.items():
        where = directory(data, part)
        require(part, count, MEMORY)
        limit = system.memory_total_bytes
        system = replace(
            system,
            layout=system.layout.at({part: where}),
            memory_total_bytes=None if limit is None else limit + count,
        )
    if "data" in system.ideal:
        kept = {name: value for name, value in system.settings.items() if name != cache}
        system = replace(system, settings=kept, memory_total_bytes=None)
    return system


def with_cache(system: System, files: Path, least_bytes: int) -> System:
    """Returns the system with a cache for all data that are currently in `files`. Raises InputError if there is too
    little memory."""
    if "data" not in system.ideal:
        return system
    enough = int(copies.size(files) * GROWTH) + ROOM_BYTES if files.is_dir() else ROOM_BYTES
    cache_bytes = max(enough, system.memory_bytes or least_bytes)
    require("data", cache_bytes)
    return replace(system, memory_bytes=cache_bytes)


def in_memory(system: System) -> tuple[str, ...]:
    """Returns the zero-latency parts whose files are in a directory in memory. The other parts are on zero-latency
    devices."""
    return tuple(part for part in ("log", "temp") if part in system.ideal and not system.on_zero_latency_device(part))


def directories(system: System) -> tuple[str, ...]:
    """Returns the directories that are removed together with the server."""
    if system.layout.data is None or not in_memory(system):
        return ()
    return (str(root(system.layout.data)),)


def directory(data: str, role: str) -> str:
    """Returns the directory in memory in which a data directory keeps a zero-latency part. Raises InputError if there
    is no writable file system in memory."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK) and _is_memory(MEMORY)):
        raise InputError(
            written("system.ideal", role),
            f"{MEMORY} is not a writable in-memory file system",
            f"mount a tmpfs there, or remove {written('system.ideal', role)}",
        )
    return str(root(data) / role)


def root(data: str) -> Path:
    """Returns the directory in memory for a data directory."""
    key = hashlib.sha256(os.path.realpath(data).encode()).hexdigest()[:12]
    return MEMORY / f"ironbench-{os.getuid()}-{key}"


def claim(data: str) -> None:
    """Creates the directory in memory and writes the path of its data directory into it. `ironbench cleanup` uses the
    path to identify the directory later.

    Raises InputError if the directory belongs to another user. This is possible because every user may write to
    `MEMORY` and the name is predictable.
    """
    ours = root(data)
    ours.mkdir(mode=0o755, exist_ok=True)
    info = ours.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise InputError(
            f"directory {ours}",
            "is not a directory that only you can write to",
            "ask the owner of the directory to remove it",
        )
    (ours / _NOTE).write_text(f"{data}\n")


def require(part: str, wanted_bytes: int, file_system: Path | None = None) -> None:
    """Raises InputError if this much memory is not available."""
    available = int(available_bytes() * MOST_OF_MEMORY)
    if file_system is not None:
        available = min(available, space.free_bytes(file_system))
    if wanted_bytes > available:
        raise InputError(
            written("system.ideal", part),
            f"needs {units.memory(wanted_bytes)} of memory, but only {units.memory(available)} can be used",
            "use less data, or a machine with more memory",
        )


def available_bytes() -> int:
    """Returns the memory that is currently available."""
    return memory_available(Tree()) or 0


def abandoned(used: Sequence[str]) -> list[Path]:
    """Returns ironbench's directories in memory whose data directory is not in use. `used`: data directories of known
    servers."""
    unused = []
    for ours in sorted(MEMORY.glob(f"ironbench-{os.getuid()}-*")):
        data = _owner(ours)
        if data is not None and data not in used and not _in_use(Path(data)):
            unused.append(ours)
    return unused


def remove(ours: Path) -> None:
    shutil.rmtree(ours, ignore_errors=True)


def _owner(ours: Path) -> str | None:
    try:
        data = (ours / _NOTE).read_text().strip()
    except OSError:
        return None
    return data if root(data) == ours else None


def _in_use(data: Path) -> bool:
    if not data.is_dir():
        return False
    if processes.working_in(data, below=True):
        return True
    try:
        os.close(data_dirs.lock(data))
    except InputError:
        return True
    return False


def _is_memory(path: Path) -> bool:
    mounted = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return any(words[1] == str(path) and words[2] == _TMPFS for words in mounted if len(words) > 2)
