"""Copies data files: as reflinks if the file system supports them, otherwise extent by extent, without holes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError

_FICLONE = 0x40049409
"""ioctl_ficlone(2): `_IOW(0x94, 9, int)`."""
_NO_REFLINK = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)
_CHUNK_BYTES = 64 << 20
"""Maximum number of bytes copied by one call, so that Ctrl-C takes effect between two calls."""
_AT_ONCE = 4
"""Number of files copied at the same time."""
_WRITE = 2
"""SYNC_FILE_RANGE_WRITE of sync_file_range(2): starts writeback of dirty pages without waiting for it."""

Skip = Callable[[str], bool]
"""Function that takes a path relative to the root of the tree, and returns True if the path and everything below it are
skipped."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """Result of a copy."""

    bytes: int = 0
    """Size of the files' contents, without holes."""
    files: int = 0
    by_reference: int = 0
    """Number of files that were copied by reference. Such a file shares its blocks with the original until one of the
    two is changed."""

    @property
    def how(self) -> str:
        """How the files were copied: `reflink` if all files were copied by reference, otherwise `copy`."""
        return "reflink" if self.files and self.by_reference == self.files else "copy"

    def __add__(self, other: CopyResult) -> CopyResult:
        return CopyResult(self.bytes + other.bytes, self.files + other.files, self.by_reference + other.by_reference)


def tree(source: Path, target: Path, skip: Skip = lambda _: False, *, link: bool = False) -> CopyResult:
    """Copies a directory to a new path. If copying fails, removes the copy and raises FailureError.

    `link`: create hard links, for a caller that then removes the originals. Does not sync.
    """
    try:
        return _tree(source, target, skip, link)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise failure(target, error) from error
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def file(source: Path, target: Path, *, link: bool = False) -> CopyResult:
    """Copies one file to a new path. If copying fails, removes the copy and raises FailureError."""
    try:
        return _file(source, target, link, threading.Event())
    except OSError as error:
        target.unlink(missing_ok=True)
        raise failure(target, error) from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def failure(target: Path, error: OSError) -> FailureError:
    """Returns the error for files that cannot be written to `target`."""
    hint = "free some space, or use a directory on a larger device" if error.errno == errno.ENOSPC else ""
    return FailureError(f"directory {target.parent}", f"cannot copy the data: {error.strerror or error}", hint)


def sync(directory: Path) -> None:
    """Writes all dirty data of the directory's file system to its device. Raises FailureError.

    One call of syncfs(2) replaces thousands of calls of fsync(2), one for each file. syncfs(2) reports write errors
    since Linux 5.8.
    """
    _sync(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), directory)


def sync_from_outside(directory: Path) -> bool:
    """Syncs the file system of a directory that may belong to another user.

    A file system can be synced through any of its directories. If this process may not open the directory itself, it
    opens the nearest ancestor that is on the same file system and that it may open.

    Returns False if there is no such ancestor, or if the file system cannot be determined. Raises FailureError.
    """
    try:
        device = directory.stat().st_dev
    except PermissionError:
        return False
    for one in (directory, *directory.parents):
        if one.stat().st_dev != device:
            return False
        try:
            fd = os.open(one, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:
            continue
        _sync(fd, directory)
        return True
    return False


def _sync(fd: int, directory: Path) -> None:
    """Syncs the file system of `fd`, and closes `fd`."""
    try:
        if _libc().syncfs(fd) != 0:
            raise failure(directory, OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
    finally:
        os.close(fd)


def put(aside: Path, place: Path) -> None:
    """Syncs a finished copy and renames it to its final name. If the machine crashes, a complete copy exists under the
    old or the new name."""
    sync(aside if aside.is_dir() else aside.parent)
    aside.rename(place)
    fd = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def atomic_directory(folder: Path) -> Iterator[Path]:
    """Yields a temporary directory, which is synced and renamed to `folder` at the end of the block. If the block
    fails, the directory is removed.

    Raises FailureError.
    """
    aside = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700, parents=True)
    try:
        yield aside
        put(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def evict(root: Path) -> None:
    """Evicts the clean pages of a file, or of all files of a tree, from the page cache (posix_fadvise(2), DONTNEED)."""
    for path in [root] if root.is_file() else _files(root):
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue  # the file was deleted in the meantime, or is a socket
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def touch(root: Path) -> None:
    """Reads all files of a tree, so that the page cache contains as much of them as possible."""
    for path in _files(root):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue  # the file was deleted in the meantime, or is a socket
        try:
            while os.read(fd, 1 << 20):
                pass
        except OSError:
            pass
        finally:
            os.close(fd)


def can_share(source: Path, directory: Path) -> bool:
    """Returns whether files of `source` can be copied into `directory` by reference. Tests this with an empty file."""
    try:
        with tempfile.TemporaryFile(dir=source) as old, tempfile.TemporaryFile(dir=directory) as new:
            return _reflinked(old.fileno(), new.fileno())
    except OSError:
        return False


def size(root: Path) -> int:
    """Returns the disk space that the files of a tree occupy, in bytes."""
    return sum(path.lstat().st_blocks * 512 for path in _files(root))


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder, name) for name in names)


