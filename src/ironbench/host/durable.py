"""Writes files so that each file is either complete or absent after a power cut, and removes the unfinished files of
processes that have ended.

An unfinished file or folder has a special name. The process that writes it holds a lock on it (flock(2)). When that
process ends in any way, the kernel releases the lock. A process that gets the lock may therefore remove the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import InputError, UnwrittenError

_UNFINISHED = re.compile(
    r"\.writing-.+|\.importing-\d+|\..+\.ibr\.\d+\.tmp|.+\.(?:json|toml|md)\.\d+\.tmp|\..+\.live",
    re.DOTALL,
)
_EXPORT = re.compile(r"\..+\.ibr\.\d+\.tmp", re.DOTALL)
_CAPTURE = re.compile(r"\..+\.ironbench-\d+\.tmp", re.DOTALL)
_TEMPORARY = f"ironbench-rows-{os.uname().nodename.replace('/', '-')}-"
"""Prefix of temporary folders. It names the machine, because a lock on a folder of a network file system excludes no
process of another machine."""
_FOLDERS = ("", "trials", "machines", "engines", "scripts", "foreign", "noise", "notes", "queue")
"""Subdirectories of a results or lab directory in which unfinished files may exist."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def write(path: Path, data: bytes) -> None:
    """Writes a file and syncs it. The file's name is durable only after its directory was synced."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically and creates its directory if necessary. Raises UnwrittenError."""
    try:
        make_directory(path.parent)
        with unfinished_file(path.with_name(f"{path.name}.{os.getpid()}.tmp")) as aside:
            write(aside, data)
            aside.rename(path)
        sync(path.parent)
    except OSError as error:
        raise unwritten(path, error) from error


@contextmanager
def file_lock(path: Path, subject: str, fleeting: bool = False) -> Iterator[None]:
    """Holds the lock on a file inside the `with` block. If this process is killed, the kernel releases the lock. Raises
    InputError if another process holds the lock.

    `fleeting`: whether to remove the file at the end of the block. If this function created the file's directory and
    the directory is empty, the directory is removed too.
    """
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(subject, error.strerror or str(error), "use another directory") from error
    try:
        _hold(descriptor, path, subject)
        try:
            yield
        finally:
            if fleeting:
                path.unlink(missing_ok=True)
            if fleeting and made:
                with contextlib.suppress(OSError):  # not empty
                    path.parent.rmdir()
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits for the lock on a file and holds it inside the `with` block. Creates the file's directory if necessary.
    Raises UnwrittenError."""
    try:
        make_directory(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unwritten(path, error) from error
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int, path: Path, subject: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor))
    except BlockingIOError:
        ours = False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        ours = True  # without locks, other processes cannot be excluded
    # Another process holds the lock, or removed the file after this process had opened it.
    if not ours:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        cause = f"another ironbench process is using this directory ({holder})"
        raise InputError(subject, cause, "wait for that process, or stop it") from None
    # On a full disk, the file does not contain the process id of the holder, but the lock works.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def make_directory(path: Path) -> None:
    """Creates a directory and its missing parents durably. Raises OSError."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flushes a file's content, or a directory's entries, to the device (fsync(2))."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Syncs everything below a folder, and the folder itself."""
    for base, _, names in os.walk(folder):
        for name in names:
            sync(Path(base, name))
        sync(Path(base))


def unwritten(path: Path, error: OSError) -> UnwrittenError:
    cause = f"could not be written: {error.strerror or error}"
    return UnwrittenError(str(path), cause, "free some space, or use another directory with --results")


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Creates a locked, empty folder with this name. Removes it at the end of the block unless it was renamed. Raises
    OSError."""
    make_directory(path.parent)
    yield from _unfinished(path, os.O_RDONLY | os.O_DIRECTORY)


@contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """Creates a locked, empty file with this name. Removes it at the end of the block unless it was renamed. The file's
    directory must exist. Raises OSError."""
    yield from _unfinished(path, os.O_RDWR | os.O_CREAT)


