"""A file system filled to a stated level before its device is measured.

Flash writes more slowly the fuller it is, and the outer tracks of a disk, which are the fastest, are used first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ironbench import units
from ironbench.errors import InputError
from ironbench.machine import space
from ironbench.workloads.storage import files
from ironbench.workloads.storage.files import Measured
from ironbench.workloads.storage.profiles import MIB


def by_file_system(folders: Sequence[str]) -> dict[str, int]:
    """The first folder on each file system → how many of them are on it."""
    first: dict[int, str] = {}
    counts: dict[str, int] = {}
    for folder in folders:
        one = first.setdefault(Path(folder).stat().st_dev, folder)
        counts[one] = counts.get(one, 0) + 1
    return counts


def require(folder: str, percent: int, size: int) -> None:
    """InputError where a file system cannot be so full, the measured files of `size` bytes included."""
    filler_bytes(folder, percent, size)


def require_emulated(folder: str, capacity: int, percent: int, size: int) -> None:
    """The same of one that is not there yet, as far as that can be known before."""
    _missing(folder, capacity, 0, capacity, percent, size)


def filled(folder: str, percent: int, size: int, direct: bool) -> AbstractContextManager[list[Measured]]:
    """A file, its space reserved, that leaves the measured ones to reach the level. InputError, FailureError."""
    return files.made([folder], filler_bytes(folder, percent, size), direct)


def filler_bytes(folder: str, percent: int, size: int) -> int:
    """What is missing to that level beside the measured files, in whole MiB and one at least. InputError."""
    usage = shutil.disk_usage(folder)
    return _missing(folder, usage.total, usage.used, space.free_bytes(folder), percent, size)


def _missing(folder: str, total: int, used: int, free: int, percent: int, size: int) -> int:
    subject = f"--with fill={percent}"
    missing = total * percent // 100 - used - size
    if missing < MIB:
        cause = f"with what is measured, {folder} is {(used + size) / total:.0%} full"
        raise InputError(subject, cause, "say a higher level, or make room there")
    if missing + size > free:
        cause = f"that takes {units.stored(missing + size)}, and {units.stored(free)} may be written in {folder}"
        raise InputError(subject, cause, "say a lower level: file systems keep something back")
    return missing // MIB * MIB


def used_share(folders: Sequence[str]) -> float:
    """Of the first folder's file system, as it is now."""
    usage = os.statvfs(folders[0])
    return 1 - usage.f_bfree / usage.f_blocks
