"""File systems that an emulated device can carry: how each is made and mounted.

Only the standard library: the process of an emulated device runs this without site-packages.
"""

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
    """One kind."""

    program: str
    make: tuple[str, ...]
    smallest_bytes: int
    package: str
    """Where Debian has the program."""
    options: tuple[str, ...] = ()
    """What may follow its name after a colon: options of its mount, up to their `=`."""
    unflushed: str = ""
    """The option of its mount with which it flushes nothing."""


KINDS = {
    # Tables of inodes are written at once, not by a thread of the kernel during trials (mkfs.ext4(8), -E). Nothing is
    # discarded first: a new image is empty.
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
"""Smallest sizes: mkfs.xfs(8) refuses less than 300 MB, mkfs.btrfs(8) less than 109 MiB."""


def validated(subject: str, text: str) -> str:
    """`NAME` or `NAME:OPTION`, e.g. `btrfs:compress=zstd`. InputError, also where its program is not installed."""
    name, _, option = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise InputError(subject, f"{name!r} is no file system that a device can carry", f"known: {', '.join(KINDS)}")
    if option and not any(option.startswith(known) for known in kind.options):
        known = ", ".join(f"{name}:{one}…" for one in kind.options) or f"{name} takes none here"
        raise InputError(subject, f"{option!r} is no option of {name} here", known)
    if shutil.which(kind.program) is None:
        raise InputError(
            subject,
            f"{kind.program} is not installed",
            f"Debian and Ubuntu have it in the package {kind.package}; or choose another file system",
        )
    return text


def smallest_bytes(text: str) -> int:
    """The smallest partition that carries it."""
    return KINDS[text.partition(":")[0]].smallest_bytes


def make(text: str, block: str) -> None:
    """FailureError."""
    kind = KINDS[text.partition(":")[0]]
    deadline = time.monotonic() + _UNCHECKED_PATIENCE_S
    while True:
        try:
            output([kind.program, *kind.make, block], timeout_s=None)
            return
        except ProgramError as error:
            # mkfs.btrfs asks for the file behind every mounted loop device, and gives up where one does not answer
            # (check_mounted_where in btrfs-progs): the file of another emulated device whose process has just died.
            # Whoever waits for that device unmounts it in a moment.
            if _UNCHECKED not in error.said:
                raise
            if time.monotonic() > deadline:
                hint = "a mounted loop device has lost its file: `ironbench cleanup` removes what ironbench left"
                raise FailureError(error.subject, error.cause, hint) from error
            time.sleep(_AGAIN_S)


def mount(text: str, block: str, point: Path, *, flushes: bool = True) -> None:
    """`flushes`: whether the device has anything to flush; xfs cannot be told that it has not. FailureError."""
    name, _, option = text.partition(":")
    options = [one for one in (option, "" if flushes else KINDS[name].unflushed) if one]
    chosen = ["-o", ",".join(options)] if options else []
    output(["mount", "-t", name, *chosen, block, str(point)], timeout_s=None)
