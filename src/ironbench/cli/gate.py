"""`ironbench gate`: decides whether a change passes or fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ironbench.cli.mistakes import number
from ironbench.cli.options import JSON, RESULTS, policies
from ironbench.errors import InputError, nearest
from ironbench.fields.lab import range_of
from ironbench.printer import Printer
from ironbench.words import some

if TYPE_CHECKING:
    from ironbench.model.finding import Finding
    from ironbench.model.lab import Lab
    from ironbench.records.labs import LabDirectory
    from ironbench.records.selection import NamedRecords
    from ironbench.study.gate import Gate

CLOSED = 4


def gate(
    base: Annotated[
        str,
        typer.Argument(
            help="The baseline: a configuration or factor value of the lab in --results. To select from "
            "another directory of results, write DIR/NAME. If BASE is a lab directory and NEW is "
            "missing, the gate uses all comparisons that the lab declares."
        ),
    ],
    new: Annotated[str, typer.Argument(help="The configuration with the change; same syntax as BASE.")] = "",
    margin: Annotated[
        float | None,
        typer.Option(
            parser=number("--margin", range_of("measure.margin")),
            metavar="SHARE",
            help="Allowed slowdown as a fraction, e.g. 0.05 for 5%.  [default: the margin of the lab]",
        ),
    ] = None,
    undecided: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="Result if the gate is inconclusive: `fail` or `pass`.", autocompletion=policies
        ),
    ] = "fail",
    output: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to which the result is also written; may be repeated. The suffix selects the "
            "format: .xml (JUnit), .md, .svg, .json or .txt.",
        ),
    ] = None,
    results: RESULTS = "ironbench-results",
    json: JSON = False,
) -> int:
    from ironbench.report.studies import study_of
    from ironbench.study.gate import POLICIES
    from ironbench.study.gate import gate as judged

    if undecided.partition(":")[0] == "more":
        hint = "use it with `ironbench lab run FILE --gate`, or measure blocks with `ironbench lab resume LAB --more 6`"
        raise InputError(
            f"--undecided {undecided}", "`ironbench gate` judges existing trials and does not measure more blocks", hint
        )
    if undecided not in POLICIES:
        raise InputError(f"--undecided {undecided}", "is not a valid policy", nearest(undecided, list(POLICIES)))
    targets = [_target(one) for one in output or ()]
    directory, findings = _compared(base, new, results)
    study = study_of(directory)
    allowed = directory.lab().method.margin if margin is None else margin
    return write_documents(
        judged(study, findings or [*study.findings, *study.claimed], allowed, undecided), targets, json
    )


def whole(directory: LabDirectory, undecided: str) -> Gate:
    """Judges every comparison that a lab declares, with the lab's equivalence margin as the allowed slowdown."""
    from ironbench.report.studies import study_of
    from ironbench.study.gate import gate as judged

    study = study_of(directory)
    require_comparisons(str(directory.path), directory.lab())
    return judged(study, [*study.findings, *study.claimed], directory.lab().method.margin, undecided)


def require_comparisons(name: str, lab: Lab) -> None:
    """Raises InputError if the lab has no comparison."""
    from ironbench.model.lab import SCREEN
    from ironbench.study.findings import declared

    if declared(lab):
        return
    cause, hint = "compares nothing", "use a lab that varies at least one factor"
    if lab.design == SCREEN:
        hint = "the screen has confirmed no effect; use a lab with another design"
    elif skipped := [setup.cell.name for setup in lab.setups if setup.skipped]:
        cause += f" without the skipped configurations: {some(skipped)}"
        hint = "`ironbench lab plan` shows why they were skipped"
    raise InputError(name, cause, hint)


def write_documents(gate: Gate, targets: Sequence[Path], json: bool) -> int:
    """Writes every requested document and returns the exit code."""
    from ironbench.cli.output import write
    from ironbench.report import gate_page

    printer = Printer()
    for path in targets:
        write(path, gate_page.written(gate, gate_page.FORMATS[path.suffix[1:]]))
        printer.say(f"written: {path}")
    printer.data(gate_page.written(gate, "json" if json else "text").decode())
    if gate.closed:
        refused = [one for one in gate.claims if gate.refuses(one)]
        stopped = any(gate.stops(one) for one in gate.comparisons)
        why = "" if stopped else f": {refused[0].verdict.value}: {refused[0].claim.text!r}"
        printer.say(f"exit code {CLOSED}: gate {gate.outcome}{why}")
    return CLOSED if gate.closed else 0


def _target(output: str) -> Path:
    from ironbench.cli.output import target

    # These are the suffixes of `report.gate_page.FORMATS`. They are repeated here so that an input error is reported
    # without importing that module.
    if Path(output).suffix not in (".xml", ".md", ".json", ".svg", ".txt"):
        raise InputError(
            f"-o {output}", "the file name has no known suffix", "use the suffix .xml, .md, .json, .svg or .txt"
        )
    return target(output)


def _compared(base: str, new: str, results: str) -> tuple[LabDirectory, list[Finding]]:
    """Returns the lab and the comparisons to judge. An empty list means all comparisons that the lab declares. Raises
    InputError if `base` and `new` are not configurations of the same lab."""
    from ironbench.records.labs import LabDirectory
    from ironbench.records.selection import both

    if not new:
        directory = LabDirectory(Path(base))
        if not directory.begun():
            raise InputError(
                base, "is not a lab directory", "give BASE and NEW, or a directory created by `ironbench lab run`"
            )
        require_comparisons(base, directory.lab())
        return directory, []
    sides = both(base, new, results)
    if not (sides[0].cells and sides[1].cells) or sides[0].store.directory != sides[1].store.directory:
        raise InputError(
            f"{base} and {new}",
            _not_in_blocks(*sides),
            "measure both as values of one factor in a lab file (`ironbench lab new`), or use `ironbench compare`",
        )
    directory = LabDirectory(sides[0].store.directory)
    return directory, _of_cells(directory, *sides)


def _not_in_blocks(a: NamedRecords, b: NamedRecords) -> str:
    from ironbench.report import wording
    from ironbench.study.comparability import other_work

    apart = other_work(a.records, b.records)
    return (
        "; ".join(wording.texts(apart))
        if apart
        else "were not run in blocks of one lab, but a verdict needs such blocks"
    )


def _of_cells(directory: LabDirectory, base: NamedRecords, new: NamedRecords) -> list[Finding]:
    """Compares the configurations `new` with the configurations `base`. Only comparisons that the lab declares are
    included. Raises InputError if the lab declares none of them."""
    from ironbench.study.findings import compare_cells, declared

    lab, records = directory.lab(), directory.records()
    stage = max(1, len(directory.declared()))
    judged = {one[:2] for one in declared(lab)}
    pairs = [(a, b) for a in base.cells for b in new.cells if {(a, b), (b, a)} & judged]
    if not pairs:
        known = [f'"{two}" "{one}"' for one, two in lab.comparisons[:3]]
        raise InputError(
            f"{base.word} and {new.word}",
            "the lab does not declare this comparison, so it has no verdict",
            f"the lab compares {', '.join(known)}" if known else "the lab declares no comparison",
        )
    return [one for a, b in pairs for one in compare_cells(lab, records, a, b, stage) if one.decides]
