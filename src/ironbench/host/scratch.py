"""Temporary folders. The process that creates a folder also deletes it; `ironbench cleanup` deletes the folders of
killed processes."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ironbench.host import register

_PREFIX = "scratch-"
_LOCK = "lock"


_SHORT = 36
"""Maximum length of the path of a folder in which a program may create sockets, because socket paths are limited to 107
bytes (unix(7))."""


@contextmanager
def folder(short: bool = False) -> Iterator[Path]:
    """Creates a folder and deletes it at the end of the block. The process holds a lock on the folder. If the process
    is killed, the kernel releases the lock. `remove_abandoned` recognises abandoned folders by this.

    `short`: ensure a short path.
    """
    place = register.directory()
    if short and len(str(place)) > _SHORT - len(f"/{_PREFIX}12345678"):
        place = register.directory({})
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


FAILURE = "ironbench-failure-"
"""Prefix of names of files that describe an unexpected failure, in the directory for temporary files."""


def remove_failures() -> list[Path]:
    """Deletes descriptions of unexpected failures that this user's ironbench left behind. Returns their paths."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{FAILURE}*.txt")):
        with suppress(OSError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid():
                path.unlink()
                removed.append(path)
    return removed


def remove_abandoned() -> list[Path]:
    """Deletes the folders whose process has ended. Returns their paths."""
    places = {register.directory(), register.directory({})}
    return [path for place in sorted(places) for path in sorted(place.glob(f"{_PREFIX}*")) if _removed(path)]


def _removed(path: Path) -> bool:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # another process is creating or deleting the folder
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(lock)
