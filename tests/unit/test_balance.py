"""Sizing ratios identify a device by its properties, not by its counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from factories import Shelf, record

from ironbench.model.system import Device, Layout, Partition, System
from ironbench.report.sections.differences import balance as sheet
from ironbench.study.balance import SizingRatio, balance
from ironbench.study.runstudy import studies

VDA = "vda, 256\u202fGiB"


def mount(path: str, source: str, number: str) -> dict[str, Any]:
    return {"path": path, "source": source, "kind": "ext4", "number": number, "options": []}


MACHINE: Mapping[str, Any] = {
    "cpu": {"cores": 1, "threads": 1},
    "blocks": [
        {"name": "vda", "number": "254:0", "model": None, "size_bytes": 256 << 30},
        {"name": "nvme0n1", "number": "259:0", "model": "SSD 9", "size_bytes": 1 << 40},
    ],
    "mounts": [
        mount("/", "/dev/vda", "254:0"),
        mount("/fast", "/dev/nvme0n1p1", "259:1"),
        mount("/fast/log", "/dev/nvme0n1p2", "259:2"),
    ],
}


def used(
    layout: Layout, of_data: float, of_log: float, machine: Mapping[str, Any] = MACHINE, **shares: float
) -> dict[str, float | None]:
    """Returns the rows of operations by device. `shares`: used share of each role's file system."""
    metrics = {"device_reads_per_s{role=data}": of_data, "device_reads_per_s{role=log}": of_log}
    metrics |= {f"capacity_used_share{{role={role}}}": share for role, share in shares.items()}
    entries = balance([record(System("postgres", "a", layout=layout), metrics=metrics)], machine)
    return {_device(entry): entry.value for entry in entries if entry.name.code == "balance-operations"}


def _device(entry: SizingRatio) -> str:
    """`vda, 256 GiB data and log`, or only the roles of an otherwise unknown device."""
    roles = entry.note.values["roles"] if entry.note else entry.name.values["roles"]
    return " ".join((entry.name.values.get("device", "?"), *roles))


def test_roles_on_one_device_are_one_row_though_their_counters_were_read_apart() -> None:
    assert used(Layout("/srv/d"), 3.0, 4.0) == {f"{VDA} data log": 3.0}


def test_two_devices_are_two_rows_though_their_counters_are_alike() -> None:
    assert used(Layout("/srv/d", log="/fast/l"), 100.0, 101.0) == {
        f"{VDA} data": 100.0,
        "nvme0n1, SSD 9 log": 101.0,
    }


def test_partitions_of_a_disk_are_one_row_of_their_sum() -> None:
    assert used(Layout("/fast/d", log="/fast/log/l"), 100.0, 40.0) == {"nvme0n1, SSD 9 data log": 140.0}


def test_partitions_of_an_emulated_device_are_one_row_of_their_sum() -> None:
    parts = Partition("data", 1 << 30, "/tmp/x/data"), Partition("log", 1 << 30, "/tmp/x/log")
    layout = Layout("/tmp/x/data", log="/tmp/x/log", devices=(Device("hdd-7200", parts),))
    assert used(layout, 100.0, 40.0) == {"emulated hdd-7200 data log": 140.0}


def test_a_disk_whose_name_begins_with_that_of_another_is_no_partition_of_it() -> None:
    blocks = [{"name": name, "number": f"9:{name[2:]}", "size_bytes": 1 << 40} for name in ("md1", "md12")]
    mounts = [mount("/data", "/dev/md12", "9:12"), mount("/log", "/dev/md1p2", "259:2")]
    assert used(
        Layout("/data/d", log="/log/l"), 100.0, 40.0, machine={**MACHINE, "blocks": blocks, "mounts": mounts}
    ) == {
        "md12, 1.00\u202fTiB data": 100.0,
        "md1, 1.00\u202fTiB log": 40.0,
    }


@pytest.mark.parametrize(("log_share", "rows"), [(0.3, {f"{VDA} data log"}), (0.9, {"? data", "? log"})])
def test_a_mount_that_is_in_no_fingerprint_is_told_by_how_full_it_is(log_share: float, rows: set[str]) -> None:
    layout = Layout("/srv/d", log="/srv/loop")
    assert used(layout, 100.0, 140.0, data=0.3, log=log_share).keys() == rows


def test_devices_of_two_emulated_drives_of_one_model_are_two() -> None:
    drives = (Device("hdd-7200", (Partition(role, 1 << 30, f"/tmp/x/{role}"),)) for role in ("data", "log"))
    layout = Layout("/tmp/x/data", log="/tmp/x/log", devices=tuple(drives))
    rows = {"emulated hdd-7200, number 1 data": 100.0, "emulated hdd-7200, number 2 log": 40.0}
    assert used(layout, 100.0, 40.0) == rows


@pytest.mark.parametrize(("other", "rows"), [("m1", 1), ("m2", 2)])
def test_sides_share_a_row_for_one_device_and_have_one_each_for_two_machines(other: str, rows: int) -> None:
    """The WAL of the second system is elsewhere, so that its device has other roles."""
    metrics = {f"device_reads_per_s{{role={role}}}": 10.0 for role in ("data", "log")}
    first = record(System("postgres", "a", layout=Layout("/srv/d")), metrics=metrics, machine="m1")
    second = record(System("postgres", "b", layout=Layout("/srv/d", log="/fast/l")), metrics=metrics, machine=other)
    shelf = Shelf([first, second], machines={"m1": MACHINE, "m2": MACHINE})
    (study,) = studies([first, second], shelf, {})
    found = [row for row in sheet(study).texts if row[0].startswith(f"{VDA}: IOPS")]
    assert len(found) == rows
    if rows == 1:
        assert found[0][1:] == ("10.0/s (data and WAL)", "10.0/s (data)")
