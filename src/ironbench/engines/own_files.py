"""Files of a database that ironbench created. This module reads the note in the data directory, locks the directory,
checks versions and running servers, and copies files from snapshots."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ironbench.errors import InputError, written
from ironbench.host import copies, processes, space
from ironbench.host import data_dirs as places
from ironbench.host.copies import CopyResult
from ironbench.model.system import Layout, System

NOTE = "ironbench.json"
"""Name of a file in the data directory. The file contains the version that created the directory, the snapshot from
which the directory was restored, and the location of a separate WAL."""


def note(files: Path) -> dict[str, Any]:
    """Reads the note of a data directory. Returns an empty note if ironbench did not create the directory."""
    try:
        known = json.loads((files / NOTE).read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_note(files: Path, known: Mapping[str, Any]) -> None:
    aside = files / f"{NOTE}.new"
    aside.write_text(json.dumps(known) + "\n")
    aside.replace(files / NOTE)


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Locks the directory for the duration of the `with` block. Raises InputError if another ironbench process uses the
    directory."""
    lock = places.lock(place)
    try:
        yield
    finally:
        os.close(lock)


def next_kept(path: Path) -> Path:
    """Returns a new path of the form `….kept-N` in the same directory. Files that did not come from a snapshot are
    renamed to it."""
    kept = [int(one.name.rsplit("-", 1)[1]) for one in path.parent.glob(f"{path.name}.kept-*[0-9]")]
    return path.with_name(f"{path.name}.kept-{max(kept, default=0) + 1}")


def copy_back(folder: Path, files: Path) -> CopyResult:
    """Copies the files from a snapshot's `folder` back to `files`. `files` must not exist. Raises FailureError, and
    InputError if there is not enough space."""
    aside = files.with_name(f"{files.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    space.require(files.parent, copies.size(folder), "the copy of the data")
    done = copies.tree(folder / files.name, aside)
    write_note(aside, note(folder / files.name) | {"snapshot": folder.name})
    copies.put(aside, files)
    copies.evict(folder)
    return done


def basis(parts: Sequence[str], shaping: Mapping[str, str]) -> str:
    """Returns the properties that determine the files (`Engine.basis`). `parts`: properties of the program. `shaping`:
    settings that affect the file format."""
    return " ".join([*parts, *(f"{name}={value}" for name, value in sorted(shaping.items()))])


def loading_system(system: System, settings: Mapping[str, str], folder: Path) -> System:
    """Returns a system for loading data in `folder` (`Engine.loading_system`). The returned system uses the programs of
    `system`, but only the given settings."""
    where = {name: value for name, value in system.settings.items() if name == "bin"}
    return System(system.engine, system.label, where | dict(settings), Layout(str(folder)))


def refuse_version(place: Path, title: str, made_by: str, major: str, version: str) -> None:
    """Raises InputError if the directory was created by another major version."""
    if made_by != major:
        raise InputError(
            f"data directory {place}",
            f"was created by {title} {made_by}, but this is {title} {version}",
            "use another directory, or remove this directory; ironbench then creates a new one",
        )


def refuse_running(files: Path, place: Path) -> None:
    """Raises InputError if a server is running on the files. `place`: the directory as the user knows it."""
    if (error := in_use(files, place)) is not None:
        raise error


def in_use(files: Path, place: Path) -> InputError | None:
    """Returns the error for a server that is running on the files. Returns None if there is no such server. A server's
    working directory is its data directory. Servers that ironbench did not start are therefore also found."""
    running = processes.working_in(files)
    if not running:
        return None
    return InputError(
        f"data directory {place}",
        f"in use by a running server (process {running[0]})",
        f"stop the server, or use another directory with {written('layout.data')}. If ironbench started the server "
        "and was killed, `ironbench cleanup` stops the server",
    )
