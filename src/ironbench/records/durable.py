"""Files that a power cut leaves whole or absent, and unfinished ones that die with their writer.

An unfinished file or folder has a name of its own and is locked (flock(2)) by the process that writes it. The kernel
frees the lock however that process ends, so whoever gets the lock may remove what it finds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import InputError, UnwrittenError

_UNFINISHED = re.compile(
    r"\.writing-.+|\.importing-\d+|\..+\.ibr\.\d+\.tmp|\.index\.json\.\d+\.tmp|.+\.(?:json|toml|md)\.\d+\.tmp|\..+\.live",
    re.DOTALL,
)
_EXPORT = re.compile(r"\..+\.ibr\.\d+\.tmp", re.DOTALL)
_FOLDERS = ("", "trials", "machines", "engines", "scripts", "noise", "notes", "queue")
"""Of a directory of results or of a lab, where unfinished things lie."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def write(path: Path, data: bytes) -> None:
    """Writes a file and syncs it; its name is durable once its directory is synced."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, data: bytes) -> None:
    """The file whole or not at all, its directory made where needed. UnwrittenError."""
    try:
        make_directory(path.parent)
        with unfinished_file(path.with_name(f"{path.name}.{os.getpid()}.tmp")) as aside:
            write(aside, data)
            aside.rename(path)
        sync(path.parent)
    except OSError as error:
        raise unwritten(path, error) from error


@contextmanager
def held(path: Path, subject: str, fleeting: bool = False) -> Iterator[None]:
    """Holds a lock file; the kernel lets go when this process ends, however it ends. InputError: somebody has it.

    `fleeting`: the file goes when it is let go, and a directory that was made for it and holds nothing else.
    """
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(subject, error.strerror or str(error), "name another directory") from error
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
    """Holds a lock file as soon as nobody else does; its directory is made where needed. UnwrittenError."""
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
        ours = True  # nobody can be kept out
    if not ours:  # or it went between opening and locking
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        cause = f"another ironbench works on it (process {holder})"
        raise InputError(subject, cause, "wait for it, or end it") from None
    with contextlib.suppress(OSError):  # on a full disk the lock holds, only its holder is not named
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def make_directory(path: Path) -> None:
    """Makes the directory and its parents where they are missing, each durable. OSError."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Writes a file's content, or a directory's names, to the device (fsync(2))."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Everything below a folder, and the folder itself."""
    for base, _, names in os.walk(folder):
        for name in names:
            sync(Path(base, name))
        sync(Path(base))


def unwritten(path: Path, error: OSError) -> UnwrittenError:
    cause = f"could not be written: {error.strerror or error}"
    return UnwrittenError(str(path), cause, "free space, or name another directory with --results")


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """A new folder of that name, locked and empty; removed at the end unless it was renamed. OSError."""
    make_directory(path.parent)
    yield from _unfinished(path, os.O_RDONLY | os.O_DIRECTORY)


@contextmanager
def unfinished_file(path: Path) -> Iterator[Path]:
    """The same of a file, whose directory is there."""
    yield from _unfinished(path, os.O_RDWR | os.O_CREAT)


def remove_abandoned(directory: Path) -> list[Path]:
    """Removes unfinished things in a directory of results whose writer is gone, those of its labs too; what it was."""
    return [path for path in _unfinished_in(directory) if _removed(path)]


def remove_abandoned_exports(folder: Path) -> list[Path]:
    """Removes unfinished exports whose writer is gone from a folder that holds other files, too; what it was."""
    return [path for path in _named(folder, _EXPORT) if _removed(path)]


def _unfinished(path: Path, flags: int) -> Iterator[Path]:
    lock = _locked(path, flags)
    try:
        for left in path.iterdir() if flags & os.O_DIRECTORY else ():
            _remove(left)
        yield path
    finally:
        if _is(path, lock):
            _remove(path)
        os.close(lock)


def _locked(path: Path, flags: int) -> int:
    """A descriptor that holds the lock of what bears this name; somebody may just remove a leftover of that name."""
    while True:
        if flags & os.O_DIRECTORY:
            path.mkdir(exist_ok=True)
        try:
            lock = os.open(path, flags | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            if flags & os.O_DIRECTORY:
                continue
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # without locks nothing is ever taken for abandoned
                os.close(lock)
                raise
        if _is(path, lock):
            return lock
        os.close(lock)


def _is(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _unfinished_in(directory: Path) -> list[Path]:
    places = [directory, *sorted(directory.glob("labs/*"))]
    folders = (place / name for place in places for name in _FOLDERS)
    return [path for folder in folders for path in _named(folder, _UNFINISHED)]


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """What lies there under such a name."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries if pattern.fullmatch(entry.name))
    return []


def _removed(path: Path) -> bool:
    """Whether nobody holds its lock: then it is removed while we hold it."""
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
