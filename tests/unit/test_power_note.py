"""A report states that the power was cut, and whether the checks passed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import Shelf, record

from ironbench.model.plan import AT_STAKE
from ironbench.model.record import Check, Record
from ironbench.report import document
from ironbench.study.runstudy import studies
from ironbench.trial.drive import power


def cut(passed: bool = True) -> Record:
    return replace(record(), power_cut=True, checks=(Check("every commit is there", passed),))


def noted(*records: Record) -> list[str]:
    (study,) = studies(records, Shelf(list(records)), {})
    return document.notes(study)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (
            [cut()],
            "ironbench simulated a power failure after the trial; after the engine's recovery, all checks passed.",
        ),
        (
            [cut(False)],
            "ironbench simulated a power failure after the trial; after the engine's recovery, a check failed.",
        ),
        (
            [cut(), cut(False)],
            "ironbench simulated a power failure after each of 2 trials; after the engine's recovery, all checks "
            "passed in 1 of the trials.",
        ),
    ],
)
def test_a_report_says_that_the_power_was_cut_and_whether_the_checks_held(records: list[Record], words: str) -> None:
    assert any(note.startswith(words) for note in noted(*records))


@pytest.mark.parametrize(
    ("writes", "words"),
    [((0,), "no write was unflushed"), ((7, 1200), "7 to 1,200 writes"), ((0, 5), "none in 1 trial")],
)
def test_a_report_says_how_many_writes_a_power_cut_could_take(writes: tuple[int, ...], words: str) -> None:
    records = [replace(cut(), metrics={**cut().metrics, AT_STAKE: float(count)}) for count in writes]
    assert any(words in note for note in noted(*records))


def test_a_power_cut_without_an_unflushed_write_is_warned_of() -> None:
    assert [one.code for one in power.PowerCutRecovery("torn", 0, 1.0).warnings()] == [power.NOTHING_AT_STAKE]
    some = power.PowerCutRecovery("torn", 3, 1.0)
    assert (some.warnings(), some.metrics()) == ((), {AT_STAKE: 3.0})


def test_a_report_of_trials_whose_power_stayed_says_nothing_of_it() -> None:
    assert not any("power" in note for note in noted(record()))
