"""Memory control groups for an engine: version 2 (cgroups(7)) or version 1, nested under the group we are in.

Nested, so that whatever limits us limits the engine too. A page in the page cache belongs to the group that read it
first (Linux: Documentation/admin-guide/cgroup-v1/memory.rst, section 2.3): files of the engine must be dropped from the
page cache before it starts, or they do not count.
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
from ironbench.host.limits import own_group_at, own_groups
from ironbench.host.mounts import all_mounts
from ironbench.host.tree import Tree

_LEAF = "ironbench-itself"
"""Where we move to in version 2: a group with processes cannot limit groups below it (cgroups(7), "no internal
processes")."""
_HINT = "run as root, or `systemd-run --user --scope -p Delegate=yes ironbench …`"
LEAST_BYTES = 16 << 20
"""Less holds no engine at all."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Our own group, below which groups can be made."""

    version: str
    """`v1` or `v2`."""
    directory: Path


def parent(tree: Tree | None = None) -> Parent:
    """Where groups that limit memory are made. InputError when this kernel or container has no such place."""
    tree = tree or Tree()
    groups = own_groups(tree)
    mounts = all_mounts(tree)
    for mount in mounts:
        if mount.kind == "cgroup" and "memory" in mount.options:
            return Parent("v1", tree.path(own_group_at(tree, mount.path, groups.get("memory", "/"))))
    for mount in mounts:
        if mount.kind == "cgroup2":
            directory = tree.path(own_group_at(tree, mount.path, groups.get("", "/")))
            if directory.name == _LEAF:
                directory = directory.parent
            if "memory" in _words(directory / "cgroup.controllers"):
                return Parent("v2", directory)
    raise InputError(written("limits.memory_total"), "there is no memory control group here", _HINT)


def require(wanted_bytes: int, tree: Tree | None = None) -> None:
    """InputError when the memory of an engine cannot be limited to so much. Leaves nothing behind."""
    if wanted_bytes < LEAST_BYTES:
        raise InputError(
            written("limits.memory_total", units.exact(wanted_bytes)),
            "holds no engine",
            f"allow {units.exact(LEAST_BYTES)} at least",
        )
    where = parent(tree)
    group = where.directory / f"ironbench-try-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        group.mkdir()
        group.rmdir()
    except OSError as error:
        cause = f"no group can be made in {where.directory}: {error.strerror}"
        raise InputError(written("limits.memory_total"), cause, _HINT) from error
    if where.version == "v2" and not _delegated(where.directory) and not _alone(where.directory):
        raise InputError(
            written("limits.memory_total"),
            f"other processes share our group {where.directory}, so it cannot have groups with limits below it",
            "`systemd-run --scope -p Delegate=yes ironbench …` (with --user when not root)",
        )


def chosen(tree: Tree | None = None) -> Path:
    """The directory of a group that is yet to be made; noted by the caller before it is. InputError."""
    return parent(tree).directory / f"ironbench-{secrets.token_hex(8)}"


def freezing(within: Sequence[str], tree: Tree | None = None) -> Path | None:
    """The directory of a group by which a server can be frozen: one that it is in already (`within`), or one that is
    yet to be made; None: no group can be made here."""
    tree = tree or Tree()
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
    """Makes the group with its limit, swap excluded. FailureError."""
    try:
        if (group.parent / "cgroup.controllers").exists():
            _delegate(group.parent)
            group.mkdir()
            (group / "memory.max").write_text(f"{limit_bytes}")
            _write_where_it_is(group / "memory.swap.max", "0")
        else:
            group.mkdir()
            _write_where_it_is(group / "memory.swappiness", "0")
            (group / "memory.limit_in_bytes").write_text(f"{limit_bytes}")
            _write_where_it_is(group / "memory.memsw.limit_in_bytes", f"{limit_bytes}")
    except OSError as error:
        raise FailureError(f"control group {group}", error.strerror or str(error), _HINT) from error


def entering(group: Path) -> tuple[str, ...]:
    """Put before a command, it runs in the group, as the same process."""
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
    """Whether every process of the group is ours: this one, or one that it started."""
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
    """Lets groups below limit memory; where that is not so yet, we and our children move one group down."""
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


def _write_where_it_is(path: Path, text: str) -> None:
    """A knob that kernels may lack or refuse."""
    try:
        path.write_text(text)
    except OSError:
        return
