"""What `report` is asked for: directories of labs, or records, never both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ironbench.analyse.study import Study, studies
from ironbench.cli.verdict import study_of
from ironbench.errors import InputError
from ironbench.record import Store
from ironbench.record.labs import LabDirectory
from ironbench.report import formats
from ironbench.report.derived import sentences


def rendered(selection: Sequence[str], results: str, format: str) -> tuple[bytes, int]:
    """The report and how many trials it rests on. InputError: nothing there, or labs among records."""
    store = Store(Path(results))
    labs = labs_of(selection, store)
    if labs:
        return formats.get(format)(labs), sum(study.trials for study in labs)
    records = store.select(selection)
    if not records:
        raise InputError(results, "holds no records", "make some with `ironbench run`, or name another with --results")
    return formats.get(format)(studies(records, store, sentences(records))), len(records)


def directories(selection: Sequence[str], store: Store) -> list[str]:
    """Those that name a directory. Of a name that has records too, a directory without a lab is not meant: a label
    often is the name of the directory of its data."""
    found = [word for word in selection if Path(word).is_dir()]
    unsure = [word for word in found if not LabDirectory(Path(word)).begun()]
    rows = store.listed() if unsure else []
    named = {name for row in rows for name in (row.id, row.series, row.label)}
    return [word for word in found if word not in unsure or word not in named]


def labs_of(selection: Sequence[str], store: Store) -> list[Study]:
    """Of directories; empty where none is named. InputError for a directory that is no lab's, or for a mixture."""
    labs = directories(selection, store)
    if labs and len(labs) < len(selection):
        other = next(word for word in selection if word not in labs)
        raise InputError(other, "cannot be reported together with a lab", "make a report of each")
    return [study_of(LabDirectory(Path(word))) for word in labs]
