"""Pauses a server with all its child processes, and resumes it.

Uses a control group for the server: the freezer of version 1, or `cgroup.freeze` of version 2 (Linux:
freezer-subsystem.rst and cgroup-v2.rst in Documentation/admin-guide). If neither is available, SIGSTOP is sent to each
process.

A server must be thawed before it is ended: a frozen process receives no signal until it is thawed. In version 1, not
even SIGKILL has an effect. The guard runs this module without site-packages, so it uses only the standard library.
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
"""Seconds to wait for freezing or thawing. A process that waits for an I/O is frozen only after the I/O completes."""
_STOPPED = ("T", "t")


@dataclass(frozen=True, slots=True)
class Freezer:
    """Freezes and thaws one server."""

    server: ProcessId
    group: Path | None
    """Control group of the server and its child processes. If it is None, SIGSTOP is used."""
    _stopped: set[ProcessId] = field(default_factory=set)
    """Processes that were stopped with SIGSTOP. The processes must be resumed even if their server was killed. The set
    is needed because they are no longer children of the server then."""

    @property
    def how(self) -> str:
        if self.group is None:
            return "SIGSTOP"
        return "control group v1" if (self.group / "freezer.state").exists() else "control group v2"

    def enter(self) -> None:
        """Moves the server and its child processes into the group. Processes that they start later are created in the
        group.

        Raises FailureError on timeout, and OSError if the group accepts no process.
        """
        if self.group is None:
            return
        deadline = time.monotonic() + PATIENCE_S
        while outside := [pid for pid in _tree(self.server) if pid not in _members(self.group)]:
            for pid in outside:
                with contextlib.suppress(ProcessLookupError):
                    (self.group / "cgroup.procs").write_text(str(pid))
            if time.monotonic() > deadline:
                raise FailureError(
                    f"control group {self.group}", f"process {outside[0]} cannot be moved into this group"
                )

    def freeze(self) -> None:
        """Freezes the server; returns when none of its processes runs. Raises FailureError."""
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
                raise FailureError(f"server process {self.server.pid}", f"could not be paused ({self.how})")
            time.sleep(0.001)

    def thaw(self) -> None:
        """Resumes the server. Raises FailureError if it stays frozen."""
        thaw([] if self.group is None else [str(self.group)], self.server)
        for one in self._stopped:
            one.signal(signal.SIGCONT)
        self._stopped.clear()
        if self.server.alive() and self._frozen():
            raise FailureError(
                f"server process {self.server.pid}",
                f"could not be resumed ({self.how})",
                "`ironbench cleanup` tries again and then stops the server",
            )

    def _frozen(self) -> bool:
        if self.group is None:
            # The server is checked first, because it may start further children until it has stopped.
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
    """Resumes all processes of a server, whether they are frozen by a control group or stopped by SIGSTOP. `groups`:
    the server's control groups. Groups that cannot freeze processes are ignored."""
    for group in map(Path, groups):
        with contextlib.suppress(OSError):  # the group cannot freeze processes, or was deleted
            _write(group, "THAWED", "0")
    if server is not None and server.alive():
        for pid in _tree(server):
            if processes.state(pid) in _STOPPED:
                _signal(pid, signal.SIGCONT)


def _unusable(group: Path, error: OSError) -> FailureError:
    """Returns the error for a control group that can no longer be read or written, although the server entered it."""
    hint = "do not change control groups named ironbench-…; `ironbench cleanup` resumes and stops their processes"
    return FailureError(f"control group {group}", error.strerror or str(error), hint)


def _write(group: Path, first: str, second: str) -> None:
    """Writes the setting that freezes or thaws a group of version 1 or version 2."""
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
