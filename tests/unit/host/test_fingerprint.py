"""The fingerprint describes a machine's hardware and distinguishes machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ironbench.host.cgroup_limits import memory_left
from ironbench.host.fingerprint import content_key, fingerprint
from ironbench.host.mounts import all_mounts, device_number, mount_of
from ironbench.host.tree import Tree
from ironbench.model.machine import Cache, Limits
from ironbench.records import Store

MakeTree = Callable[..., Tree]


def test_processor_memory_and_nodes_are_read(server: MakeTree) -> None:
    machine = fingerprint(server().root)
    assert (machine.cpu.sockets, machine.cpu.cores, machine.cpu.threads) == (2, 2, 4)
    assert machine.cpu.model == "Example Xeon 5570"
    assert (machine.cpu.min_hz, machine.cpu.max_hz) == (1_600_000_000, 2_930_000_000)
    assert (machine.cpu.governor, machine.cpu.boost, machine.cpu.smt) == ("performance", False, True)
    assert machine.cpu.caches == (Cache(1, "Data", 32768),)
    assert machine.cpu.mitigations == ("meltdown",)
    assert (machine.memory_bytes, machine.swap_bytes, machine.numa_nodes) == (16_000_000 * 1024, 1_024_000, 2)
    assert (machine.kernel, machine.os) == ("6.12.0", "Debian GNU/Linux 12")
    assert (machine.clock_source, machine.transparent_huge_pages) == ("tsc", "madvise")


@pytest.mark.parametrize(
    ("arch", "model"), [("aarch64\n", "aarch64"), (None, "ARM (implementer 0x41, part 0xd0c)"), ("", "unknown")]
)
def test_a_processor_without_a_name_is_never_called_after_ours(
    arch: str | None, model: str, server: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    nameless = "processor\t: 0\n" + ("" if arch == "" else "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
    machine = fingerprint(server({"proc/cpuinfo": nameless, "proc/sys/kernel/arch": arch or None}).root)
    assert machine.cpu.model == model


def test_devices_are_those_that_last(server: MakeTree) -> None:
    machine = fingerprint(server().root)
    assert [block.name for block in machine.blocks] == ["nvme0n1", "sda"]
    disk = machine.blocks[1]
    assert (disk.size_bytes, disk.model, disk.firmware) == (1 << 30, "FASTDISK 15K", "0001")
    assert (disk.rotational, disk.scheduler, disk.write_cache) == (True, "mq-deadline", "write back")


def test_mounts_are_those_that_could_hold_a_database(server: MakeTree) -> None:
    assert [mount.path for mount in fingerprint(server().root).mounts] == [
        "/",
        "/dev/shm",
        "/fast",
        "/mnt/my ram",
        "/mnt/nfs",
    ]


def test_what_programs_mount_for_a_while_does_not_make_another_machine(server: MakeTree) -> None:
    own = (server().root / "proc/self/mountinfo").read_text()
    passing = "".join(
        f"9{n} 22 0:4{n} / {path} rw - tmpfs tmpfs rw,size=10240k\n"
        for n, path in enumerate(("/dev/shm/job/small", "/tmp/job", "/var/tmp/job/x"))
    )
    busy = server({"proc/self/mountinfo": own + passing})
    assert content_key(fingerprint(busy.root)) == content_key(fingerprint(server().root))


def test_the_tightest_limit_on_the_way_up_counts(server: MakeTree) -> None:
    assert fingerprint(server().root).limits == Limits("v2", 8_000_000_000, 1.5, "0-2")


def test_limits_of_version_1_are_read_and_its_unlimited_is_none(server: MakeTree) -> None:
    tree = server(
        {
            "proc/self/mountinfo": (
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            ),
            "proc/self/cgroup": "4:memory:/a\n1:cpu,cpuacct:/a\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
        },
    )
    assert fingerprint(tree.root).limits == Limits("v1", None, 0.5, "0-2")


def test_what_is_left_of_a_groups_memory_counts_cached_files_as_free(server: MakeTree) -> None:
    used = {
        "sys/fs/cgroup/db.slice/memory.current": "6000000000\n",
        "sys/fs/cgroup/db.slice/memory.stat": "anon 5000000000\nactive_file 200000000\ninactive_file 300000000\n",
    }
    assert memory_left(server(used)) == 8_000_000_000 - 5_500_000_000
    assert memory_left(server({"sys/fs/cgroup/db.slice/memory.max": "max\n"})) is None


def test_what_is_left_of_a_groups_memory_is_read_from_version_1(server: MakeTree) -> None:
    tree = server(
        {
            "proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            "proc/self/cgroup": "4:memory:/a\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000000000\n",
            "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "800000000\n",
            "sys/fs/cgroup/memory/a/memory.stat": "cache 1\ntotal_active_file 0\ntotal_inactive_file 100000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
        },
    )
    assert memory_left(tree) == 300_000_000


def _named(vendor: str, product: str) -> dict[str, str | None]:
    """Returns a machine identified by its firmware; its processor has no hypervisor flag, as on ARM."""
    return {"sys/class/dmi/id/sys_vendor": f"{vendor}\n", "sys/class/dmi/id/product_name": f"{product}\n"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "none"),
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU Server 3000"),
        (_named("Amazon EC2", "m7g.large"), "Amazon EC2 m7g.large"),
        (_named("Amazon EC2", "m7i.metal-24xl"), "none"),
        (_named("Hetzner", "vServer"), "Hetzner vServer"),
        (
            {
                "proc/cpuinfo": "processor: 0\nflags: fpu hypervisor\n",
                "sys/class/dmi/id/sys_vendor": None,
                "sys/class/dmi/id/product_name": None,
            },
            "unnamed hypervisor",
        ),
    ],
)
def test_a_virtual_machine_is_recognised(server: MakeTree, changes: dict[str, str | None], expected: str) -> None:
    assert fingerprint(server(changes).root).virtualisation == expected


def test_a_container_is_recognised(server: MakeTree) -> None:
    assert fingerprint(server({".dockerenv": ""}).root).container == "docker"


def test_an_empty_root_gives_a_fingerprint_and_no_error(bare: MakeTree) -> None:
    machine = fingerprint(bare().root)
    assert (machine.cpu.governor, machine.memory_bytes, machine.limits.cgroup) == (None, 0, "none")


def test_the_key_changes_with_the_machine_but_not_with_its_name(server: MakeTree) -> None:
    key = content_key(fingerprint(server().root))
    renamed = content_key(fingerprint(server({"proc/sys/kernel/hostname": "db2\n"}).root))
    grown = content_key(fingerprint(server({"proc/meminfo": "MemTotal: 32000000 kB\n"}).root))
    assert key == renamed
    assert key != grown


def test_the_deepest_and_latest_mount_holds_a_directory(server: MakeTree) -> None:
    mounts = all_mounts(server())
    assert getattr(mount_of("/mnt/my ram/wal", mounts), "number", None) == "0:40"
    assert getattr(mount_of("/mnt/my", mounts), "number", None) == "8:1"


def test_a_btrfs_mount_is_led_to_its_device_by_its_source(bare: MakeTree) -> None:
    tree = bare(
        {
            "proc/self/mountinfo": "27 1 0:33 / / rw - btrfs /dev/sdb1 rw\n",
            "sys/class/block/sdb1/dev": "8:17\n",
        },
    )
    assert device_number(all_mounts(tree)[0], tree) == "8:17"


def test_this_machine_has_a_fingerprint() -> None:
    machine = fingerprint()
    assert machine.cpu.threads >= machine.cpu.cores >= 1
    assert machine.memory_bytes > 1 << 28
    assert mount_of("/", all_mounts(Tree())) is not None


def test_the_key_is_the_one_records_refer_to(server: MakeTree, tmp_path: Path) -> None:
    machine = fingerprint(server().root)
    assert Store(tmp_path / "results").keep_shared("machines", msgspec.to_builtins(machine)) == content_key(machine)
