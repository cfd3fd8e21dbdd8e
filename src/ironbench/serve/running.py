"""Finds running experiments: processes that hold the lock of a lab or a run."""

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
from ironbench.serve.results import Results
from ironbench.trial.drive import live
from ironbench.trial.drive.live import LiveTrial

ASKED_S = 10.0
"""Seconds between two checks of the kernel's locks, because reading them takes milliseconds. Between the checks, an
experiment counts as running as long as its process exists."""
_LOCKS = Path("/proc/locks")
Locks = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A running lab or run."""

    lab: str
    """Name of the lab's directory. Empty for a run."""
    series: str
    process: ProcessId
    state: LiveTrial | None
    """State of the current trial, or None if no trial has started."""
    file: Path | None = None
    """File that contains the state."""
    elsewhere: str = ""
    """Name of the lab's directory if the lab is in another results directory (`lab run --results DIR`). Empty for other
    experiments."""

    @property
    def name(self) -> str:
        if self.elsewhere:
            return f"lab {self.elsewhere} (in another directory)"
        return self.lab or f"run {self.series}"


def experiments(results: Results) -> list[Experiment]:
    """Returns running labs, then running runs, then labs in other directories. Experiments in other containers are not
    visible."""
    found, held = [], locks()
    for name in results.labs():
        if (one := experiment(results, name, held)) is not None:
            found.append(one)
    with contextlib.suppress(OSError):
        for entry in sorted(os.scandir(results.directory), key=lambda entry: entry.name):
            if entry.name.startswith(".") and entry.name.endswith(".lock"):
                series = entry.name.removesuffix(".lock")[1:]
                if (process := holder(Path(entry.path), held)) is not None:
                    state = live.read(live.place(results.directory, series))
                    found.append(Experiment("", series, process, state))
    return found + elsewhere(results)


def elsewhere(results: Results) -> list[Experiment]:
    """Returns running labs of this user whose directories are not among these results."""
    here, running = (results.directory / "labs").resolve(), running_labs.all_running()
    shown = {results.place(name).resolve() for name in results.labs()} if running else set()
    return [
        Experiment("", "", lab.process, *_state(lab.directory, lab.process), lab.directory.name)
        for lab in running
        if lab.directory.parent != here and lab.directory not in shown
    ]


class RunningCache:
    """A cache of the running experiments, because every open page requests them once a second."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._found: list[Experiment] = []
        self._asked_s = 0.0

    def seen(self, at_once: bool = False) -> list[Experiment]:
        """Returns the running experiments. Without `at_once`, an experiment that has just started may be missing."""
        now_s = time.monotonic()
        if at_once or now_s - self._asked_s > ASKED_S:
            self._found, self._asked_s = experiments(self._results), now_s
        self._found = [one for one in self._found if one.process.alive()]
        return self._found


def experiment(
    results: Results, name: str, held: Locks | None = None, process: ProcessId | None = None
) -> Experiment | None:
    """Finds a running lab by the name of its directory. Returns None if it is not running.

    `held`: result of `locks`. A caller that checks many labs passes it, so that the locks are read only once.
    `process`: process that is known to hold the lab's lock. If it is given, the lock is not checked again.
    """
    directory = results.place(name)
    process = process or holder(directory / "lock", locks() if held is None else held)
    if process is None:
        return None
    return Experiment(name, "", process, *_state(directory, process))


def _state(directory: Path, process: ProcessId) -> tuple[LiveTrial | None, Path | None]:
    """Returns the state of the current trial of a lab, and the path of the file that contains this state. All state
    files in the lab's directory belong to this lab, because a lab has only one series."""
    for path in directory.glob(".*.live"):
        if (state := live.read(path)) is not None and state.pid == process.pid:
            return state, path
    return None, None


def written(state: Path | None) -> int:
    """Returns the time (ns) at which a state file was written. Returns 0 if there is no file."""
    with contextlib.suppress(OSError):
        return state.stat().st_mtime_ns if state is not None else 0
    return 0


def others(results: Results) -> str:
    """Describes the running experiments. Returns "" if there are none. The queue asks only while none of its own labs
    is running."""
    found = [one.name for one in experiments(results)]
    are = "are" if len(found) > 1 else "is"
    return f"{' and '.join(found)} {are} running, started outside this queue" if found else ""


def locks() -> Locks:
    """Returns all flock(2) locks of the kernel as pairs of process id and inode (proc_locks(5)). This takes
    milliseconds."""
    with contextlib.suppress(OSError):
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
        return frozenset(
            (words[4], words[5].rpartition(":")[2]) for words in lines if len(words) >= 6 and words[1] == "FLOCK"
        )
    return frozenset()


def holder(lock: Path, held: Locks) -> ProcessId | None:
    """Returns the process that holds a lock file (`durable.held`), according to the kernel's list of locks. The
    function does not try to take the lock. If it succeeded, it would block other programs for a moment."""
    try:
        with lock.open("rb") as file:
            written, inode = file.read(32).decode(errors="replace").strip(), os.fstat(file.fileno()).st_ino
    except OSError:
        return None
    return processes.identify(int(written)) if (written, str(inode)) in held else None


def stop(one: Experiment) -> bool:
    """Interrupts an experiment as Ctrl-C does. The experiment can be resumed. Returns False if it has already ended."""
    return one.process.signal(signal.SIGINT)
