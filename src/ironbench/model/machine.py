"""The parts of a machine that can change a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """A processor cache as the first core sees it."""

    level: int
    kind: str
    """`Data`, `Instruction` or `Unified`."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cpu:
    model: str
    sockets: int
    cores: int
    """Physical cores as the machine (or its hypervisor) reports them."""
    threads: int
    """Logical processors that are online."""
    min_hz: int | None = None
    max_hz: int | None = None
    governor: str | None = None
    """Frequency governor; if cores differ, all governors joined by `+`. None: not visible."""
    boost: bool | None = None
    smt: bool | None = None
    microcode: str | None = None
    caches: tuple[Cache, ...] = ()
    mitigations: tuple[str, ...] = ()
    """CPU vulnerabilities that the kernel mitigates at a cost."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block device."""

    name: str
    """Name in /sys/block, such as `nvme0n1`."""
    number: str
    """`major:minor`."""
    size_bytes: int
    model: str | None = None
    rotational: bool | None = None
    """Whether the disk rotates, as reported by the kernel; often wrong for virtual disks."""
    scheduler: str | None = None
    firmware: str | None = None
    write_cache: str | None = None
    """`write back` (volatile cache, flushes matter) or `write through`."""
    parts: tuple[str, ...] = ()
    """Underlying devices (RAID, device mapper)."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system that could store a database."""

    path: str
    source: str
    kind: str
    """File system type, such as `ext4`."""
    number: str
    """`major:minor` of the file system; `0:…` if there is no block device under it."""
    options: tuple[str, ...] = ()
    """Options of the mount and of the file system, sorted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that a control group or a CPU affinity mask allows this process."""

    cgroup: str
    """`v2`, `v1`, or `none`."""
    memory_bytes: int | None = None
    cpus: float | None = None
    """CPU quota in cores."""
    cpu_list: str | None = None
    """CPUs this process may run on, as the kernel writes lists: `0-3,8`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The host of a measurement. The host name is left out because it changes with every container. Quantities that
    change all the time are also left out."""

    cpu: Cpu
    memory_bytes: int
    numa_nodes: int
    swap_bytes: int
    swappiness: int | None
    kernel: str
    os: str
    virtualisation: str
    """`none`, or the hypervisor's DMI product name, or `unnamed hypervisor`."""
    container: str
    """`none`, or the kind of container."""
    clock_source: str | None
    transparent_huge_pages: str | None
    limits: Limits
    blocks: tuple[Block, ...] = ()
    mounts: tuple[Mount, ...] = ()
