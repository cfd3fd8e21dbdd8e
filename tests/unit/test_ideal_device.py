"""With a limit on memory, idealised files are on a zero-latency device, so that the server gets no more memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from ironbench.devices import arrange, capability
from ironbench.engines import ideal as memory
from ironbench.host import control_groups
from ironbench.lab import declare
from ironbench.lab.dry_run import notes
from ironbench.model.lab import Lab
from ironbench.model.system import Choice, Device, Layout, Partition, System
from ironbench.report.reproduce import run_command

GIB = 1 << 30


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine can limit memory and emulate devices."""
    monkeypatch.setattr(control_groups, "require", lambda wanted: None)
    monkeypatch.setattr(capability, "lacking", lambda: "")
    monkeypatch.setattr(memory, "available_bytes", lambda: 16 * GIB)


def lab(folder: Path, limits: str, ideal: str = '"none", "log"', more: str = "") -> Lab:
    file = folder / "lab.toml"
    file.write_text(
        'question = "Is WAL the bottleneck?"\n'
        f'[system]\nengine = "postgres"\n{more}'
        f'[layout]\ndata = "{folder}/d"\n{limits}'
        '[workload]\nname = "tpcb-like"\n[load]\nclients = 4\nduration = "5s"\n'
        f"[vary]\nideal = [{ideal}]\n"
    )
    return declare.lab(file)[0]


LIMITED = '[limits]\nmemory_total = "1GiB"\n'


def system(lab: Lab, level: str) -> System:
    (setup,) = [one for one in lab.setups if one.cell.name == f"ideal={level}"]
    assert not setup.skipped
    return setup.system


def test_the_limit_stays_and_the_files_are_on_a_zero_latency_device(tmp_path: Path) -> None:
    found = lab(tmp_path, LIMITED, '"none", "log", "temp"')
    usual = system(found, "none")
    for part in ("log", "temp"):
        one = system(found, part)
        (device,) = one.layout.devices
        assert device.model == "free" and one.on_zero_latency_device(part)
        assert one.memory_total_bytes == usual.memory_total_bytes == 1 << 30
        assert getattr(one.layout, part) == device.partitions[0].directory
        assert not memory.directories(one)
    assert not usual.layout.devices


def test_the_device_has_room_for_more_wal_than_its_soft_limit(tmp_path: Path) -> None:
    one = system(lab(tmp_path, LIMITED, more='[system.set]\nmax_wal_size = "4GB"\n'), "log")
    assert arrange.partition_bytes(one.layout.devices, "log") > 1.2 * 4 * GIB  # type: ignore[operator]


def test_without_a_limit_the_files_are_in_memory(tmp_path: Path) -> None:
    one = system(lab(tmp_path, ""), "log")
    assert not one.layout.devices and memory.directories(one) == (str(memory.root(str(tmp_path / "d"))),)


def test_if_devices_cannot_be_emulated_the_limit_is_raised_and_the_plan_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(notes._more_memory(lab(tmp_path, LIMITED).measurable))
    monkeypatch.setattr(capability, "lacking", lambda: "root")
    found = lab(tmp_path, LIMITED)
    one = system(found, "log")
    assert not one.layout.devices and one.memory_total_bytes == (1 << 30) + (1280 << 20)
    (told,) = notes._more_memory(found.measurable)
    assert told in notes._notes(found)
    assert told.startswith("ideal=log: the memory limit is 1.25\u202fGiB higher")
    assert told.endswith("need root")


def test_all_data_cached_has_no_limit_and_needs_no_device(tmp_path: Path) -> None:
    one = system(lab(tmp_path, LIMITED, '"none", "data"'), "data")
    assert one.memory_total_bytes is None and not one.layout.devices


def test_a_zero_latency_device_takes_the_place_of_another_device_of_the_same_files() -> None:
    both = Device("hdd-7200", (Partition("data", GIB, "/h/data"), Partition("log", GIB, "/h/log")))
    own = System("postgres", "x", ideal=("log",), layout=Layout("/h/data", log="/h/log", devices=(both,)))
    assert not own.on_zero_latency_device("log")
    found = arrange.zero_latency(own, {"log": GIB})
    assert found.layout.data == "/h/data" and found.on_zero_latency_device("log")
    assert [one.model for one in found.layout.devices] == ["hdd-7200", "free"]
    assert [part.role for one in found.layout.devices for part in one.partitions] == ["data", "log"]
    alone = replace(both, partitions=both.partitions[1:])
    found = arrange.zero_latency(replace(own, layout=Layout("/d", log="/h/log", devices=(alone,))), {"log": GIB})
    assert [one.model for one in found.layout.devices] == ["free"]


def test_the_command_to_repeat_a_trial_has_the_declared_limit_and_no_device(tmp_path: Path) -> None:
    one = system(lab(tmp_path, LIMITED), "log")
    words = run_command([record(one, choice=Choice("tpcb-like", {"scale": "1"}))])
    assert "--ideal log" in words and "--memory-total 1GiB" in words.replace("1024MiB", "1GiB")
    assert "--log" not in words and "free" not in words and "--capacity" not in words
