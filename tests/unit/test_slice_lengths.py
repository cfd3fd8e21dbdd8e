"""Allowed slice lengths: a block has enough turns, or it does not use slices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.errors import InputError
from ironbench.lab import declare
from ironbench.lab.noise import against_itself
from ironbench.lab.slices import slice_plan
from ironbench.lab.slices.rotations import MOST_START_UP, chosen, slow_start
from ironbench.lab.slices.turns import fewer_checkpoints
from ironbench.model.lab import Lab
from ironbench.model.record import SUSPICIOUS
from ironbench.report import wording

LAB = """
question = "Does memory matter?"
[system]
engine = "postgres"
[workload]
name = "tpcb-like"
[load]
clients = 2
{load}
[vary.memory]
small = {{ system.memory = "128MB" }}
large = {{ system.memory = "256MB" }}
[measure]
rates = "none"
method = "slices"
{measure}
"""


@pytest.fixture
def lab_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))
    return tmp_path / "memory.toml"


def declared(path: Path, duration: str, measure: str = "") -> Lab:
    path.write_text(LAB.format(load=f'duration = "{duration}"', measure=measure))
    return declare.lab(path)[0]


@pytest.mark.parametrize(("duration", "slice_s"), [("2500ms", 0.5), ("4s", 0.5), ("5s", 1.0), ("60s", 1.0)])
def test_a_plan_reckons_with_slices_of_which_a_block_has_enough(lab_file: Path, duration: str, slice_s: float) -> None:
    method = declared(lab_file, duration).method
    assert (method.slice_s, method.slice_piloted) == (slice_s, True)


def test_a_block_that_is_too_short_for_the_shortest_slices_is_measured_by_trials_and_the_plan_says_why(
    lab_file: Path,
) -> None:
    method = declared(lab_file, "2400ms").method
    assert method.slice_s is None
    assert "is too short for 5 slices of 500 ms" in method.why_trials


@pytest.mark.parametrize(("duration", "length"), [("3s", "60s"), ("3s", "700ms"), ("4900ms", "1s")])
def test_a_length_of_which_a_block_has_too_few_is_refused(lab_file: Path, duration: str, length: str) -> None:
    with pytest.raises(InputError, match="needs at least 5 slices") as caught:
        declared(lab_file, duration, f'slice = "{length}"')
    assert "measure.slice" in caught.value.subject and "load.duration" in caught.value.hint


@pytest.mark.parametrize(("duration", "length", "slice_s"), [("5s", "1s", 1.0), ("1250ms", "250ms", 0.25)])
def test_a_length_that_fits_is_taken(lab_file: Path, duration: str, length: str, slice_s: float) -> None:
    assert declared(lab_file, duration, f'slice = "{length}"').method.slice_s == slice_s


def test_a_budget_chooses_no_trials_that_are_too_short_for_the_slices(lab_file: Path) -> None:
    lab_file.write_text(LAB.format(load="", measure='slice = "2s"\nbudget = "10m"').replace("tpcb-like", "select-only"))
    lab = declare.lab(lab_file)[0]
    durations = {setup.cell.load.duration_s for setup in lab.setups}
    assert all(slice_plan.fits(duration_s or 0.0, 2.0) for duration_s in durations)


@given(st.floats(0.0, 1.0), st.floats(2.5, 600.0))
def test_whatever_the_pilot_finds_a_block_has_turns_enough_or_its_records_say_what_is_lost(
    start_up_s: float, duration_s: float
) -> None:
    slice_s = chosen(start_up_s, slice_plan.longest(duration_s))
    assert slice_plan.fits(duration_s, slice_s)
    assert bool(slow_start(start_up_s, slice_s)) == (start_up_s >= MOST_START_UP * slice_s)


def test_records_say_what_slices_lose_that_could_not_be_longer() -> None:
    (warning,) = slow_start(0.04, 0.5)
    assert warning.code == "slow-start" and warning.code not in SUSPICIOUS
    assert (warning.values["share"], warning.values["slice_s"]) == (pytest.approx(0.08), 0.5)
    assert warning.values["needed_s"] == pytest.approx(25)


def test_records_of_the_longest_slices_say_what_they_lose_and_ask_for_no_longer_ones() -> None:
    assert slow_start(0.049, 5.0) == ()
    (warning,) = slow_start(0.2, 5.0)
    text = wording.text(warning).replace("\u202f", " ").replace("\u2009", " ")
    assert "too low by at least 4%" in text and "of a slice of 5 s" in text and "load.duration" not in text
    assert text.endswith('slices of 5 s are already the longest possible, so use `method = "trials"`')


def test_the_length_of_a_plan_follows_that_of_its_trials(lab_file: Path) -> None:
    lab = declared(lab_file, "60s")
    short = tuple(
        replace(one, cell=replace(one.cell, load=replace(one.cell.load, duration_s=4.0))) for one in lab.setups
    )
    assert slice_plan.fitted(replace(lab, setups=short)).method.slice_s == 0.5


@pytest.mark.parametrize(("made", "every_s", "warned"), [(3, 4 / 3, False), (1, 4 / 3, True), (0, None, False)])
def test_records_say_when_fewer_checkpoints_were_made_than_planned(
    made: int, every_s: float | None, warned: bool
) -> None:
    side: Any = SimpleNamespace(checkpoints=made, checkpoint_s=every_s, measured_s=4.0)
    found = fewer_checkpoints(side)
    assert [one.code for one in found] == ["fewer-checkpoints"] * warned
    assert all(one.values == {"checkpoints": 1, "planned": 3, "every_s": every_s} for one in found)


def test_a_baseline_that_cannot_stand_beside_itself_has_its_noise_measured_by_trials(
    lab_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_plan, "memory_there", lambda: 1 << 30)
    declared(lab_file, "5s")
    lab_file.write_text(lab_file.read_text().replace('"128MB"', '"300MB"').replace('"256MB"', '"64MB"'))
    lab, secrets = declare.lab(lab_file)
    assert lab.method.slice_s is not None
    with pytest.raises(InputError, match="2 systems running at the same time need"):
        against_itself(lab, secrets, 6)
