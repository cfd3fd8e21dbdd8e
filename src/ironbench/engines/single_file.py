"""Copies of a database that is one file (SQLite, DuckDB) and that nobody has open, and their way back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.machine import copies, space
from ironbench.machine.copies import Copied

NOTE = "restored.json"
"""Beside the file: which snapshot it came from, and its inode, so that another file of that name is not meant."""
_LOGS = ("-wal", "-journal", ".wal")
"""Of SQLite and of DuckDB."""


def take(file: Path, folder: Path, *, keep: bool) -> Copied:
    """Copies the file into `folder`, which must not exist. FailureError when its log still holds transactions."""
    for suffix in _LOGS:
        log = file.with_name(file.name + suffix)
        if log.exists() and log.stat().st_size:
            raise FailureError(
                f"database {file}", f"it was not closed cleanly: {log.name} still belongs to it", "open it once"
            )
    aside = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700, parents=True)
    try:
        done = copies.file(file, aside / file.name, link=not keep)
        copies.put(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return done


def put_back(file: Path, folder: Path) -> Copied:
    """Replaces the file by the copy in `folder`. InputError: no room. FailureError.

    A file that no snapshot made is kept beside as `….kept-N`, with its log.
    """
    _give_up(file)
    aside = file.with_name(f"{file.name}.new")
    aside.unlink(missing_ok=True)
    space.require(file.parent, copies.size(folder), "the copy of the data")
    done = copies.file(folder / file.name, aside)
    note = {"snapshot": folder.name, "inode": aside.stat().st_ino}
    (file.parent / NOTE).write_text(json.dumps(note) + "\n")
    copies.put(aside, file)
    copies.evict(folder)
    return done


def restored(file: Path) -> bool:
    """Whether what is there came from a snapshot."""
    try:
        note = json.loads((file.parent / NOTE).read_text())
        return bool(note["inode"] == file.stat().st_ino)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _give_up(file: Path) -> None:
    parts = [file.with_name(file.name + suffix) for suffix in ("", *_LOGS, "-shm")]
    if restored(file) or not file.exists():
        for part in reversed(parts):
            part.unlink(missing_ok=True)
        return
    kept = [int(path.name.rsplit("-", 1)[1]) for path in file.parent.glob(f"{file.name}.kept-*[0-9]")]
    name = f"{file.name}.kept-{max(kept, default=0) + 1}"
    for part in parts:
        if part.exists():
            part.rename(file.with_name(name + part.name.removeprefix(file.name)))
