"""`device unmount` finds what `device mount` mounted, and nothing else; a trace overwrites nothing."""

import json
from pathlib import Path

import pytest

from ironbench.cli.device_mount import _mounted_device, traced
from ironbench.devices.mounting import ORDER
from ironbench.errors import InputError
from ironbench.host import register

STRIPED = "raid0(4, ssd-sata-2011)"


@pytest.fixture(autouse=True)
def mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two devices of one model, one mounted by hand and one for a trial, and an array mounted by hand."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name, model, by_hand in (("mine", "hdd-7200", True), ("trial", "hdd-7200", False), ("array", STRIPED, True)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / ORDER).write_text(json.dumps({"spec": {"model": model}, "by_hand": by_hand}))
        register.new(register.DEVICE, f"/mnt/{name}", (str(folder),))


def test_the_device_of_a_running_trial_is_not_unmounted_by_its_model() -> None:
    assert _mounted_device("hdd-7200").data == "/mnt/mine"


def test_the_device_of_a_running_trial_is_not_unmounted_by_its_place() -> None:
    with pytest.raises(InputError) as caught:
        _mounted_device("/mnt/trial")
    assert "/mnt/mine (hdd-7200)" in caught.value.hint and "trial" not in caught.value.hint


@pytest.mark.parametrize("written", ["raid0(4,ssd-sata-2011)", " raid0( 4 , ssd-sata-2011 )", STRIPED])
def test_a_model_is_meant_however_it_is_written(written: str) -> None:
    assert _mounted_device(written).data == "/mnt/array"


def test_of_several_of_one_model_none_is_unmounted(tmp_path: Path) -> None:
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / ORDER).write_text(json.dumps({"spec": {"model": "hdd-7200"}, "by_hand": True}))
    register.new(register.DEVICE, "/mnt/second", (str(folder),))
    with pytest.raises(InputError) as caught:
        _mounted_device("hdd-7200")
    assert "/mnt/mine" in caught.value.hint and "/mnt/second" in caught.value.hint
    assert _mounted_device("/mnt/second").data == "/mnt/second"


def test_a_place_may_be_told_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / ORDER).write_text(json.dumps({"spec": {"model": "hdd-10k"}, "by_hand": True}))
    monkeypatch.chdir(tmp_path)
    register.new(register.DEVICE, str(Path("slow").absolute()), (str(folder),))
    assert _mounted_device("slow").data == str(tmp_path / "slow")


def test_a_trace_overwrites_no_file_and_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("precious")
    for name, cause in (
        ("t.parquet", "already exists"),
        (".", "is a directory"),
        ("none/t", "does not exist"),
    ):
        with pytest.raises(InputError, match=cause):
            traced(str(tmp_path / name))
    assert traced(str(tmp_path / "new.parquet")) == tmp_path / "new.parquet"
