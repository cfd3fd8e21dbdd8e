"""Copies of /proc and /sys that tests can bend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ironbench.machine.tree import Tree

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
        "29 27 7:0 / /mnt/loop rw - ext4 /dev/loop0 rw\n"
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


@pytest.fixture
def bare(tmp_path: Path) -> MakeTree:
    """A tree of just the given files."""
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
    """A well-kept two-socket database server of bare metal, with `changes` (None removes a file)."""

    def make(changes: Changes | None = None) -> Tree:
        return bare({**SERVER, **(changes or {})})

    return make
