"""Labs that are being measured on this machine, wherever their directories are.

One file for each in the user's runtime directory, written when the lab's directory is locked and removed when it is
released. A process that was killed leaves its file; the next reader finds its process gone and removes it.
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
    """A lab whose directory is locked by a live process."""

    directory: Path
    """Absolute."""
    process: ProcessId


@contextmanager
def announced(directory: Path) -> Iterator[None]:
    """Lists a lab as running. Without a runtime directory it is measured all the same, and not listed."""
    here = directory.resolve()
    file: Path | None = None
    with contextlib.suppress(OSError, IronbenchError):
        name = hashlib.sha256(os.fsencode(here)).hexdigest()[:16]
        file = _folder() / f"{name}.json"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        content = {"directory": str(here), "process": asdict(processes.own()), "namespace": processes.pid_namespace()}
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


def known() -> list[RunningLab]:
    """Running labs, by directory. Files of processes that have ended are removed."""
    found = []
    with contextlib.suppress(OSError, IronbenchError):
        for file in sorted(_folder().glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                content = json.loads(file.read_text())
                if content["namespace"] != processes.pid_namespace():
                    continue  # of another container: its process ids mean nothing here
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
    """Ids of every process that belongs to a running lab or run of this user: ironbench itself, its workers, and the
    servers that it started. They are what is measured, not what disturbs it."""
    roots = {lab.process.pid for lab in known()}
    with contextlib.suppress(OSError, IronbenchError):
        for entry in register.entries():
            if entry.namespace in ("", processes.pid_namespace()) and entry.owner.alive():
                roots |= {one.pid for one in (entry.owner, entry.guard, entry.server) if one is not None}
    return frozenset(roots | {one.pid for root in roots for one in processes.below(root)})
