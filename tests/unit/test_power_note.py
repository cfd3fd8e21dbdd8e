"""A report says that the power was cut, and whether the checks held."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import Shelf, record

from ironbench.analyse.study import studies
from ironbench.model.record import Check, Record
from ironbench.report import document


def cut(passed: bool = True) -> Record:
    return replace(
        record(), conditions={"power": "cut after the measured time"}, checks=(Check("every commit is there", passed),)
    )


def noted(*records: Record) -> list[str]:
    (study,) = studies(records, Shelf(list(records)), {})
    return document.notes(study)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([cut()], "The power was cut after the trial, and all checks held once the engine was back."),
        ([cut(False)], "The power was cut after the trial, and a check failed once the engine was back."),
        ([cut(), cut(False)], "The power was cut after 2 trials, and all checks held in 1 of them once the engine was"),
    ],
)
def test_a_report_says_that_the_power_was_cut_and_whether_the_checks_held(records: list[Record], words: str) -> None:
    assert any(note.startswith(words) for note in noted(*records))


def test_a_report_of_trials_whose_power_stayed_says_nothing_of_it() -> None:
    assert not any("power" in note for note in noted(record()))
