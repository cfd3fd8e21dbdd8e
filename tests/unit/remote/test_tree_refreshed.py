"""Files of another machine that are read again."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from ironbench.host.remote.link import CommandResult, Link
from ironbench.host.remote.tree import RemoteTree


class _Machine:
    """Shows these files, whatever it is asked for."""

    shown = b""

    def run(self, command: str, stdin: bytes = b"", limit_s: float = 30.0) -> CommandResult:
        return CommandResult(0, self.shown, "")


def test_a_process_that_has_ended_is_not_seen_any_more() -> None:
    """A restarted server is one process, without the old one."""
    machine = _Machine()
    tree = RemoteTree(Path("/dev/null"), cast(Link, machine))
    machine.shown = b"/proc/10/comm:mariadbd\n/proc/20/comm:sh\n"
    assert tree.glob("/proc/[0-9]*/comm") == ["/proc/10/comm", "/proc/20/comm"]
    machine.shown = b"/proc/20/comm:sh\n/proc/30/comm:mariadbd\n"
    assert tree.glob("/proc/[0-9]*/comm") == ["/proc/20/comm", "/proc/30/comm"]
