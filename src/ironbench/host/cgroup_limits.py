"""Reads the limits that control groups of version 1 or version 2 set for this process (cgroups(7))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ironbench.host.mounts import all_mounts
from ironbench.host.tree import Tree
from ironbench.model.machine import Limits, Mount

_N = TypeVar("_N", int, float)

_V1_UNLIMITED = 1 << 60
"""Value that means "no limit" in version 1: the largest multiple of the page size."""

_V1_MEMORY = ("memory.limit_in_bytes", "memory.usage_in_bytes")
_V2_MEMORY = ("memory.max", "memory.current")


def read_limits(tree: Tree) -> Limits:
    """Returns the limits that apply to this process. For each resource, this is the smallest of the limits that are set
    for the process's group or for one of the group's ancestors."""
    groups = own_groups(tree)
    mounts = [mount for mount in all_mounts(tree) if mount.kind in ("cgroup", "cgroup2")]
    cpu_list = _cpu_list(tree)
    one = {name: mount.path for mount in mounts if mount.kind == "cgroup" for name in _controllers(mount)}
    if "memory" in one or "cpu" in one:
        memory = [
            tree.integer(f"{at}/memory.limit_in_bytes") for at in _upwards(one.get("memory"), groups.get("memory"))
        ]
        quotas = [_quota_v1(tree, at) for at in _upwards(one.get("cpu"), groups.get("cpu"))]
        limited = [value for value in memory if value is not None and value < _V1_UNLIMITED]
        return Limits("v1", _least(limited), _least(quotas), cpu_list)
    two = next((mount.path for mount in mounts if mount.kind == "cgroup2"), None)
    if two is not None:
        steps = _upwards(two, groups.get(""))
        memory = [tree.integer(f"{at}/memory.max") for at in steps]
        return Limits("v2", _least(memory), _least([_quota_v2(tree, at) for at in steps]), cpu_list)
    return Limits("none", cpu_list=cpu_list)


def memory_left(tree: Tree) -> int | None:
    """Returns how many bytes of memory this process may still allocate before its group, or an ancestor of the group,
    reaches its limit. Returns None if there is no limit.

    Cached files count as free, because the kernel reclaims them before it refuses memory
    (Documentation/admin-guide/cgroup-v2.rst, "Memory").
    """
    groups = own_groups(tree)
    mounts = [mount for mount in all_mounts(tree) if mount.kind in ("cgroup", "cgroup2")]
    one = next((mount.path for mount in mounts if mount.kind == "cgroup" and "memory" in _controllers(mount)), None)
    two = next((mount.path for mount in mounts if mount.kind == "cgroup2"), None)
    if one is not None:
        steps, files, prefix = _upwards(one, groups.get("memory")), _V1_MEMORY, "total_"
    else:
        steps, files, prefix = _upwards(two, groups.get("")), _V2_MEMORY, ""
    return _least([_left(tree, at, files, prefix) for at in steps])


def memory_available(tree: Tree) -> int | None:
    """Returns how many bytes of memory are available without swapping (proc_meminfo(5)) and within the limits of the
    control groups. Returns None if this is unknown."""
    return _least([tree.table("/proc/meminfo").get("MemAvailable"), memory_left(tree)])


def _left(tree: Tree, at: str, files: tuple[str, str], prefix: str) -> int | None:
    limit, used = (tree.integer(f"{at}/{name}") for name in files)
    if limit is None or used is None or limit >= _V1_UNLIMITED:
        return None
    stat = dict(line.split() for line in (tree.read(f"{at}/memory.stat") or "").splitlines() if len(line.split()) == 2)
    cached = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
    return max(0, limit - max(0, used - cached))


def own_groups(tree: Tree) -> dict[str, str]:
    """Returns the path of this process's control group for each controller. The result also contains the path of the
    version 2 group, under the key ""."""
    groups = {}
    for line in (tree.read("/proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        groups.update(dict.fromkeys(names.split(","), path))
    return groups


def own_group_at(tree: Tree, mount: str, group: str) -> str:
    """Returns the directory of this process's group: `group` below `mount`, or `mount` if this directory does not
    exist. In a container, `group` may be a path outside the container. The group itself is then mounted at `mount`."""
    inside = f"{mount.rstrip('/')}/{group.strip('/')}".rstrip("/")
    return inside if tree.exists(inside) else mount


def _controllers(mount: Mount) -> list[str]:
    return [name for name in ("cpu", "cpuacct", "cpuset", "memory", "blkio", "pids") if name in mount.options]


def _upwards(mount: str | None, group: str | None) -> list[str]:
    """Returns the directories from this process's group up to the mount point."""
    if mount is None:
        return []
    parts = [part for part in (group or "/").split("/") if part]
    return ["/".join([mount.rstrip("/"), *parts[:n]]) for n in range(len(parts), -1, -1)]


def _quota_v2(tree: Tree, at: str) -> float | None:
    words = (tree.read(f"{at}/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    return None


def _quota_v1(tree: Tree, at: str) -> float | None:
    quota, period = tree.integer(f"{at}/cpu.cfs_quota_us"), tree.integer(f"{at}/cpu.cfs_period_us")
    return quota / period if quota and quota > 0 and period else None


def _cpu_list(tree: Tree) -> str | None:
    for line in (tree.read("/proc/self/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.partition(":")[2].strip()
    return None


def _least(values: Sequence[_N | None]) -> _N | None:
    return min((value for value in values if value is not None), default=None)


_COUNTER = "oom_kill "
"""Start of a line in /proc/vmstat. The line contains the number of processes that the out-of-memory killer has killed,
both on the whole machine and in control groups (since Linux 4.13, mm/oom_kill.c)."""


class OutOfMemoryKills:
    """Counts out-of-memory kills since the object was created. The kernel's counter covers the whole machine, so the
    killed processes may belong to other programs."""

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree = tree or Tree()
        self._before = self._kills()

    def words(self) -> str:
        """Describes the kills, for the message about an engine that died. Returns "" if there were none, or if the
        kernel has no such counter."""
        killed = self._kills() - self._before
        if killed <= 0:
            return ""
        what = "a process" if killed == 1 else f"{killed} processes"
        return f"out of memory: the kernel killed {what} on this machine during the trial"

    def _kills(self) -> int:
        lines = (self._tree.read("/proc/vmstat") or "").splitlines()
        return next((int(line.removeprefix(_COUNTER)) for line in lines if line.startswith(_COUNTER)), 0)
