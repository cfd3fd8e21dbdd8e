"""`lab run --trace` without an emulated device is an error and not ignored."""

from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import lab

from ironbench.errors import InputError
from ironbench.lab.freeze import traced
from ironbench.model.lab import Lab
from ironbench.model.system import Device, Layout, Partition


def emulated() -> Lab:
    found = lab({"log": ("disk", "memory")})
    layout = Layout("/d", devices=(Device("free", (Partition("data", 1 << 30, "/d"),)),))
    return replace(found, setups=tuple(replace(one, system=replace(one.system, layout=layout)) for one in found.setups))


def test_a_directory_that_does_not_exist_yet_is_taken(tmp_path: Path) -> None:
    assert traced(emulated(), str(tmp_path / "new")) == str(tmp_path / "new")
    assert traced(emulated(), "") == ""


def test_a_lab_without_emulated_devices_has_nothing_to_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no configuration of this lab uses an emulated device"):
        traced(lab({"log": ("disk", "memory")}), str(tmp_path))


def test_a_file_is_no_place_for_traces(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not a directory"):
        traced(emulated(), str(tmp_path / "file"))


def test_a_lab_by_slices_leaves_no_trial_in_one_piece_to_trace(tmp_path: Path) -> None:
    by_slices = replace(emulated(), method=replace(emulated().method, slice_s=1.0))
    with pytest.raises(InputError, match="traces need uninterrupted trials"):
        traced(by_slices, str(tmp_path))
