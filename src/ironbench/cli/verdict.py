"""What a lab ends with: the answer and the findings, and the exit code that follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.labstudy import LabStudy, lab_study
from ironbench.model.record import Record, Status
from ironbench.printer import Printer
from ironbench.record import progress
from ironbench.record.labs import LabDirectory
from ironbench.report.derived import sentences

INTERRUPTED, REFUTED, SUSPECT, FAILED = 130, 4, 3, 1


def told(directory: LabDirectory, records: Sequence[Record], json: bool, printer: Printer) -> int:
    """Shows what is known so far; the exit code."""
    measured = [record for record in records if record.purpose == "lab"]
    study = lab_study(directory.lab(), measured, directory.store, (), derived=sentences(measured))
    if json:
        from ironbench.report.lab_json import run_document

        printer.data(run_document(study, measured, directory.store))
    else:
        from ironbench.report.lab_text import summary

        summary(study, printer)
        printer.say(f"lab: {directory.path}   report: ironbench report {directory.path} -o report.html")
    return exit_code(study, measured)


def exit_code(study: LabStudy, records: Sequence[Record]) -> int:
    """Interrupted before failed before refuted before suspect."""
    if records and records[-1].status is Status.CUT_SHORT:
        return INTERRUPTED
    if progress.given_up(records):
        return FAILED
    if any(claim.outcome == "refuted" for claim in study.claims):
        return REFUTED
    return SUSPECT if any(record.status is Status.SUSPECT for record in records) else 0
