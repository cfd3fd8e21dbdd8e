"""A lab that gives up names the command that repeats failed trials, which a plain resume never does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from ironbench.errors import FailureError
from ironbench.lab import declare, freeze
from ironbench.lab.schedule import Blocks, NextTrial, repeat_failed
from ironbench.model.note import text_note
from ironbench.model.record import Record, Status
from ironbench.model.system import Trial
from ironbench.records.labs import LabDirectory
from ironbench.records.progress import given_up_of_all

LAB = """question = "Slower?"
[system]
engine = "null"
[workload]
name = "select-only"
[load]
clients = 2
duration = "1s"
warmup = "0s"
[vary.speed]
fast = {}
slow = { set = { service = "1ms" } }
[measure]
repeats = 2
quiet = "0s"
"""


def begun(place: Path, rest: str) -> LabDirectory:
    file = place / "speed.toml"
    file.write_text(LAB + rest)
    planned = declare.planned(declare.read(file))
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(planned.lab, planned.secrets, directory.store))
    return directory


def failed(lab: LabDirectory, trial: Trial) -> Record:
    setup = lab.lab().setup(trial.cell.name)
    name = f"{trial.cell.name}-{trial.purpose}-{trial.block}-{trial.attempt}"
    found = record(setup.system, block=trial.block, purpose=trial.purpose, id=name, choice=setup.choice)
    return replace(
        found, cell=trial.cell, status=Status.FAILED, attempt=trial.attempt, causes=(text_note("disk full"),)
    )


def given_up(lab: LabDirectory) -> tuple[list[Record], FailureError]:
    """Lets every trial fail until the lab gives up. Returns the records and the lab's error."""
    records: list[Record] = []
    schedule = Blocks(lab, records)
    for _ in range(20):
        try:
            due = schedule.next(records)
        except FailureError as error:
            return records, error
        assert due is not None
        records.append(failed(lab, due.trial))
    raise AssertionError("it went on and on")


def resumed(lab: LabDirectory, records: Sequence[Record], forgiven: Collection[str] = ()) -> NextTrial | None:
    return Blocks(lab, records, forgiven).next(records)


def test_a_lab_whose_trials_all_fail_names_the_resume_that_repeats_them(tmp_path: Path) -> None:
    lab = begun(tmp_path, 'rates = "none"\n')
    records, error = given_up(lab)
    assert "the last 4 trials failed; the cause of the last failure is: disk full" in str(error)
    assert "repeat these blocks and continue with `ironbench lab resume --failed`" in error.hint
    plain = resumed(lab, records)
    assert plain is not None and plain.trial.block == 1
    for one in records:
        lab.store.keep(one)
    last = max(trial.block for trial in lab.lab().trials)
    assert repeat_failed(lab) == 1
    again = [trial for trial in lab.lab().trials if trial.block == last + 1]
    assert {trial.cell.name for trial in again} == {record.cell.name for record in records}


def test_a_peak_that_fails_is_measured_again_by_the_resume_that_the_message_names(tmp_path: Path) -> None:
    lab = begun(tmp_path, "rates = ['50%']\n")
    records, error = given_up(lab)
    assert [one.purpose for one in records] == ["peak", "peak"]
    assert "the peak of speed=fast could not be measured: disk full" in str(error)
    assert "measure the peak again with `ironbench lab resume --failed`" in error.hint
    with pytest.raises(FailureError, match="could not be measured"):
        resumed(lab, records)
    again = resumed(lab, records, {one.id for one in given_up_of_all(records)})
    assert again is not None and (again.trial.purpose, again.trial.attempt) == ("peak", 3)
