"""The files of a database that ironbench made: what is noted beside them, where they are kept aside, who holds them,
and whether a server runs on them."""

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
from ironbench.host import place as places
from ironbench.host.copies import Copied
from ironbench.model.system import Layout, System

NOTE = "ironbench.json"
"""In the directory of the data: which version made it, which snapshot it came from, where a log elsewhere lies."""


def note(files: Path) -> dict[str, Any]:
    """What is known of a data directory; empty where there is none of ours."""
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
    """Holds the directory meanwhile. InputError: another ironbench uses it."""
    lock = places.lock(place)
    try:
        yield
    finally:
        os.close(lock)


def next_kept(path: Path) -> Path:
    """Where files or a file that no snapshot made are kept aside: beside them, as `….kept-N`."""
    kept = [int(one.name.rsplit("-", 1)[1]) for one in path.parent.glob(f"{path.name}.kept-*[0-9]")]
    return path.with_name(f"{path.name}.kept-{max(kept, default=0) + 1}")


def copy_back(folder: Path, files: Path) -> Copied:
    """Copies the files of that name in a snapshot's `folder` to their place, which is free. InputError: no room.
    FailureError."""
    aside = files.with_name(f"{files.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    space.require(files.parent, copies.size(folder), "the copy of the data")
    done = copies.tree(folder / files.name, aside)
    write_note(aside, note(folder / files.name) | {"snapshot": folder.name})
    copies.put(aside, files)
    copies.evict(folder)
    return done


def basis(parts: Sequence[str], shaping: Mapping[str, str]) -> str:
    """What the files depend on (`Engine.basis`): the program, and the settings that shape them."""
    return " ".join([*parts, *(f"{name}={value}" for name, value in sorted(shaping.items()))])


def plain(system: System, settings: Mapping[str, str], folder: Path) -> System:
    """The system by the same programs in `folder`, with these settings alone (`Engine.plain`)."""
    where = {name: value for name, value in system.settings.items() if name == "bin"}
    return System(system.engine, system.label, where | dict(settings), Layout(str(folder)))


def refuse_version(place: Path, title: str, made_by: str, major: str, version: str) -> None:
    """InputError: files of another version are in the directory."""
    if made_by != major:
        raise InputError(
            f"data directory {place}",
            f"{title} {made_by} made it, and this is {title} {version}",
            "name another directory, or remove it to start anew",
        )


def refuse_running(files: Path, place: Path) -> None:
    """InputError while a server runs on the files. `place`: the directory that the user knows them by."""
    if (error := in_use(files, place)) is not None:
        raise error


def in_use(files: Path, place: Path) -> InputError | None:
    """A server works in the directory of its data, so this also finds those that others started."""
    running = processes.working_in(files)
    if not running:
        return None
    return InputError(
        f"data directory {place}",
        f"a server already runs on it (process {running[0]})",
        f"stop it, run `ironbench cleanup` when its ironbench is dead, "
        f"or name another directory with {written('layout.data')}",
    )
