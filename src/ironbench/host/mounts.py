"""Finds the file system and the block device that contain a directory (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ironbench.host.tree import Tree
from ironbench.model.machine import Mount

COUNTERS = "counters"
"""Name of the file in which an emulated device publishes its counters. The file is in the same directory as the
device's partitions (`crates/ironbench-device/src/live`)."""
_NO_DATABASES = ("/proc", "/sys", "/run", "/boot", "/snap", "/var/lib/docker", "/var/lib/containers")
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")
_MEMORY = ("tmpfs", "ramfs")
_NETWORK = ("nfs", "nfs4", "cifs", "9p", "virtiofs", "ceph", "lustre")
_BLOCKLESS = (*_MEMORY, *_NETWORK, "overlay", "zfs", "btrfs", "bcachefs")
_LOOP_MAJOR = "7"


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Returns every mount in a mountinfo file, in order. A later mount on the same path hides an earlier one."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(), right.split()
        if not separator or len(fields) < 6 or len(tail) < 2:
            continue
        options = set(fields[5].split(",")) | set(tail[2].split(",") if len(tail) > 2 else ())
        mounts.append(Mount(_unescape(fields[4]), _unescape(tail[1]), tail[0], fields[2], tuple(sorted(options))))
    return tuple(mounts)


def _unescape(text: str) -> str:
    """Decodes octal escapes such as `\\040`, which mountinfo uses for blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def all_mounts(tree: Tree) -> tuple[Mount, ...]:
    return parse_mountinfo(tree.read("/proc/self/mountinfo") or "")


def lasting_mounts(tree: Tree) -> tuple[Mount, ...]:
    """Returns mounts that could contain a database and are a permanent part of the machine.

    Kernel file systems are excluded. Loop devices and mounts below temporary directories are also excluded, because
    programs create such mounts during trials.
    """
    seen: dict[str, Mount] = {}
    for mount in all_mounts(tree):
        major = mount.number.partition(":")[0]
        on_block = major not in ("0", _LOOP_MAJOR)
        if not on_block and mount.kind not in _BLOCKLESS:
            continue
        # A btrfs on a loop device has an anonymous number, so its loop device is recognised by the source of the mount.
        if mount.source.startswith("/dev/loop"):
            continue
        if mount.path.startswith((*_NO_DATABASES, *_TEMPORARY)) or (mount.kind in _MEMORY and "ro" in mount.options):
            continue
        seen[mount.path] = mount
    return tuple(seen[path] for path in sorted(seen))


def mount_of(directory: str | Path, mounts: tuple[Mount, ...]) -> Mount | None:
    """Returns the mount that contains `directory`. The path must be absolute and must not contain symbolic links."""
    path = Path(directory)
    best: Mount | None = None
    for mount in mounts:
        if path.is_relative_to(mount.path) and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best


def in_memory(mount: Mount) -> bool:
    return mount.kind in _MEMORY


def is_network(mount: Mount) -> bool:
    return mount.kind in _NETWORK


def device_number(mount: Mount, tree: Tree) -> str | None:
    """Returns the number `major:minor` of the block device that contains a mounted file system. Returns None if there
    is no such device, as for file systems in memory, on a network, or of ZFS.

    The mounts of btrfs and bcachefs have an anonymous number, so their device is found by the source of the mount.
    """
    if not mount.number.startswith("0:"):
        return mount.number
    if mount.source.startswith("/dev/"):
        name = Path(mount.source).name
        for file in (f"/sys/class/block/{name}/dev", f"/sys/block/{name}/dev"):
            if number := tree.read(file):
                return number
        if tree.real:
            try:
                rdev = Path(mount.source).stat().st_rdev
            except OSError:
                return None
            return f"{os.major(rdev)}:{os.minor(rdev)}" if rdev else None
    return None


def emulated(number: str, tree: Tree) -> Path | None:
    """Returns the file that backs a block device if this file is a partition of an emulated device. Returns None for
    block devices that are not emulated."""
    backing = tree.read(f"/sys/dev/block/{number}/loop/backing_file")
    partition = Path(backing) if backing else None
    return partition if partition and tree.exists(str(partition.with_name(COUNTERS))) else None


def block_name(number: str, tree: Tree) -> str | None:
    """Returns the name in /sys/block of the disk with this device number. For the number of a partition, returns the
    name of its disk."""
    for name in tree.names("/sys/block"):
        if tree.read(f"/sys/block/{name}/dev") == number:
            return name
        for part in tree.names(f"/sys/block/{name}"):
            if part.startswith(name) and tree.read(f"/sys/block/{name}/{part}/dev") == number:
                return name
    return None
