"""Roles that share a device, sizes of partitions, and refusals before anything starts."""

from pathlib import Path

import pytest

from ironbench.devices import arrange, capability, expression, file_systems
from ironbench.devices.arrange import requested_devices
from ironbench.devices.mounting import Mounted
from ironbench.devices.recording import TraceWindow, finish, raw
from ironbench.errors import InputError
from ironbench.fields.sections import DeviceSection, LayoutSection
from ironbench.model.system import Device, Layout, Partition

MB = 1 << 20


@pytest.fixture(autouse=True)
def able(monkeypatch, tmp_path: Path) -> None:
    """Makes devices available to any user: nothing is mounted here."""
    monkeypatch.setattr(capability, "lacking", lambda root=Path("/"): "")
    monkeypatch.setattr(file_systems.shutil, "which", lambda name: f"/sbin/{name}")
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path))


def shared(**told: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.model, one.roles) for one in requested_devices({}, LayoutSection(**told), Path())]


def test_roles_that_name_the_same_device_share_it() -> None:
    assert shared(data="hdd-7200", log="hdd-7200") == [("hdd-7200", ("data", "log"))]
    assert shared(data="hdd-7200", log="free") == [("hdd-7200", ("data",)), ("free", ("log",))]


def test_the_same_device_written_in_another_way_is_the_same() -> None:
    assert len(shared(data="raid0(2,hdd-7200)", log="raid0( 2 , hdd-7200 )")) == 1


def test_directories_are_no_devices() -> None:
    assert shared(data="/somewhere", temp="./here", log="") == []


def test_a_device_rotates_where_a_disk_is_in_it() -> None:
    said = {model: expression.rotates(model) for model in ("raid0(8, hdd-10k)", "ssd-sata-2011", "free")}
    assert said == {"raid0(8, hdd-10k)": True, "ssd-sata-2011": False, "free": False}


def test_a_mistake_in_an_expression_is_told_with_the_option() -> None:
    with pytest.raises(InputError) as caught:
        shared(log="hdd-7201")
    assert caught.value.subject == "--log" and "hdd-7200" in caught.value.hint


def test_a_capacity_is_shared_out_among_the_partitions() -> None:
    (device,) = arrange.arranged((arrange.DeviceRequest("free", ("data", "log"), 1000 * MB),), 100 * MB)
    sizes = [partition.bytes for partition in device.partitions]
    assert 999 * MB < sum(sizes) <= 1000 * MB and all(size % arrange.PAGE == 0 for size in sizes)


def test_without_a_capacity_there_is_room_for_twice_the_data_log_and_spills() -> None:
    (device,) = arrange.arranged((arrange.DeviceRequest("free", ("data",)),), 500 * MB)
    assert device.partitions[0].bytes >= 2 * 500 * MB + arrange.LOG_BYTES + arrange.TEMP_BYTES


def test_partitions_smaller_than_their_file_system_are_refused() -> None:
    with pytest.raises(InputError, match="xfs needs"):
        arrange.arranged((arrange.DeviceRequest("free", ("data",), 200 * MB, "xfs"),), 0)


def test_devices_larger_than_memory_are_refused_unless_a_directory_holds_them(tmp_path: Path) -> None:
    huge = 1 << 45
    with pytest.raises(InputError, match="of memory, but only"):
        arrange.arranged((arrange.DeviceRequest("free", ("data",), huge),), 0)
    arrange.arranged((arrange.DeviceRequest("free", ("data",), huge, "ext4", str(tmp_path / "backing")),), 0)


def test_what_a_power_cut_takes_back_is_in_memory_too(tmp_path: Path) -> None:
    beside = arrange.DeviceRequest("free", ("data",), 1000 * MB, "ext4", str(tmp_path / "backing"))
    huge = 1 << 45
    arrange.arranged((beside,), huge)
    with pytest.raises(InputError, match="to undo writes after a power cut"):
        arrange.arranged((beside,), huge, cuttable=True)


def test_data_that_do_not_fit_on_their_partition_are_refused() -> None:
    with pytest.raises(InputError, match="the device's data partition"):
        arrange.require_room(100 * MB, 95 * MB)
    arrange.require_room(200 * MB, 95 * MB)


def test_a_layout_has_its_roles_on_the_devices_and_the_rest_where_it_was() -> None:
    devices = arrange.arranged((arrange.DeviceRequest("free", ("log",)),), 0)
    layout = arrange.with_devices(Layout(data="/d"), devices)
    assert (layout.data, layout.temp, layout.log) == ("/d", None, devices[0].partitions[0].directory)


def test_what_is_missing_for_devices_is_said_before_anything_starts(monkeypatch) -> None:
    monkeypatch.setattr(capability, "lacking", lambda root=Path("/"): "root, which this is not")
    with pytest.raises(InputError, match="emulated devices need root"):
        arrange.arranged((arrange.DeviceRequest("free", ("data",)),), 0)


@pytest.mark.parametrize(
    ("text", "right"), [("ext4", True), ("btrfs:compress=zstd", True), ("xfs:compress=zstd", False)]
)
def test_a_file_system_takes_its_own_options_only(text: str, right: bool) -> None:
    if right:
        assert file_systems.validated("--fs", text) == text
        return
    with pytest.raises(InputError):
        file_systems.validated("--fs", text)


def test_a_file_system_whose_program_is_absent_is_refused_with_its_package(monkeypatch) -> None:
    monkeypatch.setattr(file_systems.shutil, "which", lambda name: None)
    with pytest.raises(InputError) as caught:
        file_systems.validated("--fs", "xfs")
    assert "xfsprogs" in caught.value.hint


def test_devices_of_a_lab_are_told_apart_by_their_names(tmp_path: Path) -> None:
    named = {"a": "hdd-7200", "b": DeviceSection("hdd-7200", capacity="1GiB", fs="xfs")}
    found = requested_devices(named, LayoutSection(data="a", temp="a", log="b"), tmp_path)
    assert [(one.name, one.model, one.roles) for one in found] == [
        ("a", "hdd-7200", ("data", "temp")),
        ("b", "hdd-7200", ("log",)),
    ]
    assert (found[1].capacity_bytes, found[1].file_system) == (1 << 30, "xfs")


def test_a_layout_may_name_an_expression_without_declaring_it(tmp_path: Path) -> None:
    (found,) = requested_devices({}, LayoutSection(data="raid0(2, hdd-7200)"), tmp_path)
    assert found.model == "raid0(2, hdd-7200)"


def test_a_mount_point_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not a directory"):
        Mounted(Device("free", (Partition("data", MB, str(tmp_path / "file" / "d")),)))


def test_a_trace_is_sorted_by_arrival_and_names_its_operations(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "it's a trace.parquet"
    # time, offset, completed; length, op
    rows = [(20, 4096, 90, 512, 2), (10, 0, 30, 8192, 1)]
    raw(path).write_bytes(
        b"".join(
            b"".join(word.to_bytes(8, "little") for word in row[:3])
            + row[3].to_bytes(4, "little")
            + bytes([row[4], 0, 0, 0])
            for row in rows
        )
    )
    trials = (TraceWindow(15, 95),)
    partitions = (Partition("data", 4096, "/d"), Partition("log", 4096, "/l"))
    assert finish(path, Device("hdd-7200", partitions, "ext4", "ram"), trials) == 2
    assert not raw(path).exists()
    with duckdb.connect() as database:
        found = database.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
    assert found == [
        (10, "write", 0, 8192, 30, "data", 0, "hdd-7200", 8192),
        (20, "flush", 4096, 512, 90, "log", 1, "hdd-7200", 8192),
    ]
