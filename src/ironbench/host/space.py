"""Checks whether a file system has enough free space."""

from __future__ import annotations

import os
from pathlib import Path

from ironbench import units
from ironbench.errors import InputError

RESERVE = 0.05
"""Extra space that is required, as a fraction of an estimate. Estimates are inexact, and a full disk is worse than a
load that does not start."""


def existing(path: str | Path) -> Path:
    """Returns the path, or its nearest existing ancestor. Dangling links are resolved."""
    path = followed(Path(path).absolute())
    while not os.path.exists(path):  # noqa: PTH110 - Path.exists fails below a directory that we may not enter
        path = path.parent
    return path


def followed(path: Path) -> Path:
    """Returns the path. If one of its links is dangling, resolves the links, because mkdir(2) would fail with "File
    exists"."""
    dangling = any(one.is_symlink() and not os.path.exists(one) for one in (path, *path.parents))  # noqa: PTH110
    return Path(os.path.realpath(path)) if dangling else path


def file_system(path: str | Path) -> int:
    """Returns an identifier of the file system that contains `path`, or will contain it: st_dev of stat(2)."""
    return existing(path).stat().st_dev


def free_bytes(path: str | Path) -> int:
    """Returns the bytes that an ordinary user may still write to the file system of `path`, which need not exist yet.

    A file system without a size, such as ramfs, reports 0 blocks (statfs(2)); its space is the free memory.
    """
    info = os.statvfs(existing(path))
    if info.f_blocks == 0:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return info.f_bavail * info.f_frsize


def require(path: str | Path, estimate_bytes: int, what: str) -> None:
    """Checks that there is enough space in the file system of `path`. If there is not, raises an InputError that says
    how much space `what` needs and how much is free."""
    needed = int(estimate_bytes * (1 + RESERVE))
    free = free_bytes(path)
    if free < needed:
        raise InputError(
            f"directory {path}",
            f"about {units.stored(needed)} are needed for {what}, but only {units.stored(free)} are free in this "
            "directory",
            "choose a smaller scale, or a directory on a larger device",
        )
