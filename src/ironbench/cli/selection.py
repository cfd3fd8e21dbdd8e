"""What the words of `report`, `compare`, `lead` and `record export` stand for: records, cells of a lab, or labs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ironbench.analyse.study import Effect, Study, studies
from ironbench.cli.verdict import study_of
from ironbench.errors import InputError, nearest
from ironbench.model.lab import Lab
from ironbench.model.record import Record, Status
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


def sides(a: str, b: str, results: str) -> tuple[tuple[list[Record], list[Record]], tuple[Effect, ...]]:
    """Records of A and of B, and their findings where both are cells of one lab. InputError for unknown names."""
    directory = LabDirectory(Path(results))
    if not directory.begun():
        first, second = Store(Path(results)).select_each([a, b])
        return (first, second), ()
    lab, records = directory.lab(), directory.records()
    cells = _cell(a, lab), _cell(b, lab)
    if cells[0] is None or cells[1] is None:
        return (_records(a, cells[0], records, directory), _records(b, cells[1], records, directory)), ()
    if cells[0] == cells[1]:
        raise InputError(b, f"is the same cell as {a}", "name two cells")
    from ironbench.analyse.labstudy import compare_cells

    found = compare_cells(lab, records, cells[0], cells[1], max(1, len(directory.declared())))
    own = [[record for record in records if record.cell.name == cell] for cell in cells]
    return (own[0], own[1]), found


def trials_of(word: str, results: str) -> list[Record]:
    """Every trial with a label, of a series or by id; where the results are a lab's, those at a level: `new`,
    `server=new`. InputError for unknown names."""
    directory = LabDirectory(Path(results))
    if directory.begun():
        name, _, level = word.rpartition("=")
        known = [factor.name for factor in directory.lab().factors if level in factor.levels]
        factors = [factor for factor in known if name in ("", factor)]
        if len(factors) > 1:
            named = " and ".join(f'"{factor}={level}"' for factor in factors)
            raise InputError(word, f"is a level of {len(factors)} factors", f"name one: {named}")
        if factors:
            return [one for one in directory.records() if one.cell.levels.get(factors[0]) == level]
    return directory.store.select([word])


def side(word: str, results: str) -> tuple[list[Record], Store]:
    """As `trials_of`, and the store that holds them. `DIR` stands for all that is in another directory of results,
    `DIR/LEVEL` for what LEVEL stands for there. InputError for unknown names."""
    try:
        return trials_of(word, results), Store(Path(results))
    except InputError:
        whole, inner = Path(word), Path(word).parent
        if _holds_records(whole):
            directory = LabDirectory(whole)
            return list(directory.records() if directory.begun() else directory.store.all()), directory.store
        if "/" in word and _holds_records(inner):
            return trials_of(whole.name, str(inner)), Store(inner)
        raise


def usable(word: str, records: Sequence[Record]) -> list[Record]:
    """The trials that may be compared. InputError: there is none, with why and what would help."""
    found = [record for record in records if record.status.comparable]
    if not found:
        causes = dict.fromkeys(record.status.value + f": {record.cause}" * bool(record.cause) for record in records)
        cut = all(record.status is Status.CUT_SHORT for record in records)
        hint = "go on with it by `--resume`" if cut else "mend the cause before you run it again"
        raise InputError(word, f"has no trial that may be compared ({'; '.join(causes)})", hint)
    return found


def _holds_records(path: Path) -> bool:
    return (path / "trials").is_dir()


def _cell(word: str, lab: Lab) -> str | None:
    """The cell of that name, or the only one with those levels; None where it names no cell. InputError: several."""
    names = [setup.cell.name for setup in lab.setups if not setup.skipped]
    if word in names:
        return word
    wanted = dict(part.split("=", 1) for part in word.split() if "=" in part)
    if not wanted or len(wanted) < len(word.split()):
        return None
    levels = {setup.cell.name: setup.cell.levels for setup in lab.setups}
    fitting = [name for name in names if wanted.items() <= levels[name].items()]
    if len(fitting) > 1:
        raise InputError(word, f"are levels of {len(fitting)} cells", f"name one: {', '.join(fitting)}")
    return fitting[0] if fitting else None


def _records(word: str, cell: str | None, records: Sequence[Record], directory: LabDirectory) -> list[Record]:
    if cell is not None:
        return [record for record in records if record.cell.name == cell]
    try:
        return directory.store.select([word])
    except InputError:
        cells = [setup.cell.name for setup in directory.lab().setups]
        raise InputError(word, "names no cell or record of this lab", nearest(word, cells)) from None
