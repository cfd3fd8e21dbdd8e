"""Whether the kernel killed a process for want of memory: then a death has a name."""

from __future__ import annotations

from ironbench.machine.tree import Tree

_COUNTER = "oom_kill "
"""Processes killed by the out-of-memory killer, those of control groups too (Linux 4.13, mm/oom_kill.c)."""


class Starved:
    """Watches the kernel's count of such kills from now on. It is the whole machine's: others may die of it, too."""

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree = tree or Tree()
        self._before = self._kills()

    def words(self) -> str:
        """What to say of an engine that died since; empty when the kernel killed nothing, or does not tell."""
        killed = self._kills() - self._before
        if killed <= 0:
            return ""
        what = "a process" if killed == 1 else f"{killed} processes"
        return f"out of memory: the kernel killed {what} on this machine during the trial"

    def _kills(self) -> int:
        lines = (self._tree.read("/proc/vmstat") or "").splitlines()
        return next((int(line.removeprefix(_COUNTER)) for line in lines if line.startswith(_COUNTER)), 0)
