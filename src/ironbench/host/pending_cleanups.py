"""Cleanup commands that are still pending. There is one file for each user command that changed something; it is
deleted after the cleanup.

Unlike entries of the register, these files survive a power cut: they are synced, and are in the default directory for
data.
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
from ironbench.host import data_dirs, processes
from ironbench.host.processes import ProcessId


@dataclass(frozen=True, slots=True)
class PendingCleanup:
    """A cleanup command that must still run, with all data needed to run it."""

    id: str
    """Id of the cleanup. Ids increase with time, and the latest cleanup runs first."""
    cleanup: str
    of: str
    """The owner of the command (`Commands.of`), for messages."""
    limit_s: float
    folder: str
    """Working directory of the command."""
    environment: Mapping[str, str]
    began: str
    """The experiment that started the command: the directory of a lab, or the series of a run."""
    owner: ProcessId
    namespace: str
    """Namespace of process ids to which `owner` belongs."""
    running: ProcessId | None = field(default=None)
    """Process id of the shell that runs the corresponding `prepare`."""

    @property
    def orphaned(self) -> bool:
        """Whether the owner is dead. False if the owner runs in another container, because its state is unknown
        then."""
        return self.namespace == processes.pid_namespace() and not self.owner.alive()


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of the files. Raises InputError if the user has no home directory."""
    return data_dirs.base(environ) / "undo"


def add(
    cleanup: str, of: str, limit_s: float, folder: str, environment: Mapping[str, str], began: str
) -> PendingCleanup:
    """Stores a cleanup command before the command that it undoes is started. If FailureError is raised, that command
    must not be started."""
    owner = processes.this_process()
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
    """Writes the entry to a temporary file and renames it. Raises FailureError."""
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
        cause = f"cannot record the pending cleanup: {error.strerror or error}"
        raise FailureError(
            str(path), cause, "free some space, or set IRONBENCH_DATA to one of your directories"
        ) from None


def runs(pending: PendingCleanup, shell: ProcessId | None) -> PendingCleanup:
    """Stores the process id of the shell that runs the `prepare` command."""
    pending = replace(pending, running=shell)
    write(pending)
    return pending


def forget(pending: PendingCleanup) -> None:
    (directory() / f"{pending.id}.json").unlink(missing_ok=True)


def all_pending() -> list[PendingCleanup]:
    """Returns the pending cleanups, the latest first."""
    found = (_read(path) for path in sorted(directory().glob("*.json"), reverse=True))
    return [pending for pending in found if pending is not None]


def orphans(began: str = "") -> list[PendingCleanup]:
    """Returns pending cleanups whose ironbench is dead. `began`: only the cleanups of this experiment."""
    return [pending for pending in all_pending() if pending.orphaned and began in ("", pending.began)]


def end_prepare(pending: PendingCleanup) -> None:
    """Ends a `prepare` command that is still running although its ironbench is dead. Otherwise, it could make further
    changes after the cleanup."""
    if pending.running is not None and pending.running.alive():
        processes.end_session(pending.running.pid, 2.0)


def _read(path: Path) -> PendingCleanup | None:
    """Reads an entry. Returns None if it is missing, or does not belong to this user."""
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
