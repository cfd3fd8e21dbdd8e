"""The directory to which a backup is written, or from which it is restored, during a trial."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host import data_dirs, space
from ironbench.model.work import Work

NAME = "ironbench-backup"


@contextmanager
def folder(work: Work, to: str, need_bytes: int, name: str = NAME) -> Iterator[Path]:
    """Yields a path for a backup in the directory `to`, or by default in the directory of the data. The path does not
    exist yet. After the block, everything at the path is deleted.

    Raises InputError if the file system has less than `need_bytes` free.
    """
    parent = Path(to).absolute() if to else Path(work.system.layout.data or work.folder)
    space.require(parent, need_bytes, "the backup")
    path = parent / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if to and not data_dirs.ours(parent):
            data_dirs.claim(str(parent), "backup")
        shutil.rmtree(path, ignore_errors=True)  # left behind if ironbench was killed
    except OSError as error:
        raise FailureError(f"directory {parent}", error.strerror or str(error)) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def size(backup: Path) -> int:
    """Returns the total size of all files below `backup`."""
    return sum(path.stat().st_size for path in backup.rglob("*") if path.is_file() and not path.is_symlink())