def _tree(source: Path, target: Path, skip: Skip, link: bool) -> CopyResult:
    modes: list[tuple[Path, int]] = []
    found: list[tuple[int, Path, Path]] = []

    def lay_out(folder: Path, twin: Path) -> None:
        twin.mkdir(mode=0o700)
        for entry in sorted(folder.iterdir()):
            if skip(str(entry.relative_to(source))):
                continue
            copy = twin / entry.name
            if entry.is_symlink():
                copy.symlink_to(entry.readlink())
            elif entry.is_dir():
                lay_out(entry, copy)
            elif entry.is_file():
                found.append((entry.stat().st_size, entry, copy))
        modes.append((twin, folder.stat().st_mode & 0o7777))

    lay_out(source, target)
    done = _each(found, link)
    for twin, mode in modes:
        twin.chmod(mode)
    return done


def _each(found: list[tuple[int, Path, Path]], link: bool) -> CopyResult:
    """Copies several files at a time, the largest first. A single copy would use only one core and wait for one read at
    a time."""
    done, stop = CopyResult(), threading.Event()
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        largest_first = sorted(found, key=lambda one: -one[0])
        waiting = [pool.submit(_file, old, new, link, stop) for _, old, new in largest_first]
        try:
            for one in waiting:
                done += one.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return done


def _file(source: Path, target: Path, link: bool, stop: threading.Event) -> CopyResult:
    """Copies one file; ends early when `stop` is set."""
    if link:
        os.link(source, target)
        return CopyResult(source.stat().st_blocks * 512, 1, 1)
    with source.open("rb", buffering=0) as old, target.open("xb", buffering=0) as new:
        info = os.fstat(old.fileno())
        os.fchmod(new.fileno(), info.st_mode & 0o7777)
        if _reflinked(old.fileno(), new.fileno()):
            return CopyResult(info.st_blocks * 512, 1, 1)
        os.truncate(new.fileno(), info.st_size)
        copied = 0
        for begin, end in _extents(old.fileno(), info.st_size):
            _span(old.fileno(), new.fileno(), begin, end, stop)
            copied += end - begin
        return CopyResult(copied, 1)


def _reflinked(old: int, new: int) -> bool:
    try:
        fcntl.ioctl(new, _FICLONE, old)
    except OSError as error:
        if error.errno in _NO_REFLINK:
            return False
        raise
    return True


def _extents(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields the ranges that contain data (lseek(2), SEEK_DATA). For file systems without support, yields one range."""
    at = 0
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # the rest of the file is a hole
                return
            raise
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        yield begin, at


def _span(old: int, new: int, begin: int, end: int, stop: threading.Event) -> None:
    while begin < end and not stop.is_set():
        size = min(_CHUNK_BYTES, end - begin)
        try:
            copied = os.copy_file_range(old, new, size, begin, begin)
        except OSError as error:
            if error.errno not in _NO_REFLINK:
                raise
            copied = 0
        # Linux 5.3 to 5.18 return 0 on some file systems although nothing was copied (copy_file_range(2), BUGS).
        copied = copied or _copy_by_sendfile(old, new, begin, size)
        if copied == 0:
            return  # the file was truncated while it was copied
        # Writeback starts now, so that the device works while the next part is copied.
        _libc().sync_file_range(new, ctypes.c_int64(begin), ctypes.c_int64(copied), _WRITE)
        begin += copied


def _copy_by_sendfile(old: int, new: int, begin: int, size: int) -> int:
    """Copies a range with sendfile(2), which works between any two file systems, unlike copy_file_range(2)."""
    os.lseek(old, begin, os.SEEK_SET)
    os.lseek(new, begin, os.SEEK_SET)
    return os.sendfile(new, old, None, size)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
