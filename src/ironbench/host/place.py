"""Directories that we may write to: empty ones, and those that bear our marker. Strangers' are never touched."""

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
"""What a fresh file system has in its root."""


def default(engine: str, version: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Default data directory of an engine."""
    return base(environ) / f"{engine}-{version}"


def snapshots(environ: Mapping[str, str] = os.environ) -> Path:
    """Directory of snapshots of loaded data."""
    return base(environ) / "snapshots"


def base(environ: Mapping[str, str] = os.environ) -> Path:
    """Default directory of data and snapshots. InputError: no home directory."""
    root = environ.get("IRONBENCH_DATA", "")
    return (Path(root) if root else cache(environ) / "data").absolute()


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """For what can be made again. Never in a directory that others may write to: its name is known. InputError."""
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named else _home(environ) / ".cache") / "ironbench"


def _home(environ: Mapping[str, str]) -> Path:
    """As a shell's `~` (POSIX 2.6.1): `HOME`, else that of the user database."""
    named = environ.get("HOME", "")
    with contextlib.suppress(KeyError):
        named = named or pwd.getpwuid(os.getuid()).pw_dir
    if not named:
        raise InputError("HOME", "is not set, and the user has no home", "set IRONBENCH_DATA to a directory of yours")
    return Path(named)


def check(path: str, role: str) -> str:
    """The absolute path of a directory that we may use for `role`; InputError. Makes nothing."""
    place = space.followed(expanded(path).absolute())
    subject = f"{role} directory {place}"
    if any(ord(char) < 32 for char in str(place)):
        cause = f"its path {str(place)!r} contains a control character, which no server's configuration can express"
        raise InputError(f"{role} directory", cause, "name another place")
    there = space.existing(place)
    if not there.is_dir():
        raise InputError(subject, f"{there} is not a directory", "name another place")
    try:  # tried, for permissions alone do not tell: root may write anywhere but where the file system forbids it
        tempfile.TemporaryFile(dir=there).close()  # without a name, where the file system can
    except OSError as error:
        cause = f"nothing can be written in {there} ({error.strerror})"
        raise InputError(subject, cause, "choose another, or change its permissions") from None
    if there == place and not ours(place) and (entries := _entries(place)):
        raise InputError(
            subject,
            f"it holds files that are not ironbench's, e.g. {entries[0]}",
            "name an empty directory, or one that does not exist yet",
        )
    return str(place)


def claim(path: str, role: str) -> Path:
    """Makes the directory where needed and puts our marker in it. FailureError when that cannot be done."""
    place = Path(check(path, role))
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not ours(place):
            _mark(place, role)
    except OSError as error:
        raise FailureError(f"{role} directory {place}", error.strerror or str(error)) from error
    return place


def _mark(place: Path, role: str) -> None:
    """Whole or not at all, whatever ends us: a directory with half a marker would be a stranger's. OSError."""
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
    """Holds the directory for this process and those that inherit the descriptor. InputError with the holder's pid."""
    fd = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(fd)
        raise InputError(
            f"data directory {place}",
            f"another ironbench uses it (process {holder})",
            f"wait for it, name another directory with {written('layout.data')}, "
            f"or run `ironbench cleanup` when that process is dead",
        ) from None
    except OSError:
        return fd  # a file system without locks: the check for running servers is left
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


_used: dict[str, int] = {}
"""Directories that this process uses, each with a descriptor that holds a shared lock."""


def use(place: Path) -> None:
    """Until this process ends, `cleanup` leaves the directory alone; others may use it as well (flock(2))."""
    name = os.path.realpath(place)
    if name in _used and os.path.samestat(os.fstat(_used[name]), place.stat()):
        return
    release(place)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    _used[name] = descriptor


def release(place: Path) -> None:
    """This process uses the directory no longer."""
    if (descriptor := _used.pop(os.path.realpath(place), None)) is not None:
        os.close(descriptor)


def used(place: Path) -> bool:
    """Whether a living process uses the directory, this one included."""
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
    """Whether the directory bears our marker."""
    try:
        marker = json.loads((place / MARKER).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("made_by") == "ironbench"


def _entries(place: Path) -> list[str]:
    """What somebody has put there."""
    try:
        return sorted({path.name for path in place.iterdir() if not _of_a_claim(path)} - _OF_THE_FILE_SYSTEM)
    except OSError as error:
        raise InputError(
            f"directory {place}", error.strerror or str(error), "name another, or change its permissions"
        ) from error


def _of_a_claim(path: Path) -> bool:
    """Whether a claim that was cut off left it: a marker aside, or an empty one."""
    return _ASIDE.fullmatch(path.name) is not None or (path.name == MARKER and path.lstat().st_size == 0)
