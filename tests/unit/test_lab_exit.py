"""The exit code of a lab states how it ended, wherever it ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import suspect
from labfactory import lab, trials

from ironbench.cli import verdict
from ironbench.model.note import Note, note, text_note
from ironbench.model.record import NOT_BACK, Check, Record, Status
from ironbench.printer import Printer
from ironbench.records.labs import FrozenPlan, LabDirectory

MEANS = {"log=disk": 1000.0, "log=memory": 1500.0}


def ended(place: Path, *records: Record, crash: str = "") -> int:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    plan = replace(plan, method=replace(plan.method, crash=crash))
    directory = LabDirectory(place)
    directory.begin(FrozenPlan(plan, "m1", {}, {}))
    directory.declare(plan.method.stages[0], plan.trials)
    for one in records:
        directory.store.keep(one)
    return verdict.show(directory, list(records), json=False, printer=Printer())


@pytest.mark.parametrize("purpose", ["pilot", "peak", "lab"])
def test_an_interrupted_trial_of_any_purpose_ends_a_lab_with_130(purpose: str, tmp_path: Path) -> None:
    first = trials(lab({"log": ("disk", "memory")}, blocks=6), MEANS)[0]
    assert (
        ended(tmp_path, replace(first, purpose=purpose, status=Status.CUT_SHORT, causes=(text_note("interrupted"),)))
        == 130
    )


def test_the_exit_line_counts_suspect_trials_as_the_report_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    measured = [suspect(one, "cpu-taken", text="CPU time was taken") for one in trials(plan, MEANS)]
    again = replace(measured[0], id="again", attempt=2, status=Status.FAILED, causes=(text_note("killed"),))
    before = replace(measured[0], id="before", purpose="pilot")
    assert ended(tmp_path, before, again, *measured) == verdict.SUSPECT
    shown = capsys.readouterr()
    assert "[cpu-taken, 12 of 12 trials]" in shown.out
    assert "exit code 3: 12 of 12 trials flagged" in shown.err


@pytest.mark.parametrize("purpose", ["pilot", "peak"])
def test_a_suspect_trial_before_the_blocks_does_not_make_a_lab_suspect(purpose: str, tmp_path: Path) -> None:
    measured = trials(lab({"log": ("disk", "memory")}, blocks=6), MEANS)
    before = replace(
        measured[0], id="before", purpose=purpose, status=Status.SUSPECT, causes=(text_note("a busy machine"),)
    )
    assert ended(tmp_path, before, *measured) == 0


LOST = Check("every commit is there", False, "500", "498")


@pytest.mark.parametrize(
    ("crash", "checks", "cause", "code"),
    [
        ("lose", (LOST,), text_note("check failed"), verdict.FAILED),
        ("torn", (), note(NOT_BACK, error="3 writes had not been flushed"), verdict.FAILED),
        ("lose", (), text_note("the process of the emulated device was killed"), 0),
        ("", (LOST,), text_note("check failed"), 0),
    ],
)
def test_a_loss_in_a_power_cut_is_not_taken_back_by_another_try(
    crash: str, checks: tuple[Check, ...], cause: Note, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = [replace(one, attempt=2) for one in trials(lab({"log": ("disk", "memory")}, blocks=6), MEANS)]
    lost = replace(measured[0], id="lost", attempt=1, status=Status.VOIDED, causes=(cause,), checks=checks)
    assert ended(tmp_path, lost, *measured, crash=crash) == code
    assert ("exit code 1: 1 of 13 trials lost committed data in a power cut" in capsys.readouterr().err) is (code == 1)
