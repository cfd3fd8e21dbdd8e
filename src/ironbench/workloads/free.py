"""Whether memory is free, before the first byte of it is taken."""

from __future__ import annotations

from ironbench.errors import InputError
from ironbench.machine.limits import memory_left
from ironbench.machine.tree import Tree

SPARE_BYTES = 256 << 20
"""Left for everybody else."""
WAY_OUT = "ask for less, or use fewer threads"


def require(subject: str, threads: int, each_bytes: int, available: int | None = None, way_out: str = WAY_OUT) -> None:
    """InputError when `threads` times `each_bytes` is more than is free, or more than this process may have."""
    free = _available() if available is None else available
    if free is None:
        return
    needed = threads * each_bytes
    if needed + SPARE_BYTES > free:
        words = f"{threads} threads of {each_bytes >> 20} MiB" if threads > 1 else f"{each_bytes >> 20} MiB"
        raise InputError(
            subject,
            f"{words} are more than the {free >> 20} MiB that are free (and {SPARE_BYTES >> 20} MiB stay for others)",
            way_out,
        )


def _available() -> int | None:
    """Bytes that can be had without swapping, and without more than our control groups allow; None: not told."""
    tree = Tree()
    known = [
        bytes for bytes in (tree.table("/proc/meminfo").get("MemAvailable"), memory_left(tree)) if bytes is not None
    ]
    return min(known, default=None)
