"""Whether what is about to be written fits."""

from __future__ import annotations

import os
from pathlib import Path

from ironbench import units
from ironbench.errors import InputError

RESERVE = 0.05
"""Share of the estimate kept on top of it: estimates err, and a full disk ruins more than the load."""


def existing(path: str | Path) -> Path:
    """The path itself, or its nearest ancestor that exists; links are followed to what does not exist yet."""
    path = followed(Path(path).absolute())
    while not os.path.exists(path):  # noqa: PTH110 - Path.exists fails below a directory that we may not enter
        path = path.parent
    return path


def followed(path: Path) -> Path:
    """The path, with its links resolved if one of them leads to a place that does not exist yet: mkdir(2) would refuse
    it with "File exists"."""
    dangling = any(one.is_symlink() and not os.path.exists(one) for one in (path, *path.parents))  # noqa: PTH110
    return Path(os.path.realpath(path)) if dangling else path


def file_system(path: str | Path) -> int:
    """The one that `path` is on, or will be: st_dev of stat(2)."""
    return existing(path).stat().st_dev


def free_bytes(path: str | Path) -> int:
    """What an ordinary user may still write to the file system of `path`, which need not exist yet.

    A file system without a size of its own, such as ramfs, reports 0 blocks (statfs(2)); it can take what memory is
    free.
    """
    info = os.statvfs(existing(path))
    if info.f_blocks == 0:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return info.f_bavail * info.f_frsize


def require(path: str | Path, estimate_bytes: int, what: str) -> None:
    """InputError with both figures when `what` (estimated) would not fit where `path` is."""
    needed = int(estimate_bytes * (1 + RESERVE))
    free = free_bytes(path)
    if free < needed:
        raise InputError(
            f"directory {path}",
            f"{what} takes about {units.stored(needed)}, but only {units.stored(free)} are free there",
            "choose a smaller scale, or a directory on a larger device",
        )
