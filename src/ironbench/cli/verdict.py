"""Shows the result of a lab at its end, and derives the exit codes of labs and runs."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.errors import FailureError
from ironbench.model.note import FLAGGED
from ironbench.model.purpose import Purpose
from ironbench.model.record import NOT_BACK, Record, Status
from ironbench.printer import Printer
from ironbench.records import Store, progress
from ironbench.records.labs import LabDirectory
from ironbench.report import studies as labs
from ironbench.report import wording
from ironbench.study.claims import JudgedClaim
from ironbench.study.comparability import causes
from ironbench.study.labstudy import settling
from ironbench.study.optimum import SearchResult
from ironbench.study.study import Study
from ironbench.study.subjects import entering
from ironbench.words import counted

_MOST_NAMED = 3
INTERRUPTED, REFUTED, SUSPECT, FAILED = 130, 4, 3, 1


def show(directory: LabDirectory, records: Sequence[Record], json: bool, printer: Printer, gated: bool = False) -> int:
    """Shows the results so far and returns the exit code. `records`: all records of the lab, in the order of
    measurement. `gated`: whether a gate follows. If so, the gate prints the JSON document and determines the exit code
    of a finished lab."""
    measured = [record for record in records if record.purpose == Purpose.LAB]
    study = labs.study(directory, records)
    if json and not gated:
        from ironbench.report.study_json import lab_document

        printer.data(lab_document(study, measured, directory.store))
    elif not json:
        from ironbench.report.ending import summary

        summary(study, printer)
        printer.say(f"lab: {directory.path}   report: ironbench report {directory.path} -o report.html")
    code = exit_code(study, records)
    if code == SUSPECT and study.undecided_requirements:
        printer.say(claims_words(SUSPECT, "undecided", _by_text(study.undecided_requirements)))
    elif code == SUSPECT:
        words = suspect_words(settling(measured))
        printer.say(words if gated else f"exit code {SUSPECT}: {words}")
    elif code == FAILED and (lost := lost_in_cuts(study, records)):
        many = f"{len(lost)} of {counted(len(records), 'trial')}"
        printer.say(f"exit code {FAILED}: {many} lost committed data in a power cut: {wording.cause(lost[0])}")
    elif code == REFUTED:
        printer.say(claims_words(REFUTED, "refuted", _by_text(study.refuted)))
    return code


def claims_words(code: int, outcome: str, claims: Sequence[tuple[str, JudgedClaim]]) -> str:
    """Returns a line for stderr that explains an exit code. The line names the claims with this outcome. If flagged
    trials are a reason for the outcome, the line states how many there are."""
    flags = wording.texts(reason for _, one in claims for reason in one.reasons if reason.code == FLAGGED)
    parts = [*(name for name, _ in claims), *(text.rstrip(".") for text in flags)]
    return f"exit code {code}: {outcome}: {'; '.join(parts)}"


def _by_text(claims: Sequence[JudgedClaim]) -> list[tuple[str, JudgedClaim]]:
    return [(repr(one.claim.text), one) for one in claims]


def exit_code(study: Study, records: Sequence[Record]) -> int:
    """Returns the exit code of a lab. If several outcomes apply, the first of this list determines the exit code:
    interrupted, failed, refuted, undecided or flagged. An interruption counts even if it was in a pilot or peak
    trial."""
    if progress.interrupted(records):
        return INTERRUPTED
    if progress.given_up(records) or lost_in_cuts(study, records):
        return FAILED
    if study.refuted:
        return REFUTED
    if study.undecided_requirements:
        return SUSPECT
    return SUSPECT if any(record.status is Status.SUSPECT for record in _without_fixed_rates(study, records)) else 0


def lost_in_cuts(study: Study, records: Sequence[Record]) -> list[Record]:
    """Returns the trials that lost committed data in a power cut. A trial is included even if its repetition lost
    nothing."""
    if study.lab is None or not study.lab.method.crash:
        return []
    return [
        record
        for record in progress.failed(records)
        if not all(check.passed for check in record.checks) or any(one.code == NOT_BACK for one in record.causes)
    ]


def _without_fixed_rates(study: Study, records: Sequence[Record]) -> list[Record]:
    """Returns the records on which verdicts are based, without those of fixed-rate configurations. If a fixed-rate
    configuration does not sustain its rate, its trial is flagged. This is a result, and does not change the exit
    code."""
    rated = {setup.cell.name for setup in study.lab.rated} if study.lab else set()
    return [record for record in records if record.purpose == Purpose.LAB and record.cell.name not in rated]


def suspect_words(records: Sequence[Record], answer: SearchResult | None = None) -> str:
    """Explains why a finished run or lab has exit code 3. The numbers are the same as in its report. `answer`: the
    result of the run's search."""
    entered = entering(records)
    doubtful = [record for record in entered if record.status is Status.SUSPECT]
    if answer is not None and answer.inconclusive:
        flagged = f"; {suspect_words(records)}" if doubtful else ""
        return f"the search is inconclusive{flagged}"
    known = causes(doubtful)
    more = f", and {counted(len(known) - 1, 'other cause')}" if len(known) > 1 else ""
    first = next(map(wording.text, known), "no recorded cause")
    return f"{len(doubtful)} of {counted(len(entered), 'trial')} flagged: {first}{more}"


def require_kept(store: Store, records: Sequence[Record]) -> None:
    """Raises FailureError if one of the written records no longer exists. This happens if the results directory was
    removed or unmounted."""
    if gone := store.gone(records):
        named = ", ".join(gone[:_MOST_NAMED]) + (f" and {len(gone) - _MOST_NAMED} more" if gone[_MOST_NAMED:] else "")
        cause = (
            f"{len(gone)} of {counted(len(records), 'record')} were written to this directory but no longer "
            f"exist: {named}"
        )
        hint = (
            "the directory was removed, replaced or unmounted during the run; measure the trials of these records again"
        )
        raise FailureError(f"results {store.directory}", cause, hint)


def code_of_run(records: Sequence[Record], answer: SearchResult | None = None) -> int:
    """Returns the exit code of a run without considering its requirements. `answer`: the result of the run's search, if
    any."""
    # Aborted trials were repeated after `--resume`. Only the last record counts if it is aborted.
    again = [record for record in records[:-1] if record.status is not Status.CUT_SHORT]
    statuses = {record.status for record in [*again, *records[-1:]]}
    if not statuses or statuses & {Status.FAILED, Status.VOIDED}:
        return FAILED
    if Status.CUT_SHORT in statuses:
        return INTERRUPTED
    inconclusive = answer is not None and answer.inconclusive
    return SUSPECT if inconclusive or any(record.status is Status.SUSPECT for record in entering(records)) else 0
