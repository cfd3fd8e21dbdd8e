"""Memory control groups for engines: version 2 (cgroups(7)) or version 1, nested below the group of this process.

Nesting ensures that limits on ironbench also apply to the engine. A page in the page cache is charged to the group that
read it first (Linux: Documentation/admin-guide/cgroup-v1/memory.rst, section 2.3). Before the engine starts, its files
must therefore be evicted from the page cache, or their pages are not charged to the engine's group.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench import units
from ironbench.errors import FailureError, InputError, written
from ironbench.host.cgroup_limits import own_group_at, own_groups
from ironbench.host.mounts import all_mounts
from ironbench.host.tree import Tree

_LEAF = "ironbench-itself"
"""Name of the group into which this process moves itself in version 2. There, a group that contains processes cannot
limit the groups below it (cgroups(7), "no internal processes")."""
_HINT = "run as root, or `systemd-run --user --scope -p Delegate=yes ironbench …`"
LEAST_BYTES = 16 << 20
"""Smallest permitted memory limit in bytes. No engine runs with less memory."""


@dataclass(frozen=True, slots=True)
class ParentGroup:
    """The group of this process. New groups can be created below it."""

    version: str
    """Version of control groups: `v1` or `v2`."""
    directory: Path


def parent(tree: Tree | None = None) -> ParentGroup:
    """Returns the group below which ironbench can create groups with a memory limit. Raises InputError if the kernel or
    the container does not allow such groups."""
    tree = tree or Tree()
    groups = own_groups(tree)
    mounts = all_mounts(tree)
    for mount in mounts:
        if mount.kind == "cgroup" and "memory" in mount.options:
            return ParentGroup("v1", tree.path(own_group_at(tree, mount.path, groups.get("memory", "/"))))
    for mount in mounts:
        if mount.kind == "cgroup2":
            directory = tree.path(own_group_at(tree, mount.path, groups.get("", "/")))
            if directory.name == _LEAF:
                directory = directory.parent
            if "memory" in _words(directory / "cgroup.controllers"):
                return ParentGroup("v2", directory)
    raise InputError(written("limits.memory_total"), "this machine has no control group for memory", _HINT)


def require(wanted_bytes: int, tree: Tree | None = None) -> None:
    """Raises InputError if the memory of an engine cannot be limited to this value. Creates a group for the test and
    removes it."""
    if wanted_bytes < LEAST_BYTES:
        raise InputError(
            written("limits.memory_total", units.exact(wanted_bytes)),
            "is too small for any engine",
            f"allow at least {units.exact(LEAST_BYTES)}",
        )
    where = parent(tree)
    group = where.directory / f"ironbench-try-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        group.mkdir()
        group.rmdir()
    except OSError as error:
        cause = f"cannot create a control group in {where.directory}: {error.strerror}"
        raise InputError(written("limits.memory_total"), cause, _HINT) from error
    if where.version == "v2" and not _delegated(where.directory) and not _alone(where.directory):
        raise InputError(
            written("limits.memory_total"),
            f"other processes share ironbench's control group {where.directory}, so limits below it are not possible",
            "run `systemd-run --scope -p Delegate=yes ironbench …` (with --user when not root)",
        )


def chosen(tree: Tree | None = None) -> Path:
    """Returns a path for a new group. The caller must register the path before it creates the group. Raises
    InputError."""
    return parent(tree).directory / f"ironbench-{secrets.token_hex(8)}"


def freezing(within: Sequence[str]) -> Path | None:
    """Returns the path of a control group for pausing a server. If one of the server's groups (`within`) has version 2,
    returns this group. Otherwise, returns the path of a new group. Returns None if no group can be created."""
    tree = Tree()
    if unified := next((Path(one) for one in within if version(Path(one)) == "v2"), None):
        return unified
    groups, mounts = own_groups(tree), all_mounts(tree)
    own = [
        *((mount.path, "freezer") for mount in mounts if mount.kind == "cgroup" and "freezer" in mount.options),
        *((mount.path, "") for mount in mounts if mount.kind == "cgroup2"),
    ]
    for path, controller in own:
        group = tree.path(own_group_at(tree, path, groups.get(controller, "/"))) / f"ironbench-{secrets.token_hex(8)}"
        try:
            group.mkdir()
            group.rmdir()
        except OSError:
            continue
        return group
    return None


def make(group: Path, limit_bytes: int) -> None:
    """Creates the group with a memory limit and without swap. Raises FailureError."""
    try:
        if (group.parent / "cgroup.controllers").exists():
            _delegate(group.parent)
            group.mkdir()
            (group / "memory.max").write_text(f"{limit_bytes}")
            _write_if_supported(group / "memory.swap.max", "0")
        else:
            group.mkdir()
            _write_if_supported(group / "memory.swappiness", "0")
            (group / "memory.limit_in_bytes").write_text(f"{limit_bytes}")
            _write_if_supported(group / "memory.memsw.limit_in_bytes", f"{limit_bytes}")
    except OSError as error:
        raise FailureError(f"control group {group}", error.strerror or str(error), _HINT) from error


def entering(group: Path) -> tuple[str, ...]:
    """Returns words to put before a command, so that the command runs in the group and keeps its process id."""
    return ("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))


def version(group: Path) -> str:
    return "v2" if (group.parent / "cgroup.controllers").exists() else "v1"


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _delegated(directory: Path) -> bool:
    return "memory" in _words(directory / "cgroup.subtree_control")


def _alone(directory: Path) -> bool:
    """Returns whether the group contains only this process and processes that it started."""
    family = {os.getpid()}
    for pid in sorted(int(word) for word in _words(directory / "cgroup.procs")):
        if pid not in family and _parent(pid) not in family:
            return False
        family.add(pid)
    return True


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _delegate(directory: Path) -> None:
    """Allows groups below this one to limit memory. If necessary, first moves this process and its children into a
    group one level down."""
    if _delegated(directory):
        return
    control = directory / "cgroup.subtree_control"
    try:
        control.write_text("+memory")
        return
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
    leaf = directory / _LEAF
    leaf.mkdir(exist_ok=True)
    for pid in _words(directory / "cgroup.procs"):
        (leaf / "cgroup.procs").write_text(pid)
    control.write_text("+memory")


def _write_if_supported(path: Path, text: str) -> None:
    """Writes a setting, and ignores the error if the kernel lacks or refuses it."""
    try:
        path.write_text(text)
    except OSError:
        return
