"""A busy machine and a changed clock are reported, never silently ignored."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ironbench.host import idle_machine
from ironbench.host.tree import Tree
from ironbench.report import wording
from ironbench.trial.drive.preparation import ClockStepDetector


class Machine:
    """A copy of the files that are read; `step` advances them by one reading."""

    def __init__(self, root: Path) -> None:
        self.root, self.user, self.idle, self.sectors, self.dirty_kb = root, 0, 0, 0, 0
        for folder in ("proc", "sys/block/sda/slaves", "sys/block/dm-0/slaves/sda"):
            (root / folder).mkdir(parents=True)
        self.write()

    def write(self) -> None:
        (self.root / "proc/stat").write_text(f"cpu  {self.user} 0 0 {self.idle} 0 0 0 0 0 0\n")
        (self.root / "proc/meminfo").write_text(f"Dirty: {self.dirty_kb} kB\nWriteback: 0 kB\n")
        lines = [f"8 0 sda 1 0 {self.sectors} 0 1 0 0 0 3 0 0", f"8 1 sda1 1 0 {self.sectors} 0 1 0 0 0 3 0 0"]
        lines.append(f"253 0 dm-0 1 0 {self.sectors} 0 1 0 0 0 3 0 0")
        (self.root / "proc/diskstats").write_text("\n".join(lines) + "\n")

    def step(self, user: int = 0, sectors: int = 0, dirty_kb: int = 0) -> None:
        self.user, self.idle = self.user + user, self.idle + 100 - user
        self.sectors, self.dirty_kb = self.sectors + sectors, dirty_kb
        self.write()


def waited(machine: Machine, steps: list[dict[str, int]], limit_s: float) -> tuple[dict[str, str], list[str], int]:
    """Returns conditions, texts of warnings, and the number of readings. The last step repeats forever."""
    looks = itertools.chain(steps, itertools.repeat(steps[-1]))
    clock = itertools.count()
    taken = [0]

    def sleep(_: float) -> None:
        taken[0] += 1
        machine.step(**next(looks))

    conditions, warnings = idle_machine.wait(limit_s, Tree(machine.root), sleep, lambda: float(next(clock)))
    return conditions, wording.texts(warnings), taken[0]


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ({"user": 30}, "CPU 30% busy"),
        ({"sectors": 1_000_000}, "device I/O"),
        ({"dirty_kb": 1 << 20}, "of dirty pages"),
    ],
)
def test_noise_that_lasts_is_a_warning_and_noise_that_ends_is_waited_for(
    tmp_path: Path, noise: dict[str, int], words: str
) -> None:
    conditions, texts, looks = waited(Machine(tmp_path / "a"), [noise], 5.0)
    assert conditions == {"quiet": "no"} and len(texts) == 1 and words in texts[0] and 2 <= looks <= 6
    conditions, texts, _ = waited(Machine(tmp_path / "b"), [noise, noise, {}], 50.0)
    assert texts == [] and conditions["quiet"].startswith("after")


@pytest.mark.parametrize("in_flight", [0, 3])
def test_requests_in_flight_are_named_where_there_are_any(in_flight: int) -> None:
    activity = idle_machine.Activity(busy=0.0, device_bytes_per_s=9e6, in_flight=in_flight, dirty_bytes=0)
    assert activity.above_limits == {
        "busy": 0.0,
        "device_bytes_per_s": 9e6,
        "in_flight": in_flight,
        "dirty_bytes": 0,
    }


def test_a_quiet_machine_costs_one_look(tmp_path: Path) -> None:
    assert waited(Machine(tmp_path / "m"), [{}], 5.0)[2] == 1
    assert waited(Machine(tmp_path / "n"), [{"user": 50}], 0.0)[2] == 1


def test_partitions_and_devices_made_of_devices_are_not_counted_twice(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.step(sectors=1000)
    assert idle_machine._devices(Tree(tmp_path)) == (1000, 3)


def test_the_real_machine_can_be_looked_at() -> None:
    conditions, _ = idle_machine.wait(0.0)
    assert conditions["quiet"] in ("yes", "no")


def test_a_clock_that_was_set_is_a_warning_and_one_that_was_not_is_none() -> None:
    offsets = iter([100.0, 100.001, 160.5, 90.0])
    clock = ClockStepDetector(lambda: next(offsets))
    assert clock.warnings() == ()
    assert [warning.code for warning in clock.warnings()] == ["clock-step"]
    assert clock.warnings()[0].values["step_s"] == pytest.approx(-10.0)
    assert ClockStepDetector().warnings() == ()
