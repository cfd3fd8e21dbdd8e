"""Labs that are being measured on this machine, in any directory.

The user's runtime directory has one file per lab, written when the lab's directory is locked and removed when it is
unlocked. A killed process leaves its file behind, which the next reader removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ironbench.errors import IronbenchError
from ironbench.host import processes, register
from ironbench.host.processes import ProcessId


@dataclass(frozen=True, slots=True)
class RunningLab:
    """A lab whose directory is locked by a running process."""

    directory: Path
    """Absolute path of the lab's directory."""
    process: ProcessId


@contextmanager
def announced(directory: Path) -> Iterator[None]:
    """Lists a lab as running inside the `with` block. Without a runtime directory, the lab still runs but is not
    listed."""
    here = directory.resolve()
    file: Path | None = None
    with contextlib.suppress(OSError, IronbenchError):
        name = hashlib.sha256(os.fsencode(here)).hexdigest()[:16]
        file = _folder() / f"{name}.json"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        content = {
            "directory": str(here),
            "process": asdict(processes.this_process()),
            "namespace": processes.pid_namespace(),
        }
        aside = file.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(content))
        aside.replace(file)
    try:
        yield
    finally:
        if file is not None:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
                file.parent.rmdir()  # fails while other labs are listed


def all_running() -> list[RunningLab]:
    """Returns running labs, sorted by directory. Removes files of processes that have ended."""
    found = []
    with contextlib.suppress(OSError, IronbenchError):
        for file in sorted(_folder().glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                content = json.loads(file.read_text())
                if content["namespace"] != processes.pid_namespace():
                    continue  # the process id is from another container
                lab = RunningLab(Path(content["directory"]), ProcessId(**content["process"]))
                if lab.process.alive():
                    found.append(lab)
                else:
                    file.unlink(missing_ok=True)
        if not found:
            _folder().rmdir()
    return sorted(found, key=lambda lab: lab.directory)


def _folder() -> Path:
    return register.directory() / "labs"


def own_processes() -> frozenset[int]:
    """Returns the ids of all processes that belong to running labs and runs of this user. These are ironbench itself,
    its workers, and the servers that it started. These processes do not count as other programs that disturb a
    measurement."""
    roots = {lab.process.pid for lab in all_running()}
    with contextlib.suppress(OSError, IronbenchError):
        for entry in register.entries():
            if entry.namespace in ("", processes.pid_namespace()) and entry.owner.alive():
                roots |= {one.pid for one in (entry.owner, entry.guard, entry.server) if one is not None}
    return frozenset(roots | {one.pid for root in roots for one in processes.below(root)})
