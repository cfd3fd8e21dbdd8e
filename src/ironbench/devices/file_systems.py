"""Creates and mounts file systems for emulated devices. This module imports only the standard library, because
the process of an emulated device runs it without site-packages."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError, InputError, ProgramError
from ironbench.host.programs import output

DEFAULT = "ext4"
_UNCHECKED = "cannot check mount status"
_UNCHECKED_PATIENCE_S = 15.0
_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A type of file system."""

    program: str
    make: tuple[str, ...]
    smallest_bytes: int
    package: str
    """Debian package that contains the program."""
    options: tuple[str, ...] = ()
    """Mount options that may follow the name after a colon. Each entry includes the `=` before the option's value."""
    unflushed: str = ""
    """Mount option that disables flushes."""


KINDS = {
    # mkfs for ext4 initializes the inode tables at once. Otherwise, a kernel thread would do so during trials
    # (mkfs.ext4(8), -E). No blocks are discarded, because a new image is already empty.
    "ext4": FileSystem(
        "mkfs.ext4",
        ("-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
        16 << 20,
        "e2fsprogs",
        ("data=",),
        "nobarrier",
    ),
    "xfs": FileSystem("mkfs.xfs", ("-q", "-f", "-K"), 300 << 20, "xfsprogs"),
    "btrfs": FileSystem(
        "mkfs.btrfs", ("-q", "-f", "-K"), 128 << 20, "btrfs-progs", ("compress=", "compress-force="), "nobarrier"
    ),
}
"""For each file system, its properties. The minimum sizes are those of the mkfs programs. mkfs.xfs(8) refuses less than
300 MB, and mkfs.btrfs(8) less than 109 MiB."""


def validated(subject: str, text: str) -> str:
    """Checks and returns a file system given as `NAME` or `NAME:OPTION`, e.g. `btrfs:compress=zstd`. Raises InputError
    if the name or the option is unknown, or if the mkfs program is not installed."""
    name, _, option = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise InputError(
            subject, f"emulated devices do not support the file system {name!r}", f"known: {', '.join(KINDS)}"
        )
    if option and not any(option.startswith(known) for known in kind.options):
        known = ", ".join(f"{name}:{one}…" for one in kind.options) or f"the file system {name} has no options"
        raise InputError(subject, f"{name} does not support the option {option!r} here", known)
    if shutil.which(kind.program) is None:
        raise InputError(
            subject,
            f"{kind.program} is not installed",
            f"install it (package {kind.package} on Debian and Ubuntu), or choose another file system",
        )
    return text


def smallest_bytes(text: str) -> int:
    """Returns the minimum size in bytes of a partition with this file system."""
    return KINDS[text.partition(":")[0]].smallest_bytes


def make(text: str, block: str) -> None:
    """Creates the file system on a block device. Raises FailureError."""
    kind = KINDS[text.partition(":")[0]]
    deadline = time.monotonic() + _UNCHECKED_PATIENCE_S
    while True:
        try:
            output([kind.program, *kind.make, block], timeout_s=None)
            return
        except ProgramError as error:
            # mkfs.btrfs looks up the backing file of every mounted loop device and fails if one does not answer
            # (check_mounted_where in btrfs-progs). A loop device does not answer if the process of another emulated
            # device has just died. The ironbench process that uses that device unmounts it within seconds.
            if _UNCHECKED not in error.said:
                raise
            if time.monotonic() > deadline:
                hint = (
                    "the file behind a mounted loop device no longer exists; `ironbench cleanup` removes what "
                    "ironbench left behind"
                )
                raise FailureError(error.subject, error.cause, hint) from error
            time.sleep(_AGAIN_S)


def mount(text: str, block: str, point: Path, *, flushes: bool = True) -> None:
    """Mounts the file system. `flushes`: whether the file system sends flushes to the device. xfs has no option to
    disable flushes. Raises FailureError."""
    name, _, option = text.partition(":")
    options = [one for one in (option, "" if flushes else KINDS[name].unflushed) if one]
    chosen = ["-o", ",".join(options)] if options else []
    output(["mount", "-t", name, *chosen, block, str(point)], timeout_s=None)
