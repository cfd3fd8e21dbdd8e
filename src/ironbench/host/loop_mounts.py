"""Loop devices and the file systems mounted from them, and how to remove both.

The process of an emulated device runs this module without site-packages, so it uses only the standard library.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host.programs import output

SYS_BLOCK = Path("/sys/block")
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Loop:
    """A block device backed by a file (loop(4))."""

    device: str
    """Path of the device, such as `/dev/loop3`."""
    backing: str
    """Path that the file had when the device was created."""


def loops(folder: Path) -> list[Loop]:
    """Returns the loop devices whose files are in `folder`."""
    ours = []
    for path in sorted(SYS_BLOCK.glob("loop*/loop/backing_file")):
        try:
            backing = path.read_text().rstrip("\n")
        except OSError:
            continue  # the device has just been detached
        # The kernel appends ` (deleted)` to the name of a deleted file. It also does so for a file of a FUSE file
        # system whose process has died.
        if Path(backing.removesuffix(" (deleted)")).is_relative_to(folder):
            ours.append(Loop(f"/dev/{path.parts[-3]}", backing))
    return ours


def attach(file: Path) -> str:
    """Creates a loop device for a file with direct I/O, which bypasses the file's page cache. Raises FailureError."""
    return output(("losetup", "--find", "--show", "--direct-io=on", str(file)), timeout_s=None).strip()


def detach(device: str) -> None:
    """Detaches the device. If the device is in use, the kernel detaches it after its last user has closed it (loop(4),
    LOOP_CLR_FD)."""
    output(("losetup", "--detach", device), timeout_s=None)


def mount_points(source: str) -> list[Path]:
    """Returns the paths at which a block device is mounted, the latest mount first."""
    return [point for point, device, _ in reversed(_mounts()) if device == source]


def is_mount_point(path: Path) -> bool:
    return any(point == path for point, _, _ in _mounts())


def mounted_within(folder: Path, kind: str) -> list[Path]:
    """Returns the mount points of file systems of that kind in `folder`, the latest mount first."""
    return [point for point, _, name in reversed(_mounts()) if name.startswith(kind) and point.is_relative_to(folder)]


def unmount(point: Path, patience_s: float) -> None:
    """Unmounts a path. Retries for `patience_s`, then unmounts lazily, which takes effect when the last user is gone
    (umount(8), --lazy)."""
    deadline = time.monotonic() + patience_s
    while is_mount_point(point):
        try:
            output(("umount", str(point)), timeout_s=None)
        except FailureError:
            if time.monotonic() > deadline:
                output(("umount", "--lazy", str(point)), timeout_s=None)
            else:
                time.sleep(_PAUSE_S)


def take_apart(folder: Path, patience_s: float) -> list[str]:
    """Unmounts and detaches all loop devices that are backed by files in `folder`. Returns one line for each
    failure."""
    left = []
    for loop in loops(folder):
        try:
            for point in mount_points(loop.device):
                unmount(point, patience_s)
            detach(loop.device)
        except FailureError as error:
            left.append(str(error))
    wait_gone(folder, patience_s)
    left += [f"{loop.device} is still in use" for loop in loops(folder)]
    for point in mounted_within(folder, "fuse"):
        try:
            unmount(point, 0.0)
        except FailureError as error:
            left.append(str(error))
    return left


def wait_gone(folder: Path, patience_s: float) -> None:
    """Waits until no loop device is backed by a file in `folder`, but no longer than `patience_s`."""
    deadline = time.monotonic() + patience_s
    while loops(folder) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _mounts() -> list[tuple[Path, str, str]]:
    """Returns mount point, source and kind of every mount, in the order of mounting (proc_pid_mountinfo(5))."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if separator and len(fields) > 4 and len(tail) > 1:
            mounts.append((Path(_unescaped(fields[4])), _unescaped(tail[1]), tail[0]))
    return mounts


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
