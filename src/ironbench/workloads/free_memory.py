"""Checks that enough memory is free before a workload allocates it."""

from __future__ import annotations

from ironbench.errors import InputError
from ironbench.host.cgroup_limits import memory_available
from ironbench.host.tree import Tree

SPARE_BYTES = 256 << 20
"""Memory in bytes that must stay free for other processes."""
HINT = "use less memory, or fewer threads"


def require(subject: str, threads: int, each_bytes: int, available: int | None = None, hint: str = HINT) -> None:
    """Raises InputError if `threads` times `each_bytes` exceeds the free memory or the limit of this process."""
    free = memory_available(Tree()) if available is None else available
    if free is None:
        return
    needed = threads * each_bytes
    if needed + SPARE_BYTES > free:
        words = f"{threads} threads of {each_bytes >> 20} MiB" if threads > 1 else f"{each_bytes >> 20} MiB"
        raise InputError(
            subject,
            f"{words} exceed the {free >> 20} MiB of free memory (of which {SPARE_BYTES >> 20} MiB are reserved)",
            hint,
        )
