"""What must still be undone: a file for each command that changed something, removed when its cleanup succeeded.

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
from ironbench.host import place, processes
from ironbench.host.processes import ProcessId


@dataclass(frozen=True, slots=True)
class PendingCleanup:
    """A cleanup that is still to be run, with all that it needs."""

    id: str
    """Later ones have greater ones: they are undone first."""
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
    """Where the files lie. InputError: no home to lie in."""
    return place.base(environ) / "undo"


def add(
    cleanup: str, of: str, limit_s: float, folder: str, environment: Mapping[str, str], began: str
) -> PendingCleanup:
    """Writes a cleanup down before what it undoes begins. FailureError: nothing may begin."""
    owner = processes.own()
    number = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    pending = PendingCleanup(
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
    write(pending)
    return pending


def write(pending: PendingCleanup) -> None:
    """Writes its file aside and renames it. FailureError."""
    path = directory() / f"{pending.id}.json"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = path.with_suffix(".new")
        with aside.open("w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(pending)))
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


def runs(pending: PendingCleanup, shell: ProcessId | None) -> PendingCleanup:
    """Writes which shell runs its `prepare`."""
    pending = replace(pending, running=shell)
    write(pending)
    return pending


def forget(pending: PendingCleanup) -> None:
    (directory() / f"{pending.id}.json").unlink(missing_ok=True)


def all_pending() -> list[PendingCleanup]:
    """All, the latest first."""
    found = (_read(path) for path in sorted(directory().glob("*.json"), reverse=True))
    return [pending for pending in found if pending is not None]


def orphans(began: str = "") -> list[PendingCleanup]:
    """Those whose ironbench is dead; `began`: of one experiment."""
    return [pending for pending in all_pending() if pending.orphaned and began in ("", pending.began)]


def end_prepare(pending: PendingCleanup) -> None:
    """Ends a `prepare` that outlived its ironbench: what it still does could not be undone."""
    if pending.running is not None and pending.running.alive():
        processes.end_session(pending.running.pid, 2.0)


def _read(path: Path) -> PendingCleanup | None:
    """None: it is gone, or none of ours."""
    try:
        if path.stat().st_uid != os.getuid():
            return None
        value = json.loads(path.read_text(encoding="utf-8"))
        running = value.pop("running")
        return PendingCleanup(
            **(value | {"owner": ProcessId(**value["owner"])}),
            running=None if running is None else ProcessId(**running),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
