"""Stops a server with everything below it where it stands, and lets it go on.

By a control group of its own: the freezer of version 1, or `cgroup.freeze` of version 2 (Linux: freezer-subsystem.rst
and cgroup-v2.rst in Documentation/admin-guide); where neither can be had, by SIGSTOP to each process.

A frozen process hears no signal before it is thawed, not even SIGKILL in version 1: whoever ends a server thaws it
first. Only the standard library: the guard runs this without site-packages.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host import processes
from ironbench.host.processes import ProcessId

PATIENCE_S = 5.0
"""A process in the midst of an I/O is frozen when that is done."""
_STOPPED = ("T", "t")


@dataclass(frozen=True, slots=True)
class Freezer:
    """Of one server."""

    server: ProcessId
    group: Path | None
    """Its control group, in which it is with everything below it; None: signals."""
    _stopped: set[ProcessId] = field(default_factory=set)
    """By signals: those whose server is killed meanwhile are below it no more, and would stand still for ever."""

    @property
    def how(self) -> str:
        if self.group is None:
            return "SIGSTOP"
        return "control group v1" if (self.group / "freezer.state").exists() else "control group v2"

    def enter(self) -> None:
        """Moves the server and all below it into the group; what they start later is born there. FailureError; OSError:
        the group takes no process."""
        if self.group is None:
            return
        deadline = time.monotonic() + PATIENCE_S
        while outside := [pid for pid in _tree(self.server) if pid not in _members(self.group)]:
            for pid in outside:
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(pid))
            if time.monotonic() > deadline:
                raise FailureError(f"control group {self.group}", f"process {outside[0]} does not enter it")

    def freeze(self) -> None:
        """Returns when nothing of it runs any more. FailureError."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._frozen():
            if self.group is None:
                for one in filter(None, map(processes.identify, _tree(self.server))):
                    self._stopped.add(one)
                    one.signal(signal.SIGSTOP)
            else:
                try:
                    _write(self.group, "FROZEN", "1")
                except OSError as error:
                    raise _unusable(self.group, error) from error
            if time.monotonic() > deadline:
                self.thaw()
                raise FailureError(f"server process {self.server.pid}", f"could not be frozen ({self.how})")
            time.sleep(0.001)

    def thaw(self) -> None:
        """Returns when it goes on. FailureError: it does not."""
        thaw([] if self.group is None else [str(self.group)], self.server)
        for one in self._stopped:
            one.signal(signal.SIGCONT)
        self._stopped.clear()
        if self.server.alive() and self._frozen():
            raise FailureError(
                f"server process {self.server.pid}",
                f"could not be thawed ({self.how})",
                "`ironbench cleanup` tries it again, and ends the server",
            )

    def _frozen(self) -> bool:
        if self.group is None:
            # Once the server has stopped it starts no process: only then does a list of those below it hold all.
            if self.server.alive() and processes.state(self.server.pid) not in _STOPPED:
                return False
            states = [processes.state(pid) for pid in _tree(self.server)]
            return all(state in _STOPPED for state in states if state)
        try:
            if (self.group / "freezer.state").exists():
                return (self.group / "freezer.state").read_text().strip() == "FROZEN"
            return "frozen 1" in (self.group / "cgroup.events").read_text()
        except OSError as error:
            raise _unusable(self.group, error) from error


def thaw(groups: Iterable[str], server: ProcessId | None) -> None:
    """Whatever of it is frozen goes on, however it was frozen. `groups`: control groups of any kind."""
    for group in map(Path, groups):
        with contextlib.suppress(OSError):  # not a freezer, or gone
            _write(group, "THAWED", "0")
    if server is not None and server.alive():
        for pid in _tree(server):
            if processes.state(pid) in _STOPPED:
                _signal(pid, signal.SIGCONT)


def _unusable(group: Path, error: OSError) -> FailureError:
    """It was there and usable when the server entered it."""
    hint = "leave control groups named ironbench-… to ironbench; `ironbench cleanup` thaws and ends what is left"
    return FailureError(f"control group {group}", error.strerror or str(error), hint)


def _write(group: Path, first: str, second: str) -> None:
    """The word of version 1, or that of version 2."""
    old = group / "freezer.state"
    if old.exists():
        old.write_text(first)
    elif (group / "cgroup.freeze").exists():
        (group / "cgroup.freeze").write_text(second)


def _tree(server: ProcessId) -> Sequence[int]:
    if not server.alive():
        return ()
    return (server.pid, *(one.pid for one in processes.below(server.pid)))


def _members(group: Path) -> set[int]:
    return set(map(int, (group / "cgroup.procs").read_text().split()))


def _signal(pid: int, number: int) -> None:
    if (one := processes.identify(pid)) is not None:
        one.signal(number)
