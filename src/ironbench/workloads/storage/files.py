"""The files that are measured: made anew and without a name, so that nothing of them can be left behind.

Before that, a file system may be filled to a stated level: flash writes more slowly the fuller it is, and the outer
tracks of a disk, which are the fastest, are used first.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbench import units
from ironbench.catalogue.storage_tests import MIB
from ironbench.errors import FailureError, InputError, written
from ironbench.host import space
from ironbench.words import in_percent

PREFIX = ".ironbench-storage-"
"""Of files on file systems that cannot make one without a name: theirs is taken away as soon as they are open."""


@dataclass(frozen=True, slots=True)
class TestFile:
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
            f"name a directory on another file system, or say {written('workload.with', 'direct=off')}",
        ) from None
    finally:
        os.close(fd)


@contextmanager
def made(folders: Sequence[str], size: int, direct: bool) -> Iterator[list[TestFile]]:
    """A file in each folder, its space reserved but not written. However this process ends, they are gone with it."""
    with ExitStack() as stack:
        yield [_made(folder, size, direct, stack) for folder in folders]


def _made(folder: str, size: int, direct: bool, stack: ExitStack) -> TestFile:
    try:
        fd = _nameless(folder)
        stack.callback(os.close, fd)
        _reserve(fd, size)
        opened = []
        for flags in (os.O_DIRECT if direct else 0, 0, os.O_DSYNC):
            opened.append(_again(fd, flags))
            stack.callback(os.close, opened[-1])
    except OSError as error:
        raise FailureError(f"file in {folder}", error.strerror or str(error)) from error
    return TestFile(folder, *opened)


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


def by_file_system(folders: Sequence[str]) -> dict[str, int]:
    """The first folder on each file system → how many of them are on it."""
    first: dict[int, str] = {}
    counts: dict[str, int] = {}
    for folder in folders:
        one = first.setdefault(Path(folder).stat().st_dev, folder)
        counts[one] = counts.get(one, 0) + 1
    return counts


def require_level(folder: str, percent: int, size: int) -> None:
    """InputError where a file system cannot be so full, the measured files of `size` bytes included."""
    filler_bytes(folder, percent, size)


def require_emulated_level(folder: str, capacity: int, percent: int, size: int) -> None:
    """The same of one that is not there yet, as far as that can be known before."""
    _missing(folder, capacity, 0, capacity, percent, size)


def filled(folder: str, percent: int, size: int, direct: bool) -> AbstractContextManager[list[TestFile]]:
    """A file, its space reserved, that leaves the measured ones to reach the level. InputError, FailureError."""
    return made([folder], filler_bytes(folder, percent, size), direct)


def filler_bytes(folder: str, percent: int, size: int) -> int:
    """What is missing to that level besides the measured files, in whole MiB and one at least. InputError."""
    usage = shutil.disk_usage(folder)
    return _missing(folder, usage.total, usage.used, space.free_bytes(folder), percent, size)


def _missing(folder: str, total: int, used: int, free: int, percent: int, size: int) -> int:
    subject = written("workload.with", f"fill={percent}")
    missing = total * percent // 100 - used - size
    if missing < MIB:
        cause = f"with what is measured, {folder} is {in_percent((used + size) / total)} full"
        raise InputError(subject, cause, "say a higher level, or make room there")
    if missing + size > free:
        cause = f"that takes {units.stored(missing + size)}, and {units.stored(free)} may be written in {folder}"
        raise InputError(subject, cause, "say a lower level: file systems keep something back")
    return missing // MIB * MIB


def used_share(folders: Sequence[str]) -> float:
    """Of the first folder's file system, as it is now."""
    usage = os.statvfs(folders[0])
    return 1 - usage.f_bfree / usage.f_blocks
