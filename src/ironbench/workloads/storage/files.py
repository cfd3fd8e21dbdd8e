"""The files that are measured: made anew and without a name, so that nothing of them can be left behind."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError, InputError
from ironbench.machine import space

PREFIX = ".ironbench-storage-"
"""Of files on file systems that cannot make one without a name: theirs is taken away as soon as they are open."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One file, opened in the ways that tests need; the descriptors belong to `made`."""

    folder: str
    direct: int
    """Past the page cache, or as `cached` where the user does without direct I/O."""
    cached: int
    synced: int
    """Through the page cache, every write safe before it returns (O_DSYNC)."""


def require(folder: str, size: int, direct: bool) -> None:
    """InputError where such a file cannot be: no directory, not writable, too little space, no direct I/O."""
    if not Path(folder).is_dir():
        raise InputError(f"directory {folder}", "there is no such directory", "name one on the device to be measured")
    space.require(folder, size, "the file that is measured")
    try:
        fd = _nameless(folder)
    except OSError as error:
        cause = f"no file can be made there ({error.strerror})"
        raise InputError(f"directory {folder}", cause, "choose another, or change its permissions") from None
    try:
        if direct:
            os.close(_again(fd, os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise FailureError(f"directory {folder}", error.strerror or str(error)) from error
        raise InputError(
            f"directory {folder}",
            "its file system has no direct I/O, so the page cache would be measured",
            "name a directory on another file system, or say --with direct=off",
        ) from None
    finally:
        os.close(fd)


@contextmanager
def made(folders: Sequence[str], size: int, direct: bool) -> Iterator[list[Measured]]:
    """A file in each folder, its space reserved but not written. However this process ends, they are gone with it."""
    with ExitStack() as stack:
        yield [_made(folder, size, direct, stack) for folder in folders]


def _made(folder: str, size: int, direct: bool, stack: ExitStack) -> Measured:
    try:
        fd = _nameless(folder)
        stack.callback(os.close, fd)
        _reserve(fd, size)
        found = []
        for flags in (os.O_DIRECT if direct else 0, 0, os.O_DSYNC):
            found.append(_again(fd, flags))
            stack.callback(os.close, found[-1])
    except OSError as error:
        raise FailureError(f"file in {folder}", error.strerror or str(error)) from error
    return Measured(folder, *found)


def _nameless(folder: str) -> int:
    """A new file without a name; nothing that was there before can be touched."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
    fd, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
    Path(name).unlink()
    return fd


def _reserve(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        os.ftruncate(fd, size)  # filling it shows whether there is room


def _again(fd: int, flags: int) -> int:
    """The same file, opened anew in another way (proc_pid_fd(5))."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC | flags)
