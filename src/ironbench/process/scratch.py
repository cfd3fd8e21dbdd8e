"""Folders that last as long as the process that made them; `ironbench cleanup` removes what was killed with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.process import register

_PREFIX = "scratch-"
_LOCK = "lock"


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed at the end of the block. The kernel frees its lock however this process ends."""
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=register.directory()))
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> list[Path]:
    """Removes the folders whose maker is gone; returns them."""
    return [path for path in sorted(register.directory().glob(f"{_PREFIX}*")) if _removed(path)]


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
