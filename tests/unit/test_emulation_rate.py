"""What a machine can emulate is known before a lab: from a calibration, and for each model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import labfactory
import pytest

from ironbench.devices import emulation_rate
from ironbench.devices.emulation_rate import EmulationRate, Fidelity
from ironbench.devices.models import for_core, models
from ironbench.lab.dry_run import notes
from ironbench.model.system import Device, Layout, Partition, Setup

CALIBRATION = {"passes": False, "reads_per_s": 100_000.0, "read_latency_ns": 40_000.0}


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))


def fidelity(model: str, reads_per_s: float = 100_000.0, read_latency_s: float = 4e-5) -> Fidelity:
    rate = EmulationRate(reads_per_s, read_latency_s, 0.0)
    return emulation_rate.speed(model, for_core(models()), None, rate).fidelity


def test_a_model_is_compared_with_rate_and_latency_of_the_io_path() -> None:
    assert fidelity("hdd-7200") is Fidelity.FAITHFUL
    assert fidelity("aws-gp3") is Fidelity.FAITHFUL
    assert fidelity("aws-gp3", reads_per_s=5_000) is Fidelity.LIMITED
    assert fidelity("aws-gp3", reads_per_s=700) is Fidelity.REFUSED
    assert fidelity("aws-gp3", read_latency_s=2e-3) is Fidelity.SHORT
    assert fidelity("ssd-nvme-enterprise") is Fidelity.SHORT, "WAL is flushed in less time than two requests take"
    assert fidelity("ram", reads_per_s=700) is Fidelity.FAITHFUL, "it means as fast as possible, and is never refused"


def test_the_last_calibration_of_this_machine_is_known() -> None:
    assert emulation_rate.stored() is None
    kept = emulation_rate.store(CALIBRATION)
    assert kept is not None and kept.read_latency_s == pytest.approx(4e-5)
    assert emulation_rate.stored() == kept
    assert emulation_rate.store(CALIBRATION | {"passes": True, "reads_per_s": 1e6}) is None
    assert emulation_rate.stored() == kept, "requests that the kernel passes through say nothing about models"


def test_a_calibration_of_another_machine_or_a_damaged_file_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    emulation_rate.store(CALIBRATION)
    with monkeypatch.context() as patched:
        patched.setattr(emulation_rate, "content_key", lambda machine: "another")
        assert emulation_rate.stored() is None
    emulation_rate._path().write_text("{")
    assert emulation_rate.stored() is None


def on(*names: str) -> list[Setup]:
    setups = labfactory.lab({"data": names}, blocks=6).setups
    return [
        replace(one, system=replace(one.system, layout=Layout("/m", devices=(device(name),))))
        for one, name in zip(setups, names, strict=True)
    ]


def device(model: str) -> Device:
    return Device(model, (Partition("data", 8 << 30, "/m"),))


def test_a_plan_names_the_models_that_this_machine_cannot_emulate() -> None:
    (unknown,) = notes._emulation(on("aws-gp3", "hdd-7200"))
    assert "`ironbench device calibrate`" in unknown
    plan = replace(labfactory.lab({"data": ("aws-gp3", "hdd-7200")}), setups=tuple(on("aws-gp3", "hdd-7200")))
    assert unknown in notes._notes(plan)
    assert not list(notes._emulation(on("free"))), "a zero-latency device follows no model"
    emulation_rate.store(CALIBRATION | {"reads_per_s": 5_000.0})
    (limited,) = notes._emulation(on("aws-gp3", "hdd-7200"))
    assert limited.startswith("data=aws-gp3: aws-gp3 does about 2,900 reads/s") and "2,500 I/Os per second" in limited
    emulation_rate.store(CALIBRATION | {"reads_per_s": 500.0})
    (refused,) = notes._emulation(on("aws-gp3", "hdd-7200"))
    assert "will be refused" in refused
    emulation_rate.store(CALIBRATION | {"read_latency_ns": 2e6})
    assert any("single I/Os of aws-gp3" in told for told in notes._emulation(on("aws-gp3")))
    emulation_rate.store(CALIBRATION)
    assert not list(notes._emulation(on("aws-gp3", "hdd-7200")))


def test_a_warning_about_a_model_has_its_iops_as_a_number() -> None:
    emulation_rate.store(CALIBRATION | {"reads_per_s": 500.0})
    (refused,) = notes._emulation(on("aws-gp3(iops=3KB)", "hdd-7200"))
    assert "aws-gp3(iops=3000) does about" in refused
