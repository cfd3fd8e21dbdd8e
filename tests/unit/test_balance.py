"""The balance sheet names a device by what it is, not by what its counters happen to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from factories import record

from ironbench.analyse.balance import balance
from ironbench.model.system import Device, Layout, Partition, System


def mount(path: str, source: str, number: str) -> dict[str, Any]:
    return {"path": path, "source": source, "kind": "ext4", "number": number, "options": []}


MACHINE: Mapping[str, Any] = {
    "cpu": {"cores": 1, "threads": 1},
    "blocks": [{"name": "vda", "number": "254:0"}, {"name": "nvme0n1", "number": "259:0"}],
    "mounts": [
        mount("/", "/dev/vda", "254:0"),
        mount("/fast", "/dev/nvme0n1p1", "259:1"),
        mount("/fast/log", "/dev/nvme0n1p2", "259:2"),
    ],
}


def used(layout: Layout, of_data: float, of_log: float, **shares: float) -> dict[str, float | None]:
    """Rows of operations by device; `shares`: how full the file system of a role is."""
    metrics = {"device_reads_per_s{role=data}": of_data, "device_reads_per_s{role=log}": of_log}
    metrics |= {f"capacity_used_share{{role={role}}}": share for role, share in shares.items()}
    sheet = balance([record(System("postgres", "a", layout=layout), metrics=metrics)], MACHINE)
    rows = {entry.name: entry.value for entry in sheet if "operations used" in entry.name}
    return {name.partition(" device")[0]: value for name, value in rows.items()}


def test_roles_on_one_device_are_one_row_though_their_counters_were_read_apart() -> None:
    assert used(Layout("/srv/d"), 3.0, 4.0) == {"data and log": 3.0}


def test_two_devices_are_two_rows_though_their_counters_are_alike() -> None:
    assert used(Layout("/srv/d", log="/fast/l"), 100.0, 101.0) == {"data": 100.0, "log": 101.0}


def test_partitions_of_a_disk_are_one_row_of_their_sum() -> None:
    assert used(Layout("/fast/d", log="/fast/log/l"), 100.0, 40.0) == {"data and log": 140.0}


def test_partitions_of_an_emulated_device_are_one_row_of_their_sum() -> None:
    parts = Partition("data", 1 << 30, "/tmp/x/data"), Partition("log", 1 << 30, "/tmp/x/log")
    layout = Layout("/tmp/x/data", log="/tmp/x/log", devices=(Device("hdd-15k", parts),))
    assert used(layout, 100.0, 40.0) == {"data and log": 140.0}


@pytest.mark.parametrize(("log_share", "rows"), [(0.3, {"data and log"}), (0.9, {"data", "log"})])
def test_a_mount_that_is_in_no_fingerprint_is_told_by_how_full_it_is(log_share: float, rows: set[str]) -> None:
    layout = Layout("/srv/d", log="/srv/loop")
    assert used(layout, 100.0, 140.0, data=0.3, log=log_share).keys() == rows
