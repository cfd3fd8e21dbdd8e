"""Directories to which ironbench may write: empty directories, and directories that contain its marker. Other
directories are never changed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ironbench.errors import FailureError, InputError, written
from ironbench.host import space
from ironbench.paths import expanded

MARKER = "ironbench.json"
_ASIDE = re.compile(rf"{re.escape(MARKER)}\.\d+\.tmp")
LOCK = "ironbench.lock"
_OF_THE_FILE_SYSTEM = {"lost+found"}
"""Files that are already present in the root directory of a new file system."""


def default(engine: str, version: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the default data directory of an engine."""
    return base(environ) / f"{engine}-{version}"


def snapshots(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of snapshots of loaded data."""
    return base(environ) / "snapshots"


def base(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the default directory for data and snapshots. Raises InputError if the user has no home directory."""
    root = environ.get("IRONBENCH_DATA", "")
    return (Path(root) if root else cache(environ) / "data").absolute()


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns a directory for files that can be recreated. Raises InputError.

    Because its name is predictable, the directory is never below a directory that other users can write to.
    """
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named else _home(environ) / ".cache") / "ironbench"


def _home(environ: Mapping[str, str]) -> Path:
    """Returns the home directory that a shell uses for `~` (POSIX 2.6.1): `HOME`, or else the entry in the user
    database."""
    named = environ.get("HOME", "")
    with contextlib.suppress(KeyError):
        named = named or pwd.getpwuid(os.getuid()).pw_dir
    if not named:
        raise InputError(
            "HOME", "is not set, and the user has no home directory", "set IRONBENCH_DATA to one of your directories"
        )
    return Path(named)


def check(path: str, role: str) -> str:
    """Returns the absolute path of a directory that may be used for `role`. Creates nothing. Raises InputError."""
    place = space.followed(expanded(path).absolute())
    subject = f"{role} directory {place}"
    if any(ord(char) < 32 for char in str(place)):
        cause = (
            f"the path {str(place)!r} contains a control character, which cannot be written in the configuration "
            "of a server"
        )
        raise InputError(f"{role} directory", cause, "use another directory")
    there = space.existing(place)
    if not there.is_dir():
        raise InputError(subject, f"{there} is not a directory", "use another directory")
    # This creates a file and does not only check the permissions, because root has all permissions even on a read-only
    # file system.
    try:
        # The file has no name (O_TMPFILE) if the file system supports such files.
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        cause = f"{there} is not writable ({error.strerror})"
        raise InputError(subject, cause, "choose another directory, or change the permissions") from None
    if there == place and not ours(place) and (entries := _entries(place)):
        raise InputError(
            subject,
            f"contains files that ironbench did not create, e.g. {entries[0]}",
            "use an empty directory, or a directory that does not exist yet",
        )
    return str(place)


def claim(path: str, role: str) -> Path:
    """Creates the directory if necessary and puts the marker in it. Raises FailureError."""
    place = Path(check(path, role))
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not ours(place):
            _mark(place, role)
    except OSError as error:
        raise FailureError(f"{role} directory {place}", error.strerror or str(error)) from error
    return place


def _mark(place: Path, role: str) -> None:
    """Writes the marker atomically, because a directory with an incomplete marker would not be recognised. Raises
    OSError."""
    aside = place / f"{MARKER}.{os.getpid()}.tmp"
    try:
        with aside.open("w") as file:
            file.write(json.dumps({"made_by": "ironbench", "role": role}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(place / MARKER)
    finally:
        aside.unlink(missing_ok=True)


def lock(place: Path) -> int:
    """Locks the directory for this process and for processes that inherit the descriptor. Raises an InputError that
    names the process that holds the lock."""
    fd = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(fd)
        raise InputError(
            f"data directory {place}",
            f"another ironbench process uses this directory (process {holder})",
            f"wait for that process, use another directory with {written('layout.data')}, or run `ironbench "
            "cleanup` if that process was killed",
        ) from None
    except OSError:
        # On a file system without locks, only the check for running servers protects the directory.
        return fd
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


_used: dict[str, int] = {}
"""Directories that this process uses, mapped to descriptors that hold a shared lock."""


def use(place: Path) -> None:
    """Protects the directory from `cleanup` until this process ends. Several processes may use the directory at the
    same time, because the lock is shared (flock(2))."""
    name = os.path.realpath(place)
    if name in _used and os.path.samestat(os.fstat(_used[name]), place.stat()):
        return
    release(place)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # not all file systems have locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    _used[name] = descriptor


def release(place: Path) -> None:
    """Ends this process's use of the directory."""
    if (descriptor := _used.pop(os.path.realpath(place), None)) is not None:
        os.close(descriptor)


def used(place: Path) -> bool:
    """Returns whether any running process, including this one, uses the directory."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(descriptor)


def ours(place: Path) -> bool:
    """Returns whether the directory contains the marker."""
    try:
        marker = json.loads((place / MARKER).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("made_by") == "ironbench"


def _entries(place: Path) -> list[str]:
    """Returns the names of files that neither ironbench nor the file system created."""
    try:
        return sorted({path.name for path in place.iterdir() if not _of_a_claim(path)} - _OF_THE_FILE_SYSTEM)
    except OSError as error:
        raise InputError(
            f"directory {place}", error.strerror or str(error), "use another directory, or change the permissions"
        ) from error


def _of_a_claim(path: Path) -> bool:
    """Returns whether the file was left behind by an interrupted `claim`. Such a file is a temporary marker or an empty
    marker."""
    return _ASIDE.fullmatch(path.name) is not None or (path.name == MARKER and path.lstat().st_size == 0)
