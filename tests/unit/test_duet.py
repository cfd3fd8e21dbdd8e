"""A duet: which labs may be one, that either system has both halves as often, and who decides."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import labfactory
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.analyse.comparability import unlike
from ironbench.analyse.subjects import DUET, SLICES, by, cores_held, method, work_name
from ironbench.cli.lab import plan as planned
from ironbench.errors import FailureError
from ironbench.experiment import declare
from ironbench.experiment.size import of_machine
from ironbench.experiment.slices import duet, duet_plan, slice_plan
from ironbench.experiment.slices.duet import Duet
from ironbench.experiment.slices.rotations import Rotations
from ironbench.machine import quiet
from ironbench.model.finding import Noise
from ironbench.model.lab import Lab, Method, Stage
from ironbench.model.record import AT_ONCE, DUET_VARIANCE, SIDE_BY_SIDE
from ironbench.model.trial_notes import NO_NOTES
from ironbench.observe import disturbance
from ironbench.observe.disturbance import Taken
from ironbench.plan.budget import ASSUMED
from ironbench.printer import Printer
from ironbench.report import document
from ironbench.report.sections import setup

LAB = """
question = "Does memory matter?"
[system]
engine = "postgres"
{system}
[workload]
name = "{workload}"
[load]
clients = 2
duration = "5s"
[vary.memory]
small = {{ system.memory = "128MB" }}
large = {{ system.memory = "256MB" }}
{more}
[measure]
rates = "none"
method = "{method}"
"""


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Lab]:
    """A lab on a machine with two cores, whose data lie in memory."""
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(duet_plan, "cpus", lambda: ((0,), (1,)))
    monkeypatch.setattr(duet_plan, "_device", lambda place, tree: "")
    machine: Any = SimpleNamespace(limits=SimpleNamespace(cpus=None))
    monkeypatch.setattr(duet_plan, "fingerprint", lambda: machine)

    def lab(method: str = "duet", **parts: str) -> Lab:
        file = tmp_path / "memory.toml"
        usual = {"system": "", "workload": "tpcb-like", "more": ""}
        file.write_text(LAB.format(method=method, **(usual | parts)))
        return declare.lab(file)[0]

    return lab


def test_two_systems_that_share_no_device_may_be_driven_at_once(declared: Callable[..., Lab]) -> None:
    found = declared().method
    assert (found.duet, found.why_turns, found.why_trials) == (True, "", "")
    assert not declared("slices").method.duet and not declared("auto").method.duet


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"more": 'huge = { system.memory = "512MB" }'}, "a duet has two systems, and this lab 3"),
        ({"system": '[limits]\nserver_cpus = "0"'}, "limits.server_cpus names CPUs"),
        ({"system": '[limits]\nclient_cpus = "0"'}, "limits.client_cpus names CPUs"),
        (
            {"system": '[layout]\ndata = "d"\n[devices]\nd = { model = "ssd-sata-2011", capacity = "500MiB" }'},
            "an emulated device is a program",
        ),
    ],
)
def test_systems_that_cannot_be_driven_at_once_take_turns_and_the_plan_says_why(
    parts: dict[str, str], why: str, declared: Callable[..., Lab], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = declared(**parts).method
    assert found.slice_s is not None and not found.duet
    assert why in found.why_turns
    planned(tmp_path / "memory.toml")
    assert f"method: turns, and not a duet: {why}" in " ".join(capsys.readouterr().out.split())


def test_one_core_is_too_few(declared: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duet_plan, "cpus", lambda: None)
    assert "two systems at once need a core each" in declared().method.why_turns


def test_a_share_of_the_cpus_is_not_divided_in_two(
    declared: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine: Any = SimpleNamespace(limits=SimpleNamespace(cpus=0.5))
    monkeypatch.setattr(duet_plan, "fingerprint", lambda: machine)
    assert "both would share a quota of 0.5 cores' worth of CPU time" in declared().method.why_turns


@pytest.mark.parametrize(
    ("workload", "system", "shared"),
    [
        ("tpcb-like", "", True),
        ("select-only", "", False),
        ("select-only", '[limits]\nmemory_total = "300MB"', False),
    ],
)
def test_systems_that_work_on_one_device_are_no_duet(
    workload: str, system: str, shared: bool, declared: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duet_plan, "_device", lambda place, tree: "sda")
    found = declared(workload=workload, system=system).method
    assert ("both would work on one device, sda" in found.why_turns) == shared
    assert found.duet != shared


def test_systems_that_read_more_than_their_memory_holds_work_on_their_device(
    declared: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = declared(workload="select-only", system='[limits]\nmemory_total = "300MB"')
    monkeypatch.setattr(duet_plan, "_device", lambda place, tree: "sda")
    sizes: Any = {one.cell.name: SimpleNamespace(bytes=400 << 20) for one in lab.possible}
    assert "one device, sda" in duet_plan.why_turns(lab, sizes)
    monkeypatch.setattr(duet_plan, "_device", lambda place, tree: "sda" if place.endswith("-side-2") else "sdb")
    assert duet_plan.why_turns(lab, sizes) == ""


def test_two_volumes_on_one_drive_are_one_device(declared: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duet_plan, "_device", lambda place, tree: "dm-1" if place.endswith("-side-2") else "dm-0")
    monkeypatch.setattr(duet_plan, "down_to_drives", lambda name, tree: [name, "sda"])
    assert "both would work on one device, sda" in declared().method.why_turns


def test_a_plan_by_slices_offers_a_duet_where_it_applies(
    declared: Callable[..., Lab], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = []
    for how, parts in (("slices", {}), ("slices", {"more": 'huge = { system.memory = "512MB" }'}), ("duet", {})):
        declared(how, **parts)
        planned(tmp_path / "memory.toml")
        told.append(" ".join(capsys.readouterr().out.split()))
    offer, at_once = 'method = "duet" would ask a pilot', "both are driven at once, each on one half of the cores"
    assert [offer in one for one in told] == [True, False, False]
    assert [at_once in one for one in told] == [False, False, True]


def test_the_pilot_of_a_duet_is_in_the_time_of_a_plan(declared: Callable[..., Lab]) -> None:
    more_s = declared().estimate_s - declared("slices").estimate_s
    assert more_s == pytest.approx(slice_plan.DUET_PILOT_S)


@dataclass
class Half:
    """A side that notes on which half each of its slices was."""

    cell: str
    per_s: float = 1000.0
    second_half: bool = False
    kept: list[bool] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    awake: bool = False
    warmup_s: float | None = None
    cpus: tuple[int, ...] = ()
    duet_variance: float | None = None
    prepared: Any = NO_NOTES
    plan: Any = field(default_factory=lambda: SimpleNamespace(trials=[SimpleNamespace(block=0)]))
    refused: bool = False
    """Its CPUs are not ours to choose."""
    machine: Any = None
    """What both of them meet: a function of whether they are at work at once."""

    def processes(self) -> tuple[int, ...]:
        return (1,)

    def move(self, cpus: tuple[int, ...], second_half: bool) -> None:
        assert not self.awake
        if self.refused:
            raise FailureError(self.cell, "cannot be held to CPUs 0: Operation not permitted")
        self.cpus, self.second_half = cpus, second_half

    def wake(self) -> None:
        self.awake = True

    def begin(self, start_up_s: float, slice_s: float) -> None:
        assert self.awake

    def end(self, slice_s: float) -> None:
        self.awake = False
        self.ended.append(self.cell)
        if slice_s > 0:
            self.kept.append(self.second_half)

    def forget(self) -> None:
        self.kept.pop()

    def judge(self, taken: float) -> None:
        pass

    def begin_unmeasured(self, start_up_s: float, slice_s: float) -> None:
        assert self.awake

    def end_unmeasured(self, slice_s: float) -> tuple[int, float]:
        return round(self.per_s * self.machine(self.cpus)), slice_s

    def pay_and_rest(self) -> None:
        self.awake = False

    def turn(self, start_up_s: float, slice_s: float) -> None:
        pass


def pair(chance: random.Random, machine: Callable[[Sequence[int]], float] = lambda cpus: 1.0) -> tuple[Any, Duet]:
    sides: list[Any] = [Half("a", machine=machine), Half("b", machine=machine)]
    return sides, Duet(sides, ((0,), (1,)), chance, fixed=False)


@given(st.lists(st.sampled_from([0.0, 0.5]), max_size=40), st.integers(1, 8), st.integers(0, 99))
def test_either_system_has_either_half_as_often_whatever_is_dropped(shares: list[float], pairs: int, seed: int) -> None:
    each: Iterator[float] = iter(shares)
    sides, both = pair(random.Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disturbance, "read", lambda own: None)
        patch.setattr(disturbance, "taken", lambda before, after: Taken(next(each, 0.0), 0.0))
        rotations = Rotations([both], random.Random(seed), fixed=False, duet=both)
        rotations.measure(2 * pairs, 1.0, lambda kept: None)
    first, second = (side.kept for side in sides)
    assert len(first) == 2 * pairs
    assert [not half for half in first] == second
    assert all(first[at] != first[at + 1] for at in range(0, 2 * pairs, 2))
    assert rotations.dropped == min(sum(share > quiet.BUSY for share in shares), rotations.dropped)


@pytest.mark.parametrize("turns", [1, 2])
def test_a_slice_that_is_dropped_is_repeated_with_the_same_halves(turns: int) -> None:
    for seed in range(20):
        _, both = pair(random.Random(seed))
        for _ in range(turns):
            both.turn(0.1, 1.0)
        dropped = both.exchanged
        both.forget()
        both.turn(0.1, 1.0)
        assert both.exchanged == dropped


def test_either_system_is_frozen_first_as_often() -> None:
    sides, both = pair(random.Random(1))
    ended: list[str] = []
    for side in sides:
        side.ended = ended
    for _ in range(20):
        both.turn(0.1, 1.0)
    assert ended[::2].count("a") == ended[::2].count("b") == 10


def test_which_half_comes_first_is_drawn() -> None:
    sides, both = pair(random.Random(1))
    for _ in range(40):
        both.turn(0.1, 1.0)
    assert {tuple(sides[0].kept[at : at + 2]) for at in range(0, 40, 2)} == {(True, False), (False, True)}


def test_a_pilot_finds_a_duet_precise_where_both_meet_one_noise_and_not_where_each_core_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    chance, level = random.Random(1), [1.0, 0]

    def shared(cpus: Sequence[int]) -> float:
        """One noise, another for each slice, whoever works in it."""
        if level[1] % (2 if len(cpus) == 1 else 1) == 0:
            level[0] = chance.lognormvariate(0.0, 0.2)
        level[1] += 1
        return level[0]

    assert duet.variance(pair(chance, shared)[1]) < 0.1
    own = {1: 0.3, 2: 0.02}  # on one core, on both
    assert duet.variance(pair(chance, lambda cpus: chance.lognormvariate(0.0, own[len(cpus)]))[1]) > 10
    assert duet.variance(pair(chance)[1]) == 1.0


METHOD = Method((Stage(1, 6),), 1, slice_s=1.0, duet=True)


def warmed(
    before: Any = None, how: Method = METHOD, share: float = 0.5, refused: bool = False
) -> tuple[Rotations, list[Any]]:
    sides, _ = pair(random.Random(1))
    sides[1].refused = refused
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duet_plan, "cpus", lambda: ((0,), (1,)))
        patch.setattr(duet, "variance", lambda both: share)
        return duet.warmed_up(sides, random.Random(1), how, before, Printer.silent()), sides


@pytest.mark.parametrize(("share", "at_once"), [(0.4, True), (1.0, False), (3.0, False)])
def test_the_pilot_of_the_first_block_decides_and_the_other_blocks_follow(share: float, at_once: bool) -> None:
    first, sides = warmed(share=share)
    assert (first.duet is not None) == at_once
    assert [side.duet_variance for side in sides] == [share] * 2
    assert all((AT_ONCE in side.prepared.conditions) == at_once for side in sides)
    record: Any = SimpleNamespace(conditions=sides[0].prepared.conditions, block=1, metrics={})
    later, sides = warmed(record, share=1 / share)
    assert (later.duet is not None) == at_once
    assert [side.duet_variance for side in sides] == [None] * 2


def test_a_first_block_that_is_measured_again_keeps_what_its_pilot_found() -> None:
    record: Any = SimpleNamespace(conditions={AT_ONCE: "each on one half"}, block=0, metrics={DUET_VARIANCE: 0.3})
    found, sides = warmed(record)
    assert found.duet is not None
    assert [side.duet_variance for side in sides] == [0.3] * 2


def test_systems_whose_cpus_are_not_ours_to_choose_take_turns() -> None:
    found, sides = warmed(refused=True)
    assert found.duet is None and sides[0].duet_variance is None


def test_figures_for_each_core_know_that_a_system_of_a_duet_has_half_of_them() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=6)
    one = labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0))[0]
    both = replace(one, conditions={SIDE_BY_SIDE: "then", AT_ONCE: "each on one half"})
    assert [cores_held(of, 4) for of in (one, both)] == [4, 2]
    assert cores_held(both, None) is None


def test_slices_that_nobody_asked_to_be_a_duet_ask_no_pilot() -> None:
    found, sides = warmed(how=replace(METHOD, duet=False))
    assert found.duet is None and sides[0].duet_variance is None


def test_records_of_a_duet_are_no_slices_of_turns() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=6)
    trials = labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0))
    turns = [replace(one, conditions={SIDE_BY_SIDE: "then"}) for one in trials]
    both = [replace(one, conditions={SIDE_BY_SIDE: "then", AT_ONCE: "each on one half"}) for one in trials]
    assert [method(of[0]) for of in (trials, turns, both)] == ["trials", SLICES, DUET]
    assert "The method differs: by slices against by duet." in unlike(turns, both)


def test_a_plan_of_a_duet_takes_the_noise_of_slices_where_none_of_duets_is_known(declared: Callable[..., Lab]) -> None:
    setups = declared().setups
    known = {
        how: Noise("m", work_name(setups[0].choice) + by(how), "throughput", 10, spread, 0.01, "2026-11-26T00:00:00")
        for how, spread in ((SLICES, 0.02), (DUET, 0.01))
    }
    assert of_machine(setups, "throughput", [known[SLICES]], "m", DUET).share == 0.02
    assert of_machine(setups, "throughput", list(known.values()), "m", DUET).share == 0.01
    assert of_machine(setups, "throughput", [known[DUET]], "m", SLICES) == ASSUMED


@pytest.mark.parametrize("at_once", [True, False])
def test_the_report_says_how_a_duet_was_measured_and_what_its_pilot_found(at_once: bool) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=6)
    plan = replace(plan, method=replace(plan.method, slice_s=1.0, duet=True))
    conditions = {SIDE_BY_SIDE: "then"} | ({AT_ONCE: "each on one half"} if at_once else {})
    trials = labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0))
    trials = [replace(one, conditions=conditions, metrics={**one.metrics, DUET_VARIANCE: 0.31}) for one in trials]
    study = labfactory.studied(plan, trials)
    assert any("are not those of the whole machine" in text for text in document.cautions(study)) == at_once
    (section,) = [one for one in setup.sections(study) if one.id == "plan"]
    assert ("were driven at once in slices of 1" in section.lead) == at_once
    assert ("took turns of" in section.lead) != at_once
    assert "A pilot found that a duet's ratios vary 0.31 times as much as those of turns" in section.lead
