"""The study of a lab as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.records import noise
from ironbench.records.labs import LabDirectory, results
from ironbench.report.derived import sentences
from ironbench.study.comparability import set_aside
from ironbench.study.labstudy import lab_study
from ironbench.study.study import Study


def study_of(directory: LabDirectory) -> Study:
    """Everything that is known of a lab by now, finished or not."""
    return study(directory, directory.records())


def study(directory: LabDirectory, records: Sequence[Record]) -> Study:
    """What these records of a lab say together."""
    lab, counting = directory.lab(), (Purpose.LAB, Purpose.OBSERVED)
    measured = [record for record in records if record.purpose in counting]
    look = max(1, len(directory.declared()))
    floors = [floor for place in {results(), *_around(directory)} for floor in noise.known(place)]
    faults = directory.store.faults({record.id for record in records})
    found = lab_study(lab, measured, directory.store, floors, sentences(measured), look, faults=faults)
    return replace(found, left_out=(*found.left_out, *set_aside(directory.set_aside())))


def _around(directory: LabDirectory) -> list[Path]:
    """The results that a lab is among: the machine's variation may have been kept there."""
    return [directory.path.parents[1]] if directory.path.parent.name == "labs" else []
