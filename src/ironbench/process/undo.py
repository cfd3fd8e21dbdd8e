"""Notes of what must be undone: a file for each command that changed something, removed when its cleanup succeeded.

Unlike the register they outlive a power cut: they lie where data lie by default, and are synced.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.process import place, processes
from ironbench.process.processes import ProcessId


@dataclass(frozen=True, slots=True)
class Note:
    """A cleanup that is still to be run, with all that it needs."""

    id: str
    """Later notes have greater ones: they are undone first."""
    cleanup: str
    of: str
    """As in `Commands`."""
    limit_s: float
    folder: str
    """In which it runs."""
    environment: Mapping[str, str]
    began: str
    """The experiment: a lab's directory, or the series of a run."""
    owner: ProcessId
    namespace: str
    """The process id namespace of `owner`."""
    running: ProcessId | None = field(default=None)
    """The shell of its `prepare`."""

    @property
    def orphaned(self) -> bool:
        """Whether its owner is dead. What belongs to another container is nobody's orphan here."""
        return self.namespace == processes.pid_namespace() and not self.owner.alive()


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the notes lie. InputError: no home to lie in."""
    return place.base(environ) / "undo"


def noted(cleanup: str, of: str, limit_s: float, folder: str, environment: Mapping[str, str], began: str) -> Note:
    """Notes a cleanup, before what it undoes begins. FailureError: nothing may begin."""
    owner = processes.identify(os.getpid())
    assert owner is not None
    number = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    note = Note(
        id=number,
        cleanup=cleanup,
        of=of,
        limit_s=limit_s,
        folder=folder,
        environment=dict(environment),
        began=began,
        owner=owner,
        namespace=processes.pid_namespace(),
    )
    write(note)
    return note


def write(note: Note) -> None:
    """Writes the note aside and renames it. FailureError."""
    path = directory() / f"{note.id}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = path.with_suffix(".new")
        with aside.open("w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(note)))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        cause = f"what must be undone cannot be noted: {error.strerror or error}"
        raise FailureError(str(path), cause, "make room, or set IRONBENCH_DATA to a directory of yours") from None


def runs(note: Note, shell: ProcessId | None) -> Note:
    """The note while its `prepare` runs, written."""
    note = replace(note, running=shell)
    write(note)
    return note


def forget(note: Note) -> None:
    (directory() / f"{note.id}.json").unlink(missing_ok=True)


def notes() -> list[Note]:
    """All, the latest first."""
    notes = (_read(path) for path in sorted(directory().glob("*.json"), reverse=True))
    return [note for note in notes if note is not None]


def orphans(began: str = "") -> list[Note]:
    """Those whose ironbench is dead; `began`: of one experiment."""
    return [note for note in notes() if note.orphaned and began in ("", note.began)]


def end_prepare(note: Note) -> None:
    """Ends a `prepare` that outlived its ironbench: what it still does could not be undone."""
    if note.running is not None and note.running.alive():
        processes.end_session(note.running.pid, 2.0)


def _read(path: Path) -> Note | None:
    """None: it is gone, or none of ours."""
    try:
        if path.stat().st_uid != os.getuid():
            return None
        value = json.loads(path.read_text(encoding="utf-8"))
        running = value.pop("running")
        return Note(
            **(value | {"owner": ProcessId(**value["owner"])}),
            running=None if running is None else ProcessId(**running),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
