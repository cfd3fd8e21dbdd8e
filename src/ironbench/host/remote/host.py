"""Another machine as the doctor's probes see it: its files and a second of watching them; nothing is tried there."""

from __future__ import annotations

import time
from pathlib import Path

from ironbench.errors import InputError
from ironbench.host.host_view import HostView, Ourselves, watch_host
from ironbench.host.remote import address, link, tree
from ironbench.host.remote.link import Link, quoted

AREAS = ("load", "cpu", "memory", "time", "storage", "power")
"""Without what only concerns the machine on which ironbench itself runs."""
WATCH_S = 1.0
_MAY_BE = (
    'd={path}; while [ ! -e "$d" ]; do d=$(dirname -- "$d"); done; [ -d {path} ] || '
    '{{ [ "$d" != {path} ] && [ ! -x "$d" ]; }}'
)
"""Whether there is such a directory, or could be one where the user may not look: its mount and its drive are known."""


def seen(server: str, directories: tuple[Path, ...]) -> HostView:
    """`directories`: there; none: its root. InputError, FailureError."""
    there = link.to(address.parse(server))
    machine = tree.fetched(there)
    for one in directories:
        if there.run(_MAY_BE.format(path=quoted(str(one)))).status != 0:
            cause = f"{there.address.text()} has no such directory"
            raise InputError(f"--data {one}", cause, "give an existing one")
    machine.refresh(tree.MOVING)

    def watch(seconds: float) -> None:
        time.sleep(seconds)
        machine.refresh(tree.MOVING)

    places = tuple(Path(machine.resolved(str(one))) for one in directories) or (Path("/"),)
    return watch_host(machine, places, _Attempts(there), Ourselves(None), WATCH_S, watch)


class _Attempts:
    """Nothing is written there: only what free space there is can be asked for."""

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

    def cgroup(self, directory: Path) -> str | None:
        return _HERE


_HERE = "not tried on another machine"
