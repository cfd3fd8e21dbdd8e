"""The answer includes what disturbed trials, especially if it affected configurations unequally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import labfactory
from labfactory import said

from ironbench.model.note import Note
from ironbench.model.record import Record
from ironbench.study.study import Study

BUSY = Note("not-quiet", {"text": "the machine was not quiet before the trial"})


def studied(disturbed: Sequence[tuple[str, int]]) -> Study:
    plan = labfactory.lab({"log": ("disk", "memory")}, blocks=6)
    records = [
        _busy(record) if (record.cell.name, record.block) in disturbed else record
        for record in labfactory.trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    ]
    return labfactory.studied(plan, records)


def _busy(record: Record) -> Record:
    return replace(record, warnings=(*record.warnings, BUSY))


def test_a_quiet_machine_is_not_spoken_of() -> None:
    assert studied([]).disturbances == ()
    assert "quiet" not in said(studied([]))


def test_what_met_the_cells_alike_is_counted() -> None:
    study = studied([(f"log={side}", block) for side in ("disk", "memory") for block in (0, 3)])
    assert "Other programs were using the machine shortly before 4 of 12 compared trials." in said(study)


def test_what_met_them_unequally_may_be_the_difference() -> None:
    text = said(studied([("log=memory", block) for block in range(3)]))
    assert (
        "machine shortly before 3 of 12 compared trials, more often with WAL in memory (3 of 6) than with WAL on "
        "disk (0 of 6)"
    ) in text
    assert "part of the difference may come from these disturbances" in text


def test_a_disturbance_of_every_trial_counts_those_that_are_compared() -> None:
    everywhere = [(f"log={side}", block) for side in ("disk", "memory") for block in range(6)]
    assert "Other programs were using the machine shortly before all 12 compared trials." in said(studied(everywhere))
