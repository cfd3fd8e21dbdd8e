"""The doctor reports what affects results, the consequence and the fix, and what it could not check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ironbench.host.doctor import examine, probes, worst
from ironbench.host.host_view import HostView, OwnProcesses, watch_host
from ironbench.host.tree import Tree
from ironbench.model.diagnosis import Diagnosis, Severity

MakePatient = Callable[..., HostView]

CPU = "sys/devices/system/cpu"
LINK = "sys/devices/pci0000:00/0000:00:01.0"
DRIVE = f"{LINK}/nvme/nvme0/nvme0n1"
VIRTUAL = {"proc/cpuinfo": "processor: 0\nflags: fpu hypervisor\n"}


def on(options: str, kind: str = "ext4") -> dict[str, str]:
    """Returns the mount of /fast with other options."""
    return {"proc/self/mountinfo": f"31 27 259:0 / /fast {options} - {kind} /dev/nvme0n1 {options}\n"}


def stat(user: int, idle: int, steal: int = 0, running: int = 1) -> dict[str, str]:
    return {"proc/stat": f"cpu {user} 0 100 {idle} 0 0 0 {steal} 0 0\nprocs_running {running}\n"}


def about(name: str, host: HostView) -> list[Diagnosis]:
    return [diagnosis for diagnosis in examine(host) if diagnosis.name == name]


@pytest.mark.parametrize(
    ("name", "severity", "arrange"),
    [
        ("steal", "severe", {"later": stat(100, 10350, 50)}),
        ("steal", "warning", {"later": stat(100, 10390, 10)}),
        ("other programs", "severe", {"later": {"proc/77/stat": "77 (back up) S 1 1 1 0 -1 0 0 0 0 0 1200 0 0 0 0"}}),
        ("other programs", "warning", {"later": {"proc/77/stat": "77 (back up) S 1 1 1 0 -1 0 0 0 0 0 1030 0 0 0 0"}}),
        ("waiting programs", "warning", {"later": stat(100, 10400, 0, 9)}),
        ("swapping", "severe", {"later": {"proc/vmstat": "pswpin 5\npswpout 7\n"}}),
        ("swapping", "note", {"changes": {"proc/meminfo": "MemTotal: 90 kB\nSwapTotal: 9 kB\nSwapFree: 1 kB\n"}}),
        ("governor", "warning", {"changes": {f"{CPU}/cpu3/cpufreq/scaling_governor": "powersave\n"}}),
        ("energy preference", "warning", {"changes": {f"{CPU}/cpu0/cpufreq/energy_performance_preference": "power\n"}}),
        ("boost", "note", {"changes": {f"{CPU}/intel_pstate/no_turbo": "0\n"}}),
        ("heat", "warning", {"later": {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n"}}),
        ("heat", "note", {"changes": {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n"}}),
        ("idle states", "note", {"changes": {f"{CPU}/cpu0/cpuidle/state1/latency": "350\n"}}),
        ("threads per core", "note", {}),
        ("mitigations", "note", {}),
        ("container limits", "warning", {}),
        ("free memory", "warning", {"changes": {"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 50 kB\n"}}),
        ("swappiness", "note", {"changes": {"proc/sys/vm/swappiness": "60\n"}}),
        (
            "transparent huge pages",
            "warning",
            {"changes": {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}},
        ),
        ("overcommit", "note", {"changes": {"proc/sys/vm/overcommit_memory": "0\n"}}),
        ("NUMA", "warning", {"changes": {"proc/sys/vm/zone_reclaim_mode": "1\n"}}),
        ("NUMA", "warning", {"changes": {"proc/sys/kernel/numa_balancing": "1\n"}}),
        ("NUMA", "note", {}),
        ("write-back", "note", {"changes": {"proc/sys/vm/dirty_bytes": "0\n", "proc/sys/vm/dirty_ratio": "90\n"}}),
        ("shared memory", "warning", {"free": (64 << 20, 64 << 20)}),
        (
            "clock source",
            "severe",
            {"changes": {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}},
        ),
        ("wake-up", "severe", {"late_s": 0.02}),
        ("wake-up", "warning", {"late_s": 0.9e-3, "last_s": 2e-3}),
        ("file system", "note", {"directories": ("/mnt/my ram",)}),
        ("file system", "warning", {"directories": ("/mnt/nfs/db",)}),
        ("file system", "warning", {"changes": on("rw", "overlay")}),
        ("file system", "warning", {"changes": on("rw", "fuse.sshfs")}),
        ("file system", "note", {"changes": on("rw", "btrfs")}),
        ("mount options", "severe", {"changes": on("rw,noatime,nobarrier")}),
        ("mount options", "severe", {"changes": on("rw,noatime,sync")}),
        ("mount options", "severe", {"changes": on("ro,noatime")}),
        ("mount options", "warning", {"changes": on("rw")}),
        ("mount options", "warning", {"changes": on("rw,noatime,data=journal")}),
        ("mount options", "note", {"changes": on("rw,noatime,discard")}),
        ("free space", "severe", {"free": (100 << 20, 100 << 30)}),
        ("free space", "warning", {"free": (9 << 30, 100 << 30)}),
        ("I/O scheduler", "warning", {"changes": {f"{DRIVE}/queue/scheduler": "none [bfq]\n"}}),
        ("I/O scheduler", "note", {"changes": {f"{DRIVE}/queue/scheduler": "none [mq-deadline]\n"}}),
        (
            "I/O scheduler",
            "note",
            {"changes": {"sys/block/sda/queue/scheduler": "[none] bfq\n"}, "directories": ("/srv",)},
        ),
        ("write cache", "note", {"changes": {f"{DRIVE}/queue/write_cache": "write through\n"}}),
        ("write cache", "note", {"changes": {f"{DRIVE}/queue/write_cache": "write through\n", **VIRTUAL}}),
        ("sync time", "warning", {"sync_s": 0.2}),
        ("sync time", "warning", {"directories": ("/srv",)}),
        ("sync time", "note", {"directories": ("/srv",), "changes": VIRTUAL}),
        ("battery", "severe", {"changes": {"sys/class/power_supply/AC/online": "0\n"}}),
        ("PCIe link", "severe", {"changes": {f"{LINK}/current_link_width": "2\n"}}),
        ("PCIe link", "warning", {"changes": {f"{LINK}/current_link_width": "3\n"}}),
        ("PCIe power saving", "warning", {"changes": {"sys/module/pcie_aspm/parameters/policy": "[powersave]\n"}}),
        (
            "SATA link power saving",
            "warning",
            {"changes": {"sys/class/scsi_host/host0/link_power_management_policy": "min_power\n"}},
        ),
        (
            "NVMe power states",
            "note",
            {"changes": {"sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us": "100000\n"}},
        ),
        ("device power saving", "note", {"changes": {f"{DRIVE}/device/power/control": "auto\n"}}),
        ("io_uring", "note", {"refused": {"io_uring": "Operation not permitted"}}),
        ("FUSE", "note", {"refused": {"FUSE": "No such file or directory"}}),
        ("loop devices", "note", {"refused": {"loop devices": "Permission denied"}}),
        ("control groups", "note", {"refused": {"control groups": "Read-only file system"}}),
        ("user namespaces", "note", {"refused": {"user namespaces": "Operation not permitted"}}),
        ("profiles", "note", {"refused": {"profiles": "Operation not permitted"}}),
        ("core build", "severe", {"build": "debug"}),
        ("open files", "warning", {"changes": {"proc/self/limits": "Max open files   1024   1024   files\n"}}),
        ("open files", "note", {"changes": {"proc/self/limits": "Max open files   1024   8192   files\n"}}),
    ],
)
def test_what_spoils_numbers_is_found(name: str, severity: str, arrange: dict[str, Any], host: MakePatient) -> None:
    found = about(name, host(**arrange))
    assert severity in [one.severity for one in found], found
    for one in found:
        if one.severity != "ok":
            assert one.seen and one.meaning.endswith("."), one
        if one.severity in ("warning", "severe"):
            assert one.remedy, one


def test_an_emulated_device_that_has_nothing_to_flush_is_not_reproached_with_that(host: MakePatient) -> None:
    loop = {"sys/dev/block/259:0/loop/backing_file": "/own/files/data\n"}
    changes = {**on("rw,noatime,nobarrier"), **loop}
    assert [one.severity for one in about("mount options", host(changes=changes))] == ["severe"]
    changes["own/files/counters"] = "{}"
    assert [one.severity for one in about("mount options", host(changes=changes))] == ["note"]


def test_a_logical_volume_is_looked_through_down_to_the_drive_under_its_partition(host: MakePatient) -> None:
    volume = {
        "proc/self/mountinfo": "31 27 253:1 / /fast rw,noatime - ext4 /dev/mapper/vg-db rw\n",
        "sys/block/dm-1/dev": "253:1\n",
        "sys/block/dm-1/dm/name": "vg-db\n",
        "sys/block/dm-1/slaves/dm-0/dev": "253:0\n",
        "sys/block/dm-0/dev": "253:0\n",
        "sys/block/dm-0/dm/uuid": "CRYPT-LUKS2-1\n",
        "sys/block/dm-0/slaves/sda1/dev": "8:1\n",
        "sys/block/sda/queue/scheduler": "none mq-deadline [bfq]\n",
    }
    found = host(changes=volume)
    assert [block.name for block in found.blocks] == ["dm-1", "dm-0", "sda"]
    assert [one.seen for one in about("I/O scheduler", found)] == ["sda: bfq"]
    assert [one.severity for one in about("encryption", found)] == ["note"]


def test_control_groups_are_tried_where_those_of_engines_are_made(host: MakePatient) -> None:
    """Control groups of engines are made in ironbench's own group, which `systemd-run --user --scope -p Delegate=yes`
    delegates to an ordinary user."""
    given = host(changes={"sys/fs/cgroup/db.slice/bench/cgroup.controllers": "cpu memory\n"})
    assert [one.seen for one in about("control groups", given)] == [
        "v2, cpu memory: groups can be created in /sys/fs/cgroup/db.slice/bench"
    ]
    outside = host(changes={"proc/self/cgroup": "0::/docker/77\n"})
    (found,) = about("control groups", outside)
    assert found.seen.endswith("groups can be created in /sys/fs/cgroup")


def test_a_well_kept_server_has_no_warnings_but_its_container_limit(host: MakePatient) -> None:
    spoiling = [one for one in examine(host()) if one.severity.rank >= Severity.WARNING.rank]
    assert [one.name for one in spoiling] == ["container limits"]


def test_every_probe_sees_something_on_a_server(host: MakePatient) -> None:
    assert [one.name for one in examine(host()) if not one.visible] == []


def test_a_machine_that_shows_nothing_is_examined_without_stumbling(tmp_path: Path, host: MakePatient) -> None:
    attempts = host(free=None, sync_s=0.0).attempts
    found = examine(watch_host(Tree(tmp_path), (Path("/db"),), attempts, OwnProcesses(None), sleep=lambda _: None))
    assert {one.name for one in found} == {one.name for one in probes()}
    for one in found:
        if not one.visible:
            assert one.seen.startswith("not visible here")


def test_a_probe_that_stumbles_sees_nothing_and_says_why(host: MakePatient) -> None:
    strange = host({"proc/self/limits": "Max open files   some   many   files\n"})
    (found,) = about("open files", strange)
    assert not found.visible and "not visible here" in found.seen and "many" in found.seen


def test_a_virtual_machine_is_told_where_to_look(host: MakePatient) -> None:
    hidden = dict.fromkeys(f"{CPU}/cpu{n}/cpufreq/scaling_governor" for n in range(4))
    (found,) = about("governor", host({**VIRTUAL, **hidden}))
    assert not found.visible and "virtual machine" in found.seen


def test_the_programs_that_disturb_are_named(host: MakePatient) -> None:
    later = {"proc/77/stat": "77 (back up) S 1 1 1 0 -1 0 0 0 0 0 1200 0 0 0 0"}
    (found,) = about("other programs", host(later=later))
    assert "back up (77)" in found.seen


def test_worst_of_nothing_is_ok() -> None:
    assert worst([]) is Severity.OK


def test_every_probe_is_in_the_guide() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "doctor.md").read_text()
    for one in probes():
        assert f"*{one.name}*" in " ".join(text.split()), f"{one.name} is not in the guide"
