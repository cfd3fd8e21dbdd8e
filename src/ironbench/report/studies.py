"""Builds studies from the records or labs that the user named. Labs need not be finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.errors import InputError
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.records import Store, noise
from ironbench.records.labs import LabDirectory
from ironbench.records.labs import results as usual_results
from ironbench.records.selection import directories, select
from ironbench.report import formats
from ironbench.report.derived import sentences
from ironbench.study.archive import Archives
from ironbench.study.comparability import repeated_blocks
from ironbench.study.labstudy import lab_study
from ironbench.study.runstudy import studies
from ironbench.study.study import Study


def rendered(selection: Sequence[str], results: str, format: str) -> tuple[bytes, int]:
    """Returns the report and the number of trials in it. Raises InputError if there are no records, or if the user
    named both labs and records."""
    store = Store(Path(results))
    labs = labs_of(selection, store)
    if labs:
        archive = Archives([LabDirectory(Path(word)).store for word in selection])
        return formats.get(format, archive)(labs), sum(study.trials for study in labs)
    records = select(selection, results)
    if not records:
        raise InputError(
            results,
            "contains no records",
            "create records with `ironbench run`, or use another directory with --results",
        )
    return formats.get(format, store)(studies(records, store, sentences(records))), len(records)


def labs_of(selection: Sequence[str], store: Store) -> list[Study]:
    """Returns a study for each lab directory in `selection`. Returns an empty list if `selection` names no labs. Raises
    InputError if a directory contains no lab, or if `selection` names both labs and records."""
    labs = directories(selection, store)
    if labs and len(labs) < len(selection):
        other = next(word for word in selection if word not in labs)
        raise InputError(other, "cannot be combined with a lab in one report", "make a separate report for each")
    return [study_of(LabDirectory(Path(word))) for word in labs]


def study_of(directory: LabDirectory) -> Study:
    """Returns the study of a lab, computed from all its records so far."""
    return study(directory, directory.records())


def study(directory: LabDirectory, records: Sequence[Record]) -> Study:
    """Returns the study of a lab, computed from the given records only."""
    lab, counting = directory.lab(), (Purpose.LAB, Purpose.OBSERVED)
    measured = [record for record in records if record.purpose in counting]
    stage = max(1, len(directory.declared()))
    floors = [floor for place in {usual_results(), *_around(directory)} for floor in noise.stored_floors(place)]
    faults = directory.store.faults({record.id for record in records})
    found = lab_study(lab, measured, directory.store, floors, sentences(measured), stage, faults=faults)
    return replace(found, left_out=(*found.left_out, *repeated_blocks(directory.set_aside())))


def _around(directory: LabDirectory) -> list[Path]:
    """Returns the results directory that contains the lab, where the machine's run-to-run variation may be stored.
    Returns an empty list if the lab is stored elsewhere."""
    return [directory.path.parents[1]] if directory.path.parent.name == "labs" else []
