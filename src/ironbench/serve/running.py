"""Who measures under a results directory now: whoever holds the lock of a lab or of a run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from ironbench.host import processes
from ironbench.host.processes import ProcessId
from ironbench.records import running_labs
from ironbench.serve.shelf import Shelf
from ironbench.trial.drive import live
from ironbench.trial.drive.live import LiveTrial

ASKED_S = 10.0
"""How long who measures counts as known while its process lives: to ask takes the kernel milliseconds."""
_LOCKS = Path("/proc/locks")
Locks = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One that is being measured."""

    lab: str
    """Name of the lab's directory; empty: a run."""
    series: str
    process: ProcessId
    state: LiveTrial | None
    """None: no trial has begun."""
    file: Path | None = None
    """Where the state is from."""
    elsewhere: str = ""
    """Of a lab in another directory than these results (`lab run --results DIR`): the name of its directory."""

    @property
    def name(self) -> str:
        if self.elsewhere:
            return f"lab {self.elsewhere} (in another directory)"
        return self.lab or f"run {self.series}"


def experiments(shelf: Shelf) -> list[Experiment]:
    """Labs, then runs. What another container measures is not seen."""
    found, held = [], locks()
    for name in shelf.labs():
        if (one := experiment(shelf, name, held)) is not None:
            found.append(one)
    with contextlib.suppress(OSError):
        for entry in sorted(os.scandir(shelf.results), key=lambda entry: entry.name):
            if entry.name.startswith(".") and entry.name.endswith(".lock"):
                series = entry.name.removesuffix(".lock")[1:]
                if (process := holder(Path(entry.path), held)) is not None:
                    state = live.read(live.place(shelf.results, series))
                    found.append(Experiment("", series, process, state))
    return found + elsewhere(shelf)


def elsewhere(shelf: Shelf) -> list[Experiment]:
    """Running labs of this user whose directories are not among these results."""
    here = (shelf.results / "labs").resolve()
    return [
        Experiment("", "", lab.process, *_state(lab.directory, lab.process), lab.directory.name)
        for lab in running_labs.known()
        if lab.directory.parent != here
    ]


class Lookout:
    """What is measured now, for a page that is open and asks each second."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._found: list[Experiment] = []
        self._asked_s = 0.0

    def seen(self, at_once: bool = False) -> list[Experiment]:
        """`at_once`: else what has begun within the last seconds may be missing; what has ended is not there."""
        now_s = time.monotonic()
        if at_once or now_s - self._asked_s > ASKED_S:
            self._found, self._asked_s = experiments(self._shelf), now_s
        self._found = [one for one in self._found if one.process.alive()]
        return self._found


def experiment(
    shelf: Shelf, name: str, held: Locks | None = None, process: ProcessId | None = None
) -> Experiment | None:
    """Of a lab by the name of its directory; None: nobody measures it. `held`: what `locks` gave, for who asks of many.
    `process`: the one that held its lock a moment ago."""
    directory = shelf.results / "labs" / name
    process = process or holder(directory / "lock", locks() if held is None else held)
    if process is None:
        return None
    return Experiment(name, "", process, *_state(directory, process))


def _state(directory: Path, process: ProcessId) -> tuple[LiveTrial | None, Path | None]:
    """Of a lab. One lab, one series: whichever state is there is its own."""
    for path in directory.glob(".*.live"):
        if (state := live.read(path)) is not None and state.pid == process.pid:
            return state, path
    return None, None


def written(state: Path | None) -> int:
    """When a file of a state was written (nanoseconds); 0: it is not there."""
    with contextlib.suppress(OSError):
        return state.stat().st_mtime_ns if state is not None else 0
    return 0


def others(shelf: Shelf) -> str:
    """What is measured here, in words; empty: nothing."""
    found = [one.name for one in experiments(shelf)]
    are = "are" if len(found) > 1 else "is"
    return f"{' and '.join(found)} {are} measured, and this queue did not begin it" if found else ""


def locks() -> Locks:
    """All that are held by flock(2): process and inode (proc_locks(5)). The kernel takes milliseconds to tell."""
    with contextlib.suppress(OSError):
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
        return frozenset(
            (words[4], words[5].rpartition(":")[2]) for words in lines if len(words) >= 6 and words[1] == "FLOCK"
        )
    return frozenset()


def holder(lock: Path, held: Locks) -> ProcessId | None:
    """The process that holds a lock file (`durable.held`): asked of the kernel, for trying it would lock it."""
    try:
        with lock.open("rb") as file:
            written, inode = file.read(32).decode(errors="replace").strip(), os.fstat(file.fileno()).st_ino
    except OSError:
        return None
    return processes.identify(int(written)) if (written, str(inode)) in held else None


def stop(one: Experiment) -> bool:
    """As Ctrl-C: its trial ends within a second, what was begun is undone, and it can be resumed. False: it is over."""
    return one.process.signal(signal.SIGINT)
