"""Copies of /proc and /sys that tests can modify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ironbench.host.host_view import HostView, OwnProcesses, watch_host
from ironbench.host.profiling import Restriction
from ironbench.host.tree import Tree

_CPU = "sys/devices/system/cpu"

SERVER = {
    "proc/cpuinfo": "\n".join(
        f"processor\t: {n}\nmodel name\t: Example Xeon 5570\nmicrocode\t: 0x1d\nflags\t\t: fpu tsc nonstop_tsc\n"
        for n in range(4)
    ),
    "proc/meminfo": "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\nSwapTotal: 1000 kB\nSwapFree: 1000 kB\n",
    "proc/sys/kernel/osrelease": "6.12.0\n",
    "proc/sys/kernel/hostname": "db1\n",
    "proc/sys/vm/swappiness": "1\n",
    "proc/sys/vm/overcommit_memory": "2\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "1073741824\n",
    "proc/sys/vm/zone_reclaim_mode": "0\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/stat": "cpu 100 0 100 10000 0 0 0 0 0 0\nprocs_running 1\n",
    "proc/vmstat": "pswpin 0\npswpout 0\n",
    "proc/self/limits": "Max open files            1024                 524288               files     \n",
    "proc/77/stat": "77 (back up) S 1 77 77 0 -1 0 0 0 0 0 1000 0 0 0 20 0 1 0 0\n",
    "sys/module/pcie_aspm/parameters/policy": "default [performance] powersave powersupersave\n",
    "sys/class/scsi_host/host0/link_power_management_policy": "max_performance\n",
    "sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us": "0\n",
    "sys/class/power_supply/AC/type": "Mains\n",
    "sys/class/power_supply/AC/online": "1\n",
    f"{_CPU}/cpu0/cpufreq/energy_performance_preference": "performance\n",
    f"{_CPU}/cpu0/thermal_throttle/core_throttle_count": "0\n",
    f"{_CPU}/cpu0/cpuidle/state1/name": "C1\n",
    f"{_CPU}/cpu0/cpuidle/state1/latency": "2\n",
    "sys/devices/pci0000:00/0000:00:01.0/current_link_speed": "8.0 GT/s PCIe\n",
    "sys/devices/pci0000:00/0000:00:01.0/max_link_speed": "8.0 GT/s PCIe\n",
    "sys/devices/pci0000:00/0000:00:01.0/current_link_width": "4\n",
    "sys/devices/pci0000:00/0000:00:01.0/max_link_width": "4\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/dev": "259:0\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/size": "2097152\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/queue/rotational": "0\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/queue/scheduler": "[none] mq-deadline\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/queue/write_cache": "write back\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/device/model": "FAST SSD\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/device/firmware_rev": "1.0\n",
    "sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1/device/power/control": "on\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n',
    f"{_CPU}/cpu0/cpufreq/cpuinfo_min_freq": "1600000\n",
    f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq": "2930000\n",
    f"{_CPU}/cpu0/cache/index0/level": "1\n",
    f"{_CPU}/cpu0/cache/index0/type": "Data\n",
    f"{_CPU}/cpu0/cache/index0/size": "32K\n",
    f"{_CPU}/intel_pstate/no_turbo": "1\n",
    f"{_CPU}/smt/active": "1\n",
    f"{_CPU}/vulnerabilities/meltdown": "Mitigation: PTI\n",
    f"{_CPU}/vulnerabilities/l1tf": "Not affected\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/cpulist": "2-3\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/class/dmi/id/sys_vendor": "Example Corp\n",
    "sys/class/dmi/id/product_name": "Server 3000\n",
    "sys/block/sda/dev": "8:0\n",
    "sys/block/sda/size": "2097152\n",
    "sys/block/sda/device/model": "FASTDISK 15K   \n",
    "sys/block/sda/device/rev": "0001\n",
    "sys/block/sda/queue/rotational": "1\n",
    "sys/block/sda/queue/scheduler": "none [mq-deadline] bfq\n",
    "sys/block/sda/queue/write_cache": "write back\n",
    "sys/block/sda/sda1/dev": "8:1\n",
    "sys/block/loop0/dev": "7:0\n",
    "sys/block/loop0/size": "100\n",
    "proc/self/mountinfo": (
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "27 1 8:1 / / rw,noatime - ext4 /dev/sda1 rw\n"
        "28 27 0:40 / /mnt/my\\040ram rw - tmpfs ram rw,size=1000k\n"
        "31 27 259:0 / /fast rw,noatime - xfs /dev/nvme0n1 rw\n"
        "32 27 0:50 / /dev/shm rw - tmpfs shm rw\n"
        "33 27 0:51 / /mnt/nfs rw,relatime - nfs4 filer:/db rw\n"
        "29 27 7:0 / /mnt/loop rw - ext4 /dev/loop0 rw\n"
        "34 27 0:51 / /mnt/image rw - btrfs /dev/loop1 rw,compress=zstd:3\n"
        "30 27 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    ),
    "proc/self/cgroup": "0::/db.slice/bench\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-2\n",
    "sys/fs/cgroup/db.slice/bench/memory.max": "max\n",
    "sys/fs/cgroup/db.slice/memory.max": "8000000000\n",
    "sys/fs/cgroup/db.slice/cpu.max": "150000 100000\n",
}
for _n in range(4):
    SERVER[f"{_CPU}/cpu{_n}/topology/physical_package_id"] = f"{_n // 2}\n"
    SERVER[f"{_CPU}/cpu{_n}/topology/core_id"] = f"{_n // 2}\n"
    SERVER[f"{_CPU}/cpu{_n}/cpufreq/scaling_governor"] = "performance\n"


Changes = dict[str, str | None]
MakeTree = Callable[..., Tree]
MakePatient = Callable[..., HostView]


@dataclass
class FakeAttempts:
    """Everything works on a fast drive with enough space, unless specified otherwise."""

    refused: dict[str, str] = field(default_factory=dict)
    late_s: float = 30e-6
    last_s: float | None = None
    """Delay of the last ten wake-ups in seconds; None: the same as `late_s`."""
    sync_s: float = 100e-6
    free: tuple[int, int] | None = (100 << 30, 200 << 30)

    def io_uring(self) -> str | None:
        return self.refused.get("io_uring")

    def fuse(self) -> str | None:
        return self.refused.get("FUSE")

    def loop_device(self) -> str | None:
        return self.refused.get("loop devices")

    def user_namespace(self) -> str | None:
        return self.refused.get("user namespaces")

    def profiles(self, kind: str) -> list[Restriction]:
        return [Restriction("no-perf-events", self.refused["profiles"], "")] if "profiles" in self.refused else []

    def cgroup(self, directory: Path) -> str | None:
        return self.refused.get("control groups")

    def wake_ups(self) -> list[float]:
        return [self.late_s] * 190 + [self.last_s or self.late_s] * 10

    def syncs(self, directory: Path) -> list[float]:
        return [self.sync_s] * 20 if self.sync_s else []

    def free_bytes(self, directory: Path) -> tuple[int, int] | None:
        return self.free


@pytest.fixture
def bare(tmp_path: Path) -> MakeTree:
    """Makes a tree with only the given files."""
    count = iter(range(100))

    def make(files: Changes | None = None) -> Tree:
        root = tmp_path / f"machine{next(count)}"
        root.mkdir()
        for name, text in (files or {}).items():
            if text is not None:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return Tree(root)

    return make


@pytest.fixture
def server(bare: MakeTree) -> MakeTree:
    """A well-maintained bare-metal database server with two sockets, with `changes` (None removes a file)."""

    def make(changes: Changes | None = None) -> Tree:
        tree = bare({**SERVER, **(changes or {})})
        # As in the kernel: /sys/block contains links into the tree of buses.
        drive = tree.path("/sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/nvme0n1")
        tree.path("/sys/block/nvme0n1").symlink_to(drive)
        return tree

    return make


@pytest.fixture
def host(server: MakeTree) -> MakePatient:
    """Watches the machine that `server` makes. `changes` apply before and `later` during the watch."""

    def make(
        changes: Changes | None = None,
        later: dict[str, str] | None = None,
        directories: tuple[str, ...] = ("/fast/db",),
        build: str | None = "release",
        **attempts: Any,
    ) -> HostView:
        tree = server(changes)

        def pass_time(_: float) -> None:
            idle = {"proc/stat": "cpu 100 0 100 10400 0 0 0 0 0 0\nprocs_running 1\n"}
            for name, text in {**idle, **(later or {})}.items():
                tree.path(name).write_text(text)

        places = tuple(Path(name) for name in directories)
        return watch_host(tree, places, FakeAttempts(**attempts), OwnProcesses(build), sleep=pass_time)

    return make
