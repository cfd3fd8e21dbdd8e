"""Examines a remote machine for the doctor's checks: its files, and its activity during one second. The machine is only
read; no operations are tried out on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ironbench.errors import InputError
from ironbench.host.host_view import HostView, OwnProcesses, watch_host
from ironbench.host.profiling import Restriction
from ironbench.host.remote import address, link, tree
from ironbench.host.remote.link import Link, quoted

AREAS = ("load", "cpu", "memory", "time", "storage", "power")
"""Areas of checks, without those that only concern the machine on which ironbench runs."""
WATCH_S = 1.0
_MAY_BE = (
    'd={path}; while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done; [ -d {path} ] || '
    '{{ [ "$d" != {path} ] && [ ! -x "$d" ]; }}'
)
"""Shell test for a directory. The test succeeds if the directory exists. The test also succeeds below a directory that
the user may not enter, because the tested directory may exist there. In both cases, the mount and the drive of the
directory can be determined."""


def examine(server: str, directories: tuple[Path, ...]) -> HostView:
    """Examines a machine. `directories`: directories on that machine; if empty, its root directory. Raises InputError
    or FailureError."""
    there = link.connection_to(address.parse(server))
    machine = tree.fetched(there)
    for one in directories:
        if there.run(_MAY_BE.format(path=quoted(str(one)))).status != 0:
            cause = f"{there.address.text()} has no such directory"
            raise InputError(f"--data {one}", cause, "use an existing directory")
    machine.refresh(tree.MOVING)

    def watch(seconds: float) -> None:
        time.sleep(seconds)
        machine.refresh(tree.MOVING)

    places = tuple(Path(machine.resolved(str(one))) for one in directories) or (Path("/"),)
    return watch_host(machine, places, _Attempts(there), OwnProcesses(None), WATCH_S, watch)


class _Attempts:
    """Tests on a remote machine. Only free space can be tested, because ironbench writes no files there."""

    def __init__(self, there: Link) -> None:
        self._there = there

    def free_bytes(self, directory: Path) -> tuple[int, int] | None:
        lines = self._there.run(f"df -Pk -- {quoted(str(directory))}").output.decode("utf-8", "replace").splitlines()
        words = lines[-1].split() if len(lines) > 1 else []
        if len(words) < 6 or not (words[1].isdigit() and words[3].isdigit()):
            return None
        return int(words[3]) * 1024, int(words[1]) * 1024

    def wake_ups(self) -> list[float]:
        return []

    def syncs(self, directory: Path) -> list[float]:
        return []

    def io_uring(self) -> str | None:
        return _HERE

    def fuse(self) -> str | None:
        return _HERE

    def loop_device(self) -> str | None:
        return _HERE

    def user_namespace(self) -> str | None:
        return _HERE

    def profiles(self, kind: str) -> Sequence[Restriction]:
        return ()

    def cgroup(self, directory: Path) -> str | None:
        return _HERE


_HERE = "not tested on another machine"
