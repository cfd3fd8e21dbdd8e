"""How a run or a lab ends: what is shown, and the exit code that follows from it."""

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
from ironbench.study.claims import Judged
from ironbench.study.comparability import causes
from ironbench.study.labstudy import settling
from ironbench.study.study import Study
from ironbench.study.subjects import entering
from ironbench.words import counted

_MOST_NAMED = 3
INTERRUPTED, REFUTED, SUSPECT, FAILED = 130, 4, 3, 1


def show(directory: LabDirectory, records: Sequence[Record], json: bool, printer: Printer, gated: bool = False) -> int:
    """Shows what is known so far; the exit code. `records`: in the order they were measured. `gated`: a gate says what
    the code is of a lab that has finished, and prints the JSON document."""
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
        printer.say(claims_words(SUSPECT, "undecided", _named(study.undecided_requirements)))
    elif code == SUSPECT:
        words = suspect_words(settling(measured))
        printer.say(words if gated else f"exit code {SUSPECT}: {words}")
    elif code == FAILED and (lost := lost_in_cuts(study, records)):
        many = f"{len(lost)} of {counted(len(records), 'trial')}"
        printer.say(f"exit code {FAILED}: {many} lost something in a power cut: {wording.cause(lost[0])}")
    elif code == REFUTED:
        printer.say(claims_words(REFUTED, "refuted", _named(study.refuted)))
    return code


def claims_words(code: int, outcome: str, claims: Sequence[tuple[str, Judged]]) -> str:
    """The last line on stderr: which claims ended so, by name, and how many of their trials are flagged."""
    flags = wording.texts(reason for _, one in claims for reason in one.reasons if reason.code == FLAGGED)
    parts = [*(name for name, _ in claims), *(text.rstrip(".") for text in flags)]
    return f"exit code {code}: {outcome}: {'; '.join(parts)}"


def _named(claims: Sequence[Judged]) -> list[tuple[str, Judged]]:
    return [(repr(one.claim.text), one) for one in claims]


def exit_code(study: Study, records: Sequence[Record]) -> int:
    """Interrupted, in a pilot or at the peak as well, before failed before refuted before suspect."""
    if progress.interrupted(records):
        return INTERRUPTED
    if progress.given_up(records) or lost_in_cuts(study, records):
        return FAILED
    if study.refuted:
        return REFUTED
    if study.undecided_requirements:
        return SUSPECT
    return SUSPECT if any(record.status is Status.SUSPECT for record in _own(study, records)) else 0


def lost_in_cuts(study: Study, records: Sequence[Record]) -> list[Record]:
    """Trials that lost in their power cut what was confirmed. That another try lost nothing takes none of it back."""
    if study.lab is None or not study.lab.method.crash:
        return []
    return [
        record
        for record in progress.failed(records)
        if not all(check.passed for check in record.checks) or any(one.code == NOT_BACK for one in record.causes)
    ]


def _own(study: Study, records: Sequence[Record]) -> list[Record]:
    """Those that a verdict rests on: that a rated cell fell behind its rate is a finding, not a flaw."""
    rated = {setup.cell.name for setup in study.lab.rated} if study.lab else set()
    return [record for record in records if record.purpose == Purpose.LAB and record.cell.name not in rated]


def suspect_words(records: Sequence[Record]) -> str:
    """Why a run or a lab that finished ends with exit code 3, counted as its report counts."""
    entered = entering(records)
    doubtful = [record for record in entered if record.status is Status.SUSPECT]
    known = causes(doubtful)
    more = f", and {counted(len(known) - 1, 'other cause')}" if len(known) > 1 else ""
    first = next(map(wording.text, known), "no cause recorded")
    return f"{len(doubtful)} of {counted(len(entered), 'trial')} suspect: {first}{more}"


def require_kept(store: Store, records: Sequence[Record]) -> None:
    """FailureError that names records which were written and are gone: results removed or unmounted during a run."""
    if gone := store.gone(records):
        named = ", ".join(gone[:_MOST_NAMED]) + (f" and {len(gone) - _MOST_NAMED} more" if gone[_MOST_NAMED:] else "")
        cause = f"{len(gone)} of {counted(len(records), 'record')} were written there and are gone: {named}"
        hint = "it was removed, replaced or unmounted during the run; those trials must be measured again"
        raise FailureError(f"results {store.directory}", cause, hint)


def code_of_run(records: Sequence[Record]) -> int:
    again = [record for record in records[:-1] if record.status is not Status.CUT_SHORT]  # those were resumed
    statuses = {record.status for record in [*again, *records[-1:]]}
    if not statuses or statuses & {Status.FAILED, Status.VOIDED}:
        return FAILED
    if Status.CUT_SHORT in statuses:
        return INTERRUPTED
    return SUSPECT if any(record.status is Status.SUSPECT for record in entering(records)) else 0
