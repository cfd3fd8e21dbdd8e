"""The power is cut right after a record was stored, on a file system that loses unsynced data."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from emulated import needs_devices
from factories import DISK, arrive, evidence, record

from ironbench.devices import arrange
from ironbench.devices.mounting import Mounted
from ironbench.host import durable
from ironbench.host.fingerprint import fingerprint
from ironbench.model.system import Device, Partition
from ironbench.records import Store
from ironbench.records.export import export

pytestmark = [pytest.mark.live, needs_devices]


@pytest.fixture
def disk(own_register: Path, tmp_path: Path) -> Iterator[Mounted]:
    """A device whose power can be cut; its ext4 delays writes and syncs only on request (ext4(5))."""
    device = Device("hdd-7200", (Partition("data", 1 << 30, str(tmp_path / "disk")),), "ext4", arrange.RAM)
    mounted = Mounted(device, 1, cuttable=True)
    try:
        subprocess.run(["mount", "-o", "remount,noauto_da_alloc,commit=300", tmp_path / "disk"], check=True)
        yield mounted
    finally:
        mounted.stop()


def kept(directory: Path, count: int = 3) -> list[str]:
    """Stores trials with all their files and their machine; returns their ids."""
    store = Store(directory)
    machine = store.keep_shared("machines", msgspec.to_builtins(fingerprint()))
    trials = [replace(record(DISK, block=number), machine=machine) for number in range(count)]
    return [store.keep(one, **evidence()).id for one in trials]


def damaged(directory: Path) -> list[str]:
    """Lists what is wrong with the existing records."""
    store = Store(directory)
    found = [f"{one.id}: {why}" for one in store.all() if (why := store.damage(one.id))]
    return found + [f"{one.id}: no machine" for one in store.all() if not store.machine(one.machine)]


def power_cut(disk: Mounted) -> None:
    disk.cut("lose", 1)
    disk.restore_power()


def test_a_record_that_was_kept_survives_a_power_cut_with_all_its_files(disk: Mounted, tmp_path: Path) -> None:
    results = tmp_path / "disk" / "results"
    ids = kept(results)
    power_cut(disk)
    assert [one.id for one in Store(results).all()] == ids
    assert damaged(results) == []


def test_without_syncing_the_loss_is_found(disk: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above can fail: the journal is written, but the files' data are not."""
    results = tmp_path / "disk" / "results"
    monkeypatch.setattr(durable, "sync_tree", lambda folder: None)
    ids = kept(results)
    power_cut(disk)
    assert [one.id for one in Store(results).all()] != ids or damaged(results)


def test_what_was_imported_survives_a_power_cut(disk: Mounted, tmp_path: Path) -> None:
    ids = kept(tmp_path / "here")
    here = Store(tmp_path / "here")
    export(here, here.all(), tmp_path / "a.ibr")
    arrive(tmp_path / "a.ibr", tmp_path / "disk" / "results")
    power_cut(disk)
    assert [one.id for one in Store(tmp_path / "disk" / "results").all()] == ids
    assert damaged(tmp_path / "disk" / "results") == []
