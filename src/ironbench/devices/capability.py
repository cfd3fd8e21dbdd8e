"""Checks whether this machine can emulate devices."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ironbench.errors import InputError

FUSE = Path("/dev/fuse")
LOOPS = Path("/dev/loop-control")
_PROGRAMS = ("losetup", "mount", "umount", "sync")
_SYS_ADMIN = 21
"""Bit of the capability CAP_SYS_ADMIN (capabilities(7)). mount(2) requires this capability."""
WITHOUT = "use a directory instead (a path with a slash); everything except emulated devices works on this machine"


def require(subject: str) -> None:
    """Raises InputError if this machine cannot emulate devices."""
    missing = lacking()
    if missing:
        raise InputError(subject, f"emulated devices need {missing}", WITHOUT)


def lacking(root: Path = Path("/")) -> str:
    """Returns what the machine lacks to emulate devices. Returns "" if all requirements are met."""
    if not _may_mount(root / "proc/self/status"):
        return "root (the right to mount file systems), but this process is not root"
    for path, what in ((FUSE, "FUSE"), (LOOPS, "loop devices")):
        here = root / path.relative_to("/")
        if not here.exists():
            return f"the kernel's {what}, but {path} does not exist"
        if not os.access(here, os.R_OK | os.W_OK):
            return f"the kernel's {what}, but {path} cannot be opened"
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            return f"the program {program}, but it is not installed"
    return ""


def _may_mount(status: Path) -> bool:
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return os.geteuid() == 0
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    return bool(effective >> _SYS_ADMIN & 1)
