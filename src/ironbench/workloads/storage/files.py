"""Creates the files that are measured. The files have no names, so that none can be left behind. The file system may
first be filled to a given level, because the level affects the speed. The fuller flash is, the slower are writes. On a
disk, the outer tracks are the fastest and are used first.
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
from ironbench.host import mounts, space
from ironbench.host.tree import Tree
from ironbench.words import in_percent

PREFIX = ".ironbench-storage-"
"""Prefix of names on file systems that do not support files without a name. Such a file is unlinked as soon as it is
open."""


@dataclass(frozen=True, slots=True)
class TestFile:
    """A file with a descriptor for each kind of access that tests need. `made` closes the descriptors."""

    folder: str
    direct: int
    """Descriptor opened with O_DIRECT. If the user turned direct I/O off, it is like `cached`."""
    cached: int
    synced: int
    """Descriptor opened with O_DSYNC. Writes go through the page cache, but are durable when they return."""


def require(folder: str, size: int, direct: bool) -> None:
    """Raises InputError if the file cannot be created: no directory, not writable, not enough space, no direct I/O."""
    if not Path(folder).is_dir():
        raise InputError(
            f"directory {folder}", "does not exist", "give the path of a directory on the device to be measured"
        )
    space.require(folder, size, "the test file")
    try:
        fd = _nameless(folder)
    except OSError as error:
        cause = f"cannot create a file in this directory ({error.strerror})"
        raise InputError(f"directory {folder}", cause, "choose another directory, or change the permissions") from None
    try:
        if direct:
            os.close(_again(fd, os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise FailureError(f"directory {folder}", error.strerror or str(error)) from error
        raise InputError(
            f"directory {folder}",
            "the file system does not support direct I/O, so the test would measure the page cache",
            f"use a directory on another file system, or use {written('workload.with', 'direct=off')}",
        ) from None
    finally:
        os.close(fd)


@contextmanager
def made(folders: Sequence[str], size: int, direct: bool) -> Iterator[list[TestFile]]:
    """Creates a file in each folder. The files' space is reserved but not written. The files disappear when this
    process ends, even if the process is killed."""
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
    """Creates a file without a name, so that no existing file can be affected."""
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
        os.ftruncate(fd, size)  # without fallocate, a lack of space is noticed only when the file is filled


def _again(fd: int, flags: int) -> int:
    """Opens the same file again with different flags (proc_pid_fd(5))."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC | flags)


def by_file_system(folders: Sequence[str]) -> dict[str, int]:
    """Returns the number of folders on each file system. The key is the first of these folders."""
    first: dict[int, str] = {}
    counts: dict[str, int] = {}
    for folder in folders:
        one = first.setdefault(Path(folder).stat().st_dev, folder)
        counts[one] = counts.get(one, 0) + 1
    return counts


def require_level(folder: str, percent: int, size: int) -> None:
    """Raises InputError if the file system cannot be filled to this level. `size`: total size of the measured files in
    bytes. These files are part of the level."""
    filler_bytes(folder, percent, size)


def require_emulated_level(folder: str, capacity: int, percent: int, size: int) -> None:
    """Raises InputError like `require_level`, for an emulated file system that does not exist yet. Not every shortage
    can be known in advance."""
    _missing(folder, capacity, 0, capacity, percent, size)


def filled(folder: str, percent: int, size: int, direct: bool) -> AbstractContextManager[list[TestFile]]:
    """Creates a filler file. The size of the filler file is chosen so that the file system has the given level when the
    measured files exist. Raises InputError or FailureError."""
    return made([folder], filler_bytes(folder, percent, size), direct)


def filler_bytes(folder: str, percent: int, size: int) -> int:
    """Returns the size of the filler file for the given level. The size is a multiple of 1 MiB, and at least 1 MiB.
    Raises InputError."""
    usage = shutil.disk_usage(folder)
    return _missing(folder, usage.total, usage.used, space.free_bytes(folder), percent, size)


def _missing(folder: str, total: int, used: int, free: int, percent: int, size: int) -> int:
    subject = written("workload.with", f"fill={percent}")
    missing = total * percent // 100 - used - size
    if missing < MIB:
        cause = f"with what is measured, {folder} is {in_percent((used + size) / total)} full"
        raise InputError(subject, cause, "use a higher level, or free some space there")
    if missing + size > free:
        cause = f"needs {units.stored(missing + size)}, but only {units.stored(free)} are available in {folder}"
        raise InputError(subject, cause, "use a lower level: file systems reserve some space")
    return missing // MIB * MIB


def in_memory(folders: Sequence[str]) -> list[str]:
    """Returns those folders whose file systems are in memory."""
    known = mounts.all_mounts(Tree())
    found = ((folder, mounts.mount_of(folder, known)) for folder in folders)
    return [folder for folder, mount in found if mount is not None and mounts.in_memory(mount)]


def used_share(folders: Sequence[str]) -> float:
    """Returns how full the file system of the first folder is, as a fraction."""
    usage = os.statvfs(folders[0])
    return 1 - usage.f_bfree / usage.f_blocks
