"""Where a backup lies while a trial makes or uses it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host import place, space
from ironbench.model.work import Work

NAME = "ironbench-backup"


@contextmanager
def folder(work: Work, to: str, need_bytes: int, name: str = NAME) -> Iterator[Path]:
    """A directory that is not there yet, in `to` or beside the data, and gone afterwards. InputError: no room."""
    parent = Path(to).absolute() if to else Path(work.system.layout.data or work.folder)
    space.require(parent, need_bytes, "the backup")
    path = parent / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if to and not place.ours(parent):
            place.claim(str(parent), "backup")
        shutil.rmtree(path, ignore_errors=True)  # what a killed ironbench left
    except OSError as error:
        raise FailureError(f"directory {parent}", error.strerror or str(error)) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def size(backup: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in backup.rglob("*") if path.is_file() and not path.is_symlink())