@contextmanager
def unfinished_capture(path: Path) -> Iterator[Path]:
    """Creates a locked, empty file beside the capture `path`. Removes it at the end of the block unless it was renamed,
    and before the block the unfinished captures in this directory whose writers have ended. Raises OSError."""
    remove_abandoned_captures(path.parent)
    with unfinished_file(path.with_name(f".{path.name}.ironbench-{os.getpid()}.tmp")) as aside:
        yield aside


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Creates a locked folder in the directory for temporary files, which only the user can read. Removes it at the end
    of the block, and before the block the folders of processes that have ended. Raises OSError."""
    remove_abandoned_temporary_folders()
    lock = None
    while lock is None:
        path = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        lock = _lock(path, os.O_RDONLY | os.O_DIRECTORY)
    yield from _removed_at_the_end(path, lock)


def remove_abandoned(directory: Path) -> list[Path]:
    """Removes, from a results directory and its labs, the unfinished files whose writers have ended. Returns the
    removed paths."""
    return [path for path in _unfinished_in(directory) if _removed(path)]


def remove_abandoned_exports(folder: Path) -> list[Path]:
    """Removes the unfinished exports in a folder whose writers have ended. The folder may contain other files. Returns
    the removed paths."""
    return [path for path in _entries_matching(folder, _EXPORT) if _removed(path)]


def remove_abandoned_captures(folder: Path) -> list[Path]:
    """Removes this user's unfinished captures in a folder whose writers have ended. The folder may contain other files.
    Returns the removed paths."""
    found = _entries_matching(folder, _CAPTURE)
    return [path for path in found if _own_type(path) == stat.S_IFREG and _removed(path)]


def remove_abandoned_temporary_folders() -> list[Path]:
    """Removes this user's temporary folders whose processes have ended. Returns the removed paths."""
    found = _entries_matching(Path(tempfile.gettempdir()), re.compile(rf"{re.escape(_TEMPORARY)}[a-z0-9_]{{8}}"))
    return [path for path in found if _own_type(path) == stat.S_IFDIR and _removed(path)]


def _own_type(path: Path) -> int | None:
    """Returns the type of a file (inode(7)), or None if another user owns it."""
    try:
        info = path.lstat()
    except OSError:
        return None
    return stat.S_IFMT(info.st_mode) if info.st_uid == os.geteuid() else None


def _unfinished(path: Path, flags: int) -> Iterator[Path]:
    lock = _locked(path, flags)
    for left in path.iterdir() if flags & os.O_DIRECTORY else ():
        _remove(left)
    yield from _removed_at_the_end(path, lock)


def _removed_at_the_end(path: Path, lock: int) -> Iterator[Path]:
    try:
        yield path
    finally:
        if _is(path, lock):
            _remove(path)
        os.close(lock)


def _locked(path: Path, flags: int) -> int:
    """Returns a descriptor that holds the lock on `path`. Retries if another process removes a leftover file of this
    name in the meantime."""
    while True:
        if flags & os.O_DIRECTORY:
            path.mkdir(exist_ok=True)
        if (lock := _lock(path, flags)) is not None:
            return lock


def _lock(path: Path, flags: int) -> int | None:
    """Returns a descriptor that holds the lock on `path`, or None if another process removed it in the meantime."""
    try:
        lock = os.open(path, flags | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        if flags & os.O_DIRECTORY:
            return None
        raise
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        # On a file system without locks, the file is used unlocked, and `remove_abandoned` never removes it.
        if error.errno not in _NO_LOCKS:
            os.close(lock)
            raise
    if _is(path, lock):
        return lock
    os.close(lock)
    return None


def _is(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _unfinished_in(directory: Path) -> list[Path]:
    places = [directory, *sorted(directory.glob("labs/*"))]
    folders = (place / name for place in places for name in _FOLDERS)
    return [path for folder in folders for path in _entries_matching(folder, _UNFINISHED)]


def _entries_matching(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Returns the entries of a folder whose names match the pattern."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries if pattern.fullmatch(entry.name))
    return []


def _removed(path: Path) -> bool:
    """Removes the file if no process holds its lock. Returns whether the file was removed."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
