"""Computes the fingerprint of a machine: the properties that can affect a measurement, and a key that identifies the
machine."""

from __future__ import annotations

import hashlib
import platform
import re
from pathlib import Path

import msgspec

from ironbench.host.blocks import read_blocks
from ironbench.host.cgroup_limits import read_limits
from ironbench.host.mounts import lasting_mounts
from ironbench.host.tree import Tree
from ironbench.model.machine import Cache, Cpu, Machine

_CPU = "/sys/devices/system/cpu"


def fingerprint(root: Path = Path("/")) -> Machine:
    """Returns the fingerprint of the machine whose file system is below `root`."""
    return of_tree(Tree(root))


def of_tree(tree: Tree) -> Machine:
    """Reads the fingerprint from /proc, /sys and /etc. Never raises an error. Unknown values are None, 0 or empty."""
    memory = tree.table("/proc/meminfo")
    return Machine(
        cpu=_cpu(tree),
        memory_bytes=memory.get("MemTotal", 0),
        numa_nodes=sum(bool(re.fullmatch(r"node\d+", name)) for name in tree.names("/sys/devices/system/node")) or 1,
        swap_bytes=memory.get("SwapTotal", 0),
        swappiness=tree.integer("/proc/sys/vm/swappiness"),
        kernel=tree.read("/proc/sys/kernel/osrelease") or "",
        os=_os(tree),
        virtualisation=virtualisation(tree),
        container=container(tree),
        clock_source=tree.read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        transparent_huge_pages=tree.chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        limits=read_limits(tree),
        blocks=read_blocks(tree),
        mounts=lasting_mounts(tree),
    )


def content_key(machine: Machine) -> str:
    """Returns the key under which the record store keeps this fingerprint: a hash of all its values. A fingerprint
    contains no values that change by themselves, so the key of an unchanged machine stays the same."""
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(machine), order="sorted")).hexdigest()[:16]


def _cpu(tree: Tree) -> Cpu:
    info = _cpuinfo(tree)
    ids = [name for name in tree.names(_CPU) if re.fullmatch(r"cpu\d+", name)]
    online = [name for name in ids if tree.integer(f"{_CPU}/{name}/online") != 0]
    places = {
        (tree.read(f"{_CPU}/{name}/topology/physical_package_id"), tree.read(f"{_CPU}/{name}/topology/core_id"))
        for name in online
        if tree.exists(f"{_CPU}/{name}/topology/core_id")
    }
    threads = len(online) or info.count("processor")
    governors = {tree.read(name) for name in tree.glob(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor")} - {None}
    return Cpu(
        model=info.first("model name") or info.first("Processor") or info.first("cpu") or _architecture(info, tree),
        sockets=len({package for package, _ in places}) or 1,
        cores=len(places) or threads,
        threads=threads,
        min_hz=_khz(tree, "cpuinfo_min_freq"),
        max_hz=_khz(tree, "cpuinfo_max_freq"),
        governor="+".join(sorted(str(name) for name in governors)) or None,
        boost=boost(tree),
        smt={1: True, 0: False}.get(tree.integer(f"{_CPU}/smt/active") or 0)
        if tree.exists(f"{_CPU}/smt/active")
        else None,
        microcode=info.first("microcode"),
        caches=tuple(_caches(tree)),
        mitigations=mitigations(tree),
    )


class _Fields(dict[str, list[str]]):
    """Fields of /proc/cpuinfo: name → list with the value of each processor."""

    def first(self, name: str) -> str | None:
        return self[name][0] if self.get(name) else None

    def count(self, name: str) -> int:
        return len(self.get(name, []))


def _cpuinfo(tree: Tree) -> _Fields:
    fields = _Fields()
    for line in (tree.read("/proc/cpuinfo") or "").splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields.setdefault(name.strip(), []).append(value.strip())
    return fields


def _architecture(info: _Fields, tree: Tree) -> str:
    """Describes a processor for which /proc/cpuinfo contains no name (Linux: arch/arm64/kernel/cpuinfo.c). Since Linux
    6.1, /proc/sys/kernel/arch contains the architecture."""
    if tree.real:
        return platform.machine()
    part, maker = info.first("CPU part"), info.first("CPU implementer")
    numbered = f"ARM (implementer {maker}, part {part})" if part and maker else "unknown"
    return tree.read("/proc/sys/kernel/arch") or numbered


def _khz(tree: Tree, name: str) -> int | None:
    khz = tree.integer(f"{_CPU}/cpu0/cpufreq/{name}")
    return None if khz is None else khz * 1000


def boost(tree: Tree) -> bool | None:
    """Returns whether the processor may exceed its base frequency. Returns None if it is unknown."""
    if (no_turbo := tree.integer(f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return no_turbo == 0
    if (allowed := tree.integer(f"{_CPU}/cpufreq/boost")) is not None:
        return allowed == 1
    return None


def mitigations(tree: Tree) -> tuple[str, ...]:
    """Returns the names of CPU vulnerabilities for which the kernel has enabled a mitigation ("Mitigation: …")."""
    base = f"{_CPU}/vulnerabilities"
    return tuple(name for name in tree.names(base) if (tree.read(f"{base}/{name}") or "").startswith("Mitigation"))


def _caches(tree: Tree) -> list[Cache]:
    caches = []
    for base in tree.glob(f"{_CPU}/cpu0/cache/index[0-9]*"):
        level, size = tree.integer(f"{base}/level"), tree.size(f"{base}/size")
        if level is not None and size is not None:
            caches.append(Cache(level, tree.read(f"{base}/type") or "Unified", size))
    return caches


def _os(tree: Tree) -> str:
    for line in (tree.read("/etc/os-release") or tree.read("/usr/lib/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return "unknown"


_VIRTUAL = (
    *("QEMU", "KVM", "KubeVirt", "VMware", "VirtualBox", "Xen", "Virtual Machine", "Bochs", "Parallels", "BHYVE"),
    *("Google Compute", "OpenStack", "Amazon EC2", "Alibaba Cloud ECS", "vServer", "Apple Virtualization"),
)
"""Words that occur in the firmware of virtual machines (systemd: src/basic/virt.c). The words are needed because only
x86 has a processor flag that marks a virtual machine."""
_METAL = ".metal"
"""Part of the product name of Amazon's bare-metal instances, such as `m7g.metal`."""


def virtualisation(tree: Tree) -> str:
    """Returns `none`, or the virtual machine's vendor and product as its firmware names them."""
    flags = (_cpuinfo(tree).first("flags") or "").split()
    product = " ".join(
        filter(None, (tree.read(f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")))
    )
    if tree.read("/sys/hypervisor/type"):
        return product or str(tree.read("/sys/hypervisor/type"))
    if "hypervisor" in flags:
        return product or "unnamed hypervisor"
    if _METAL in product:
        return "none"
    return product if any(word in product for word in _VIRTUAL) else "none"


def container(tree: Tree) -> str:
    """Returns `none`, or the kind of container in which this process runs."""
    if tree.exists("/.dockerenv"):
        return "docker"
    if tree.exists("/run/.containerenv"):
        return "podman"
    if named := tree.read("/run/systemd/container"):
        return named
    match = re.search(r"docker|kubepods|lxc|libpod|containerd", tree.read("/proc/self/cgroup") or "")
    return match[0] if match else "none"
