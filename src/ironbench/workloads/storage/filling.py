"""A file system filled to a stated level before its device is measured.

Flash writes more slowly the fuller it is, and the outer tracks of a disk, which are the fastest, are used first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager

from ironbench.engines import space
from ironbench.errors import InputError
from ironbench.workloads.storage import files
from ironbench.workloads.storage.files import Measured
from ironbench.workloads.storage.profiles import MIB


def require(folder: str, percent: int, size: int) -> None:
    """InputError where a file system cannot be so full, the measured file of `size` included."""
    filler_bytes(folder, percent, size)


def filled(folder: str, percent: int, size: int, direct: bool) -> AbstractContextManager[list[Measured]]:
    """A file, its space reserved, that leaves the measured one to reach the level. InputError, FailureError."""
    return files.made([folder], filler_bytes(folder, percent, size), direct)


def filler_bytes(folder: str, percent: int, size: int) -> int:
    """What is missing to that level beside the measured file, in whole MiB and one at least. InputError."""
    subject = f"--with fill={percent}"
    usage = shutil.disk_usage(folder)
    missing = usage.total * percent // 100 - usage.used - size
    if missing < MIB:
        cause = f"with the measured file, {folder} is {(usage.used + size) / usage.total:.0%} full"
        raise InputError(subject, cause, "say a higher level, or make room there")
    if missing + size > (free := space.free_bytes(folder)):
        cause = f"that takes {space.in_words(missing + size)}, and {space.in_words(free)} may be written in {folder}"
        raise InputError(subject, cause, "say a lower level: file systems keep something back")
    return missing // MIB * MIB


def used_share(folders: Sequence[str]) -> float:
    """Of the first folder's file system, as it is now."""
    usage = os.statvfs(folders[0])
    return 1 - usage.f_bfree / usage.f_blocks
