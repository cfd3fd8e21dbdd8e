"""The properties of a machine that can change a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """A processor cache of the first core."""

    level: int
    kind: str
    """Kind of the cache: `Data`, `Instruction` or `Unified`."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cpu:
    model: str
    sockets: int
    cores: int
    """Number of physical cores as the machine or its hypervisor reports it."""
    threads: int
    """Number of logical processors that are online."""
    min_hz: int | None = None
    max_hz: int | None = None
    governor: str | None = None
    """Frequency governor. If cores have different governors, all of them joined by `+`. The value is None if the
    governor is not visible."""
    boost: bool | None = None
    smt: bool | None = None
    microcode: str | None = None
    caches: tuple[Cache, ...] = ()
    mitigations: tuple[str, ...] = ()
    """CPU vulnerabilities that the kernel mitigates at a cost."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block device."""

    name: str
    """Name of the device in /sys/block, such as `nvme0n1`."""
    number: str
    """Device number in the form `major:minor`."""
    size_bytes: int
    model: str | None = None
    rotational: bool | None = None
    """Whether the disk rotates, as reported by the kernel; often wrong for virtual disks."""
    scheduler: str | None = None
    firmware: str | None = None
    write_cache: str | None = None
    """Mode of the write cache: `write back` (volatile cache, flushes matter) or `write through`."""
    parts: tuple[str, ...] = ()
    """Names of the underlying devices (RAID, device mapper)."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system that could store a database."""

    path: str
    source: str
    kind: str
    """Type of the file system, such as `ext4`."""
    number: str
    """Device number `major:minor` of the file system; `0:…` if the file system is not on a block device."""
    options: tuple[str, ...] = ()
    """Options of the mount and of the file system, sorted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that a control group or a CPU affinity mask allows this process."""

    cgroup: str
    """Version of control groups: `v2`, `v1`, or `none`."""
    memory_bytes: int | None = None
    cpus: float | None = None
    """CPU quota in cores, or None if there is no quota."""
    cpu_list: str | None = None
    """CPUs this process may run on, as the kernel writes lists: `0-3,8`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The host of a measurement.

    The host name is left out, because every container has a different one. Quantities that change all the time are also
    left out.
    """

    cpu: Cpu
    memory_bytes: int
    numa_nodes: int
    swap_bytes: int
    swappiness: int | None
    kernel: str
    os: str
    virtualisation: str
    """Kind of virtualisation: `none`, the hypervisor's DMI product name, or `unnamed hypervisor`."""
    container: str
    """Kind of container, or `none`."""
    clock_source: str | None
    transparent_huge_pages: str | None
    limits: Limits
    blocks: tuple[Block, ...] = ()
    mounts: tuple[Mount, ...] = ()
