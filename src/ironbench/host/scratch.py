"""Folders that last as long as the process that made them; `ironbench cleanup` removes what was killed with it."""

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
"""Longest path of a folder in which a program of others may put its sockets: their paths have 107 bytes (unix(7))."""


@contextmanager
def folder(short: bool = False) -> Iterator[Path]:
    """A new folder, removed at the end of the block. The kernel frees its lock however this process ends.

    `short`: its path is, wherever the others lie.
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
"""How names of files begin that describe an unexpected failure, in the directory for temporary files."""


def remove_failures() -> list[Path]:
    """Removes the descriptions of unexpected failures that this user's ironbench left; returns them."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{FAILURE}*.txt")):
        with suppress(OSError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid():
                path.unlink()
                removed.append(path)
    return removed


def remove_abandoned() -> list[Path]:
    """Removes the folders whose maker is gone; returns them."""
    places = {register.directory(), register.directory({})}
    return [path for place in sorted(places) for path in sorted(place.glob(f"{_PREFIX}*")) if _removed(path)]


def _removed(path: Path) -> bool:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # just made, or just gone
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(lock)
