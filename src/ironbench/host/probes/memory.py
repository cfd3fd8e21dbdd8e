"""Memory settings of the kernel that affect databases."""

from __future__ import annotations

from pathlib import Path

from ironbench import units
from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.host.mounts import all_mounts, mount_of
from ironbench.model.diagnosis import CheckResult, note, ok, warning

_SHORT_SHARE = 0.10
_DIRTY_BYTES = 4 << 30
_SHM_BYTES = 256 << 20


@probe("memory", "free memory")
def available(host: HostView) -> CheckResult | None:
    """Memory available to a trial without displacing other programs."""
    memory = host.tree.table("/proc/meminfo")
    if "MemAvailable" not in memory or not memory.get("MemTotal"):
        return None
    share = memory["MemAvailable"] / memory["MemTotal"]
    seen = f"{units.memory(memory['MemAvailable'])} of {units.memory(memory['MemTotal'])}"
    if share < _SHORT_SHARE:
        return warning(
            seen,
            (
                "Little memory is left for the page cache, so data that an idle machine would cache are read from "
                "the device."
            ),
            "stop programs that use much memory: `ps aux --sort=-rss | head`",
        )
    return ok(seen)


@probe("memory", "swappiness")
def swappiness(host: HostView) -> CheckResult | None:
    """How readily the kernel swaps out programs in favour of the page cache."""
    value = host.tree.integer("/proc/sys/vm/swappiness")
    swap = host.tree.table("/proc/meminfo").get("SwapTotal")
    if value is None or swap is None:
        return None
    if swap == 0:
        return ok(f"{value}, but there is no swap")
    if value > 10:
        return note(
            f"{value}, with {units.memory(swap)} of swap",
            "The kernel may swap out parts of the database's cache in order to cache more files.",
            "sudo sysctl vm.swappiness=1",
        )
    return ok(f"{value}, with {units.memory(swap)} of swap")


@probe("memory", "transparent huge pages")
def huge_pages(host: HostView) -> CheckResult | None:
    """Whether the kernel automatically uses huge pages."""
    base = "/sys/kernel/mm/transparent_hugepage"
    chosen = host.tree.chosen(f"{base}/enabled")
    if chosen is None:
        return None
    if chosen != "always":
        return ok(chosen)
    return warning(
        "always",
        "The kernel assembles and splits huge pages at unpredictable times, which causes pauses of milliseconds "
        "and uses more memory per connection.",
        f"echo madvise | sudo tee {base}/enabled",
    )


@probe("memory", "overcommit")
def overcommit(host: HostView) -> CheckResult | None:
    """Whether the kernel allocates more memory than it has."""
    mode = host.tree.integer("/proc/sys/vm/overcommit_memory")
    if mode is None:
        return None
    if mode == 2:
        return ok("2: never")
    words = {0: "0: heuristic", 1: "1: always"}
    return note(
        words.get(mode, str(mode)),
        "When memory runs out, the kernel kills a process, often the database, instead of refusing the allocation.",
        "sudo sysctl vm.overcommit_memory=2 vm.overcommit_ratio=90",
    )


@probe("memory", "NUMA")
def numa(host: HostView) -> CheckResult | None:
    """Number of NUMA nodes, and whether the kernel moves memory between them."""
    tree = host.tree
    nodes = [name for name in tree.names("/sys/devices/system/node") if name[4:].isdigit() and name.startswith("node")]
    if not nodes:
        return None
    if len(nodes) == 1:
        return ok("one node")
    if tree.integer("/proc/sys/vm/zone_reclaim_mode"):
        return warning(
            f"{len(nodes)} nodes, zone_reclaim_mode is on",
            (
                "A NUMA node drops cached pages although other nodes have free memory, so data are read from the "
                "device repeatedly."
            ),
            "sudo sysctl vm.zone_reclaim_mode=0",
        )
    if tree.integer("/proc/sys/kernel/numa_balancing"):
        return warning(
            f"{len(nodes)} nodes, automatic balancing is on",
            "The kernel unmaps pages to find out which CPUs use them, and then moves the pages. This causes "
            "extra page faults in the database's shared memory at unpredictable times.",
            "sudo sysctl kernel.numa_balancing=0",
        )
    return note(
        f"{len(nodes)} nodes, no automatic balancing",
        "The speed of the database's cache depends on its NUMA node, so runs may differ after a restart.",
        "start the server with `numactl --interleave=all`",
    )


@probe("memory", "write-back")
def write_back(host: HostView) -> CheckResult | None:
    """How much dirty data the kernel collects before it blocks writers."""
    tree = host.tree
    total = tree.table("/proc/meminfo").get("MemAvailable")
    ratio, limit = tree.integer("/proc/sys/vm/dirty_ratio"), tree.integer("/proc/sys/vm/dirty_bytes")
    if total is None or ratio is None:
        return None
    most = limit or total * ratio // 100
    seen = f"up to {units.memory(most)}"
    if most <= _DIRTY_BYTES:
        return ok(seen)
    return note(
        seen,
        "A sync may have to wait for gigabytes of dirty pages, so checkpoints stall for seconds, and short "
        "trials end before their writes reach the device.",
        "sudo sysctl vm.dirty_background_bytes=268435456 vm.dirty_bytes=1073741824",
    )


@probe("memory", "shared memory")
def shared_memory(host: HostView) -> CheckResult | None:
    """Free space in /dev/shm, which a server uses to exchange rows between parallel workers."""
    mount = mount_of("/dev/shm", all_mounts(host.tree))
    if mount is None or mount.path != "/dev/shm":
        return None
    free = host.attempts.free_bytes(Path("/dev/shm"))
    if free is None:
        return None
    seen = f"{units.memory(free[0])} free in /dev/shm"
    if free[0] < _SHM_BYTES:
        return warning(
            seen,
            'When /dev/shm is full, parallel queries fail with "could not resize shared memory segment".',
            "sudo mount -o remount,size=4G /dev/shm (in a container: `docker run --shm-size=4g`)",
        )
    return ok(seen)
