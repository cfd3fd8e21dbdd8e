"""Reads the machine's block devices from /sys/block."""

from __future__ import annotations

from ironbench.host.tree import Tree
from ironbench.model.machine import Block

_PASSING = ("loop", "ram", "zram", "sr", "fd", "nbd")
"""Name prefixes of devices that are temporary or cannot contain a database."""


def read_blocks(tree: Tree) -> tuple[Block, ...]:
    """Returns every permanent block device that has a size."""
    names = [name for name in tree.names("/sys/block") if not name.startswith(_PASSING)]
    return tuple(block for name in names if (block := read_block(name, tree)).size_bytes)


def read_block(name: str, tree: Tree) -> Block:
    base = f"/sys/block/{name}"
    rotational = tree.integer(f"{base}/queue/rotational")
    return Block(
        name=name,
        number=tree.read(f"{base}/dev") or "",
        # The file `size` always counts sectors of 512 bytes, even if the device has larger sectors.
        size_bytes=(tree.integer(f"{base}/size") or 0) * 512,
        model=tree.read(f"{base}/device/model")
        or tree.read(f"{base}/dm/name")
        or tree.read(f"{base}/md/level")
        or None,
        rotational=None if rotational is None else bool(rotational),
        scheduler=tree.chosen(f"{base}/queue/scheduler"),
        firmware=tree.read(f"{base}/device/firmware_rev") or tree.read(f"{base}/device/rev") or None,
        write_cache=tree.read(f"{base}/queue/write_cache"),
        parts=tuple(tree.names(f"{base}/slaves")),
    )


def down_to_drives(name: str, tree: Tree) -> list[str]:
    """Returns the name of a device in /sys/block, and the names of all devices below it. Partitions are replaced by
    their drives: for a logical volume on a partition, the result is the volume and the drive."""
    whole = _whole(name, tree)
    parts = tree.names(f"/sys/block/{whole}/slaves")
    return [whole, *(below for part in parts for below in down_to_drives(part, tree))]


def _whole(part: str, tree: Tree) -> str:
    """Returns the disk of a partition; any other device is returned unchanged."""
    disks = tree.names("/sys/block")
    if part in disks:
        return part
    return next((disk for disk in disks if part.startswith(disk) and part in tree.names(f"/sys/block/{disk}")), part)
