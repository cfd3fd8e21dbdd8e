"""Whether what is about to be written fits."""

from __future__ import annotations

import os
from pathlib import Path

from ironbench.errors import InputError

RESERVE = 0.05
"""Share of the estimate kept on top of it: estimates err, and a full disk ruins more than the load."""


def existing(path: str | Path) -> Path:
    """The path itself, or its nearest ancestor that exists."""
    path = Path(path).absolute()
    while not path.exists():
        path = path.parent
    return path


def free_bytes(path: str | Path) -> int:
    """What an ordinary user may still write to the file system of `path`, which need not exist yet."""
    info = os.statvfs(existing(path))
    return info.f_bavail * info.f_frsize


def require(path: str | Path, estimate_bytes: int, what: str) -> None:
    """InputError with both figures when `what` (estimated) would not fit where `path` is."""
    needed = int(estimate_bytes * (1 + RESERVE))
    free = free_bytes(path)
    if free < needed:
        raise InputError(
            f"directory {path}",
            f"{what} takes about {in_words(needed)}, but only {in_words(free)} are free there",
            "choose a smaller scale, or a directory on a larger device",
        )


def memory_in_words(count: int) -> str:
    """Memory, which is counted and sold in powers of 1024: 1.5 GiB."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if size == int(size) else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def in_words(count: int) -> str:
    """A size a person reads, in decimal units: 1.5 GB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
